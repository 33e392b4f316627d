# tests/python/growth.py: by how much the process grows over many rounds of something.
from __future__ import annotations

import ctypes
import gc
import os
import sys

ROUNDS = int(os.environ.get("TENON_LEAK_ROUNDS", "20000"))
WARM_UP = 2000


class _Malloc(ctypes.Structure):
    """What glibc says of its heap; `in_use` is what malloc has given out and not got back."""

    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "free_chunks", "fast_chunks", "mapped", "mapped_bytes", "unused", "fast_bytes", "in_use",
                 "free_bytes", "releasable")]


def bytes_in_use() -> int:
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Malloc
    info = libc.mallinfo2()
    return info.in_use + info.mapped_bytes


#: What may come and go beside the rounds: caches, other threads.
ALLOWED_BLOCKS = 64


def grows(step, rounds: int, warm_up: int = WARM_UP) -> tuple[int, int]:
    """By how many Python blocks and malloc'ed bytes the process has grown over these rounds, once warm. More than is
    allowed is measured up to twice again, and the least counts: what leaks does so every time."""
    for _ in range(warm_up):
        step()
    measured = []
    while len(measured) < 3 and all(abs(blocks) > ALLOWED_BLOCKS for blocks, _ in measured):
        gc.collect()
        before = sys.getallocatedblocks(), bytes_in_use()
        for _ in range(rounds):
            step()
        gc.collect()
        measured.append((sys.getallocatedblocks() - before[0], bytes_in_use() - before[1]))
    return min(measured, key=lambda pair: abs(pair[0]))
