# tests/python/file_support.py: what the tests of files share: what the process has mapped, open and resident.
from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("looks into /proc", allow_module_level=True)


@dataclass(frozen=True)
class Map:
    begin: int
    end: int
    access: str


def maps_of(path: object) -> list[Map]:
    """Where a file is mapped in this process, by its path; it may have been unlinked since."""
    found = []
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            match = re.fullmatch(r"(\w+)-(\w+) (\S+) \S+ \S+ \S+ +(.*?)(?: \(deleted\))?\n", line)
            if match and match[4] == os.fspath(path):
                found.append(Map(int(match[1], 16), int(match[2], 16), match[3]))
    return found


def mapped(path: object) -> bool:
    return bool(maps_of(path))


def map_of(path: object) -> Map:
    """The only one."""
    (only,) = maps_of(path)
    return only


def descriptors() -> int:
    """How many files the process has open."""
    return len(os.listdir("/proc/self/fd"))


def resident() -> int:
    """Bytes of memory that are really there, those of mapped files included."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
