# tests/python/isolation.py: runs tests in a process of their own, so that a crash is one failed test and not the end of the run.
"""A producer that lies may crash what it is tried on. Two ways to try it:

``@isolated`` runs a test in a child process that all isolated tests of the module share. When the child dies,
the test it was at has failed, by the signal's name, and a new child goes on with the next.

A module's ``prepare_child()``, if it has one, is called in the child before the first.

``run_isolated(code)`` runs one piece of code in a fresh interpreter and asserts that it exits with 0.
"""

from __future__ import annotations

import faulthandler
import functools
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
#: Seconds after which whatever a test waits for is said to hang: the only limit there is, and far beyond what anything
#: takes on a busy machine.
LIMIT = float(os.environ.get("TENON_TEST_TIMEOUT", "900"))

#: For tests that start processes: compute-sanitizer does not look into them, and some hang under it.
unchecked = pytest.mark.skipif("TENON_GPU_CHECKED" in os.environ, reason="compute-sanitizer checks no child processes")

_tests: dict[str, dict[str, object]] = {}
_verdicts: dict[str, dict[str, dict]] = {}


def isolated(function):
    """Registers a test that takes no arguments; what pytest sees only looks its verdict up."""
    module, name = function.__module__, function.__name__
    assert name not in _tests.setdefault(module, {}), f"two tests are called {name}"
    _tests[module][name] = function

    @functools.wraps(function)
    def look_up():
        if module not in _verdicts:
            _verdicts[module] = _run_module(module)
        verdict = _verdicts[module][name]
        if verdict["outcome"] == "skipped":
            pytest.skip(verdict["text"])
        if verdict["outcome"] != "passed":
            pytest.fail(verdict["text"], pytrace=False)

    return look_up


def table(module_globals: dict, rows: dict, make) -> None:
    """Adds one isolated test per row: ``make(**row)`` is its body, the row's key its name."""
    for name, row in rows.items():
        def body(row=row):
            make(**row)

        body.__name__ = body.__qualname__ = name
        body.__module__ = module_globals["__name__"]
        assert name not in module_globals, f"two tests are called {name}"
        module_globals[name] = isolated(body)


#: For programs whose exit overtakes a release: that leaks by design, and a leak checker must not mind.
LEAKS_BY_DESIGN = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"} if SANITIZED else {}


def _environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, **(extra or {})}


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _run_module(module: str) -> dict[str, dict]:
    names = list(_tests[module])
    verdicts: dict[str, dict] = {}
    while len(verdicts) < len(names):
        todo = [name for name in names if name not in verdicts]
        command = [sys.executable, "-X", "faulthandler", "-c", "import isolation; isolation._child()", module]
        child = subprocess.run(command, input="\n".join(todo), text=True, capture_output=True, env=_environment())
        started = None
        for line in child.stdout.splitlines():
            if line.startswith("@begin "):
                started = line.removeprefix("@begin ")
            elif line.startswith("@end "):
                verdicts[started] = json.loads(line.removeprefix("@end "))
                started = None
        if started is not None:
            text = f"{how_it_ended(child.returncode)}\n{child.stderr[-4000:]}"
            verdicts[started] = {"outcome": "failed", "text": text}
        elif child.returncode != 0:
            text = f"the child process ended badly: {how_it_ended(child.returncode)}\n{child.stderr[-4000:]}"
            # It died after its last test: whichever it was that spoiled the process.
            for name in todo:
                if name not in verdicts or name == todo[-1]:
                    verdicts[name] = {"outcome": "failed", "text": text}
    return verdicts


def _child() -> None:
    module = importlib.import_module(sys.argv[1])
    getattr(module, "prepare_child", lambda: None)()
    for name in sys.stdin.read().split():
        print(f"@begin {name}", flush=True)
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        verdict = {"outcome": "passed", "text": ""}
        try:
            _tests[module.__name__][name]()
        except pytest.skip.Exception as skip:
            verdict = {"outcome": "skipped", "text": str(skip)}
        except BaseException:
            verdict = {"outcome": "failed", "text": traceback.format_exc()}
        faulthandler.cancel_dump_traceback_later()
        print(f"@end {json.dumps(verdict)}", flush=True)


def wait_until(condition: Callable[[], object]) -> bool:
    """Waits for what another thread does; false where it never does."""
    end = time.monotonic() + LIMIT / 10
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def run_isolated(code: str, *, env: dict[str, str] | None = None, args: tuple = ()) -> str:
    """Runs the code in a fresh interpreter; it must end with 0. Returns what it printed."""
    command = [sys.executable, "-X", "faulthandler", "-c", code, *map(str, args)]
    done = subprocess.run(command, text=True, capture_output=True, timeout=LIMIT, env=_environment(env))
    assert done.returncode == 0, f"{how_it_ended(done.returncode)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


#: The start of a script: the package cannot be imported, for that reason; the tests' own modules still can.
NO_PACKAGE = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name == "tenon" or name.startswith("tenon."):
            raise {error}
sys.meta_path.insert(0, Without())
import tenon_exports
"""
NOT_FOUND = "ModuleNotFoundError(f'No module named {name!r}', name=name)"
WITHOUT_PACKAGE = NO_PACKAGE.format(error=NOT_FOUND)
