# tests/python/conftest.py: what every Python test here relies on.
from __future__ import annotations

import faulthandler
import os
import sys

import pytest

# The stream the process began with: pytest may have put another in its place, with no file behind it.
faulthandler.enable(sys.__stderr__)


@pytest.fixture(autouse=True)
def _watchdog():
    """A hang is a failure that says where."""
    faulthandler.dump_traceback_later(float(os.environ.get("TENON_TEST_TIMEOUT", "1800")), exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()
