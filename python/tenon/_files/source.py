# python/tenon/_files/source.py: a file while it is being opened: its header is read, its data is mapped.
"""Files and their memory."""

from __future__ import annotations

import errno
import mmap
import os
import stat
import sys
from typing import Any

from tenon._core import MalformedError, Tensor, asdlpack
from tenon._dtype import dtype
from tenon._files.layout import shown
from tenon._pointer import from_pointer

# A FIFO or a terminal must not make us wait, or become ours, before we have seen what it is.
_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
# The map needs no descriptor of its own: many files can be looked at at once.
_MAP_OPTIONS: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) and sys.platform != "win32" else {}


class SourceFile:
    """A regular file, open until the end of the `with` block; what is mapped of it stays.

    The header is read, not mapped: a file that is cut short meanwhile gives fewer bytes, and no SIGBUS.
    """

    def __init__(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes], *, writable: bool) -> None:
        self.path = os.fsdecode(path)
        self._writable = writable
        descriptor = os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | _FLAGS)
        try:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.path)
            if not stat.S_ISREG(status.st_mode):
                raise self.fault("format", "not a regular file, expected a .npy or .safetensors file")
            if status.st_size == 0:
                raise self.fault("size", "the file is empty, expected a .npy or .safetensors file")
        except BaseException:
            os.close(descriptor)
            raise
        self.size = status.st_size
        self._file = open(descriptor, "rb")  # and closes it

    def __enter__(self) -> SourceFile:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()

    def fault(self, field: str, text: str) -> ValueError:
        """What to raise for a file that cannot be taken."""
        return ValueError(f"tenon: {self.path}: {field}: {text}")

    def read(self, begin: int, count: int) -> bytes:
        """Some bytes of the file: fewer if it ends before."""
        self._file.seek(begin)
        return self._file.read(count)

    def map(self) -> Mapped:
        """The file as memory."""
        access = mmap.ACCESS_WRITE if self._writable else mmap.ACCESS_READ
        try:
            memory = mmap.mmap(self._file.fileno(), self.size, access=access, **_MAP_OPTIONS)
        except ValueError:
            raise self.fault("size", f"cut short while it was opened, expected {self.size} bytes") from None
        except OSError as error:
            error.filename = self.path
            raise
        return Mapped(self.path, memory, readonly=not self._writable)


class Mapped:
    """The bytes of a file as memory. Every tensor in it keeps it mapped."""

    def __init__(self, path: str, memory: mmap.mmap, *, readonly: bool) -> None:
        self.path = path
        self._readonly = readonly
        self._whole = asdlpack(memory)  # holds the buffer: nobody can close the map

    def tensor(
        self,
        begin: int,
        shape: tuple[int, ...],
        kind: dtype,
        *,
        strides: tuple[int, ...] | None = None,
        name: str | None = None,
    ) -> Tensor:
        """The tensor that begins at a byte of the file and is known to fit. `name` is for the message."""
        address = self._whole.data_ptr + begin
        try:
            return from_pointer(address, shape, kind, strides=strides, owner=self._whole, readonly=self._readonly)
        except MalformedError as refused:
            field = "data" if name is None else f"tensor {shown(name)}"
            raise BufferError(
                f"tenon: {self.path}: {field}: begins at byte {begin} of the file, where {kind} is not aligned, so it "
                "cannot be used in place; read a copy with the library that wrote the file, and save that again"
            ) from refused
