# python/tenon/__main__.py: the command line: `python -m tenon`.
"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import tenon
from tenon import _paths


def _test(asked: argparse.Namespace) -> int:
    from tenon.tests import runner

    return runner.run(asked.k, verbose=asked.verbose, only_list=asked.list)


def _add_test(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "Run the package's own tests against the array libraries that are installed."
    command = commands.add_parser("test", help="run the package's own tests", description=text)
    command.add_argument("-k", metavar="WORD", help="only the tests that have WORD in their name")
    command.add_argument("-v", "--verbose", action="store_true", help="name every test, and every pair of the matrix")
    command.add_argument("--list", action="store_true", help="name the tests, and run none")
    command.set_defaults(run=_test)


def _add_paths(made: argparse.ArgumentParser) -> None:
    texts = {
        _paths.include_dir: "print the folder of the C++ headers, for the compiler's -I",
        _paths.sources: "print the C++ file to add to a build that has no CMake: what the headers declare, it does",
        _paths.cmake_dir: "print the folder of the CMake package, for CMake's tenon_DIR",
        _paths.pkgconfig_dir: "print the folder of tenon.pc, for PKG_CONFIG_PATH",
    }
    one = made.add_mutually_exclusive_group()
    for path, text in texts.items():
        option = "--" + path.__name__.replace("_", "-")
        one.add_argument(option, action="store_const", const=path, dest="path", help=text)


def _print_path(path: Callable[[], str]) -> int:
    try:
        print(path())
    except FileNotFoundError as error:
        print(f"python -m tenon: {error}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """The parser of the command line, with all its commands."""
    made = argparse.ArgumentParser(prog="python -m tenon", description=tenon.__doc__)
    made.add_argument("--version", action="version", version=f"tenon {tenon.__version__}")
    _add_paths(made)
    commands = made.add_subparsers(title="commands", metavar="COMMAND")
    _add_test(commands)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status. Without one, shows which there are."""
    made = parser()
    asked = made.parse_args(arguments)
    if asked.path is not None:
        return _print_path(asked.path)
    if not hasattr(asked, "run"):
        made.print_help()
        return 0
    status: int = asked.run(asked)
    return status


if __name__ == "__main__":
    sys.exit(main())
