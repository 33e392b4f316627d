# tests/python/conftest.py: what every Python test here relies on.
from __future__ import annotations

import faulthandler
import sys

import pytest
from isolation import LIMIT

# The stream the process began with: pytest may have put another in its place, with no file behind it.
faulthandler.enable(sys.__stderr__)


@pytest.fixture(autouse=True)
def _watchdog():
    """A hang is a failure that says where. What waits for another process gives up earlier, and says more."""
    faulthandler.dump_traceback_later(2 * LIMIT, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()
