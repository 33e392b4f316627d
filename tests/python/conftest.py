# tests/python/conftest.py: what every Python test here relies on.
from __future__ import annotations

import faulthandler
import os

import pytest

faulthandler.enable()


@pytest.fixture(autouse=True)
def _watchdog():
    """A hang is a failure that says where."""
    faulthandler.dump_traceback_later(float(os.environ.get("TENON_TEST_TIMEOUT", "600")), exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
