# tests/python/test_bound_unlocked.py: what needs the GIL, called in a bound function that has let go of it, says so.
from __future__ import annotations


import pytest
from bound_hazards import hazards, of_binder  # noqa: F401
from isolation import run_isolated
from real_support import need

LIBRARIES = ["numpy", "torch"]
SAID = r"needs the GIL, which this thread does not hold; call it before the GIL is released"


def ones(library: str):
    module = need(library)
    return module.ones(3, dtype=module.float64)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("function", ["fresh_released", "fresh_of_released"])
def test_empty_like_without_the_lock_says_so(hazards, function, library):
    x = ones(library)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="^tenon: empty_like " + SAID):
            getattr(hazards, function)(x)
        assert hazards.fresh(x).shape == (3,)


@pytest.mark.parametrize("library", LIBRARIES)
def test_empty_like_under_a_call_guard_says_so(of_binder, library):
    x = ones(library)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="^tenon: empty_like " + SAID):
            of_binder.fresh_guarded(x)
        assert of_binder.fresh(x).shape == (3,)


ASKED = ["empty_like", "empty_like of a shape", "empty_like None", "from_python", "from_python to be copied", "borrow", "to_python", "to_python like", "to_capsule"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("what", ASKED)
def test_functions_of_the_c_api_without_the_lock_say_so(hazards, what, library):
    x = ones(library)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="^tenon: this " + SAID):
            hazards.asked_released(x, what)
        assert hazards.alone(x) == 3.0


@pytest.mark.parametrize("library", LIBRARIES)
def test_errors_are_raised_without_the_lock(hazards, library):
    x = ones(library)
    with pytest.raises(BufferError, match="said without the GIL"):
        hazards.asked_released(x, "raise")
    with pytest.raises(BufferError, match="dtype"):
        hazards.asked_released(x, "or_raise")
    assert hazards.alone(x) == 3.0


BUSY = """
import sys, threading
import numpy
import bound_hazards_{0} as hazards

stop = False
def work():
    while not stop:
        sum(range(50))
sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
x = numpy.ones(3)
for _ in range(200):
    for call in (hazards.fresh_released, *(lambda x, what=what: hazards.asked_released(x, what) for what in {1})):
        try:
            call(x)
        except RuntimeError as error:
            assert "needs the GIL" in str(error), error
        else:
            raise AssertionError("not refused")
stop = True
for t in threads: t.join()
"""


@pytest.mark.parametrize("binder", ["capi", "pybind11", "nanobind"])
def test_also_while_other_threads_hold_it(binder):
    """Before 3.12 "the current thread state" is that of whoever holds the lock."""
    need("numpy")
    if binder != "capi":
        pytest.importorskip(binder)
    run_isolated(BUSY.format(binder, ASKED))
