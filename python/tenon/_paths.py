# python/tenon/_paths.py: where an installed package keeps what C++ projects build with (by cmake/install.cmake).
"""Where the C++ headers, the source behind them and the files of the build tools are."""

from __future__ import annotations

from pathlib import Path

import tenon

_SOURCE = "tenon/src/tenon.cpp"


def include_dir() -> str:
    """The folder for a compiler's `-I`: `#include <tenon/py.hpp>` is looked up from it."""
    return _folder_of("include", "tenon/tenon.hpp")


def sources() -> str:
    """The one file to add to the sources of a module or a program: all that the headers only declare."""
    return str(Path(_folder_of("include", _SOURCE), _SOURCE))


def cmake_dir() -> str:
    """The folder for CMake's `tenon_DIR`: `find_package(tenon CONFIG)` reads its files."""
    return _folder_of("share/cmake/tenon", "tenon-config.cmake")


def pkgconfig_dir() -> str:
    """The folder for `PKG_CONFIG_PATH`: `pkg-config --cflags tenon` reads its file."""
    return _folder_of("share/pkgconfig", "tenon.pc")


def _folder_of(folder: str, file: str) -> str:
    # An editable install has two folders: the sources, and what was built from them.
    for package in tenon.__path__:
        found = Path(package, folder).absolute()
        if (found / file).is_file():
            return str(found)
    raise FileNotFoundError(
        f"this tenon, in {', '.join(tenon.__path__)}, has no {folder}/{file}: only an installed package has its C++ "
        "files; install it with pip (`pip install tenon-dlpack`, or `pip install .` in a checkout)"
    )
