# python/tenon/tests/need.py: a library for a test, or a skip that says what to install.
"""Libraries that tests need."""

from __future__ import annotations

import importlib
import importlib.util
import os
import unittest
from typing import Any

from tenon.tests.consumers import CONSUMERS
from tenon.tests.producers import PRODUCERS

INSTALL = {p.name: p.install for p in PRODUCERS.values()} | {c.name: c.install for c in CONSUMERS.values()}


def need(name: str) -> Any:
    """The library, imported; skips the test where there is none. One that is there and does not import is an error."""
    if importlib.util.find_spec(name) is None:
        raise unittest.SkipTest(f"{name} is not installed: pip install {INSTALL.get(name, name)}")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    return importlib.import_module(name)
