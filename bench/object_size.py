# bench/object_size.py: the bytes of code in an object file, read from its ELF sections.

from __future__ import annotations

import struct
from pathlib import Path

WRITE, ALLOC, NOBITS = 1, 2, 8


def bytes_of_code(file: Path) -> int:
    """What `size` calls text: everything that is loaded and never written, so tables of constants and of unwinding too."""
    data = file.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{file} is not a 64-bit little-endian ELF file")
    (sections,) = struct.unpack_from("<Q", data, 0x28)
    size_of_one, count = struct.unpack_from("<HH", data, 0x3A)
    if count == 0:  # more than fit into the header: the first section says how many
        (count,) = struct.unpack_from("<Q", data, sections + 0x20)
    total = 0
    for index in range(count):
        _, kind, flags, _, _, size = struct.unpack_from("<IIQQQQ", data, sections + index * size_of_one)
        if flags & ALLOC and not flags & WRITE and kind != NOBITS:
            total += size
    return total
