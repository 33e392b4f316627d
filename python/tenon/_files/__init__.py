# python/tenon/_files/__init__.py: `tenon.open`: tensors that lie in a file.
"""Files of tensors, mapped into memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenon._core import Tensor
    from tenon._files.safetensors import SafetensorsFile


def open(path: str | bytes | os.PathLike[str] | os.PathLike[bytes], mode: str = "r") -> Tensor | SafetensorsFile:
    """The tensors in a file, mapped into memory: nothing is read until somebody looks at the elements.

    A ``.npy`` file is a Tensor. A ``.safetensors`` file is a read-only mapping of names to Tensors, with its own
    ``metadata``. The content tells them apart: what begins with NumPy's magic bytes is the first, what has a ``{``
    where the header of the second begins is the second, and the name decides for everything else.

    path: a regular file
    mode: "r" for read-only memory, "r+" for memory that is written back to the file

    The file stays mapped for as long as anybody looks at its memory, be it an array of another library, and is
    not kept open for it on Python 3.13 and later.

    Raises what the built-in `open` raises for a file that cannot be opened; ValueError, which names the file and
    the field, for one whose header is malformed, does not fit the file, or has an element type that cannot be
    taken; BufferError for a tensor that cannot be used in place because it is off its alignment.

    The operating system ends the process, and no library can prevent it, when it reads a part of the file that
    somebody has cut off meanwhile (SIGBUS), or writes to what was opened with "r" through a library that
    ignores that memory is read-only, as PyTorch does (SIGSEGV).

    >>> import os, struct, tempfile, tenon
    >>> header = b'{"weight": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}     '
    >>> with tempfile.NamedTemporaryFile(suffix=".safetensors", delete=False) as file:
    ...     _ = file.write(struct.pack("<Q", len(header)) + header + struct.pack("<3f", 1, 2, 3))
    >>> model = tenon.open(file.name)
    >>> list(model)
    ['weight']
    >>> memoryview(model["weight"]).tolist()
    [1.0, 2.0, 3.0]
    >>> os.unlink(file.name)
    """
    if mode not in ("r", "r+"):
        raise ValueError(f'tenon: open(): mode is {mode!r}, expected "r" (read-only) or "r+" (written to the file)')

    # Not before they are needed: `import tenon` is to stay quick.
    from tenon._files import npy, safetensors
    from tenon._files.source import SourceFile

    with SourceFile(path, writable=mode == "r+") as source:
        start = source.read(0, 9)
        name = source.path.lower()
        if start.startswith(npy.MAGIC) or name.endswith(".npy"):
            return npy.read(source)
        if start[8:] == b"{" or name.endswith(".safetensors"):
            return safetensors.read(source)
        raise source.fault("format", f"begins with {start[:8]!r}, expected a .npy or a .safetensors file")
