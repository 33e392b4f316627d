# python/tenon/_nesting.py: questions that raise nothing, and ask objects that may ask them in turn: a few levels deep.
"""Looking within looking."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator

#: How deep they go, on one thread. Each asks its object many times, whatever it was answered, so that an object which
#: asks about itself when it is asked would multiply them without end.
_DEEPEST = 3
_here = threading.local()


@contextlib.contextmanager
def one_level(what: str) -> Generator[None, None, None]:
    """A level of `what`, for the length of a block. Raises RecursionError when there are too many around it."""
    depth = getattr(_here, "depth", 0)
    if depth == _DEEPEST:
        raise RecursionError(
            f"tenon: {what} are nested more than {_DEEPEST} deep: what an object is asked looks at an object in turn, "
            "maybe itself"
        )
    _here.depth = depth + 1
    try:
        yield
    finally:
        _here.depth = depth
