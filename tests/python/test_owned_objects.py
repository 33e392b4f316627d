# tests/python/test_owned_objects.py: py::own keeps a Python object as the owner of memory, made and dropped with the GIL and without; py::is_array tells what can be taken.
from __future__ import annotations

import array
import ctypes
import gc
import sys
import weakref

import pytest
from bound_results import of_binder, results  # noqa: F401
from isolation import run_isolated
from real_support import need

import tenon

PLACES = ["attached", "released", "another thread"]


class Owner:
    pass


def owner():
    made = Owner()
    return made, weakref.ref(made)


# --- py::own ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", PLACES)
def test_the_object_is_kept(results, where):
    np = need("numpy")
    obj, gone = owner()
    count = sys.getrefcount(obj)
    t = results.owned(obj, where)
    assert sys.getrefcount(obj) == count + 1
    assert type(t) is tenon.Tensor and t.owner is obj
    a = np.asarray(t)
    assert a.tolist() == [1, 2, 3, 4]
    del t, obj
    gc.collect()
    assert gone() is not None
    del a
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("dropped", PLACES)
@pytest.mark.parametrize("made", PLACES)
def test_given_away_and_dropped(results, made, dropped):
    obj, gone = owner()
    count = sys.getrefcount(obj)
    for _ in range(3):
        results.owned_and_dropped(obj, made, dropped)
        assert sys.getrefcount(obj) == count
    del obj
    gc.collect()
    assert gone() is None


def test_a_refusal_lets_go_of_it(results):
    obj = Owner()
    count = sys.getrefcount(obj)
    for _ in range(3):
        with pytest.raises((ValueError, BufferError, RuntimeError), match="null"):
            results.owned_in_vain(obj)
        assert sys.getrefcount(obj) == count


AT_EXIT = """
import bound_results_{0} as results
class Owner:
    def __del__(self):
        print("gone")
results.owned_for_ever(Owner())
"""


@pytest.mark.parametrize("binder", ["capi", "pybind11", "nanobind"])
def test_one_that_outlives_the_interpreter(binder):
    if binder != "capi":
        pytest.importorskip(binder)
    run_isolated(AT_EXIT.format(binder))


BUSY = """
import sys, threading
import bound_results_{0} as results
class Owner: pass
sys.setswitchinterval(1e-5)
def work():
    mine = Owner()
    for _ in range(100):
        results.owned_and_dropped(mine, "released", "another thread")
        results.owned(mine, "another thread")
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
"""


@pytest.mark.parametrize("binder", ["capi", "pybind11", "nanobind"])
def test_by_many_threads(binder):
    if binder != "capi":
        pytest.importorskip(binder)
    run_isolated(BUSY.format(binder))


# --- py::is_array -------------------------------------------------------------------------------------------------------


class Dlpack:
    def __dlpack__(self, **_):
        raise AssertionError("asked")

    def __dlpack_device__(self):
        raise AssertionError("asked")


class Interface:
    asked = 0

    @property
    def __array_interface__(self):
        Interface.asked += 1
        raise AssertionError("asked")


class OfInstance:
    def __init__(self, name, value):
        setattr(self, name, value)


class Dynamic:
    def __init__(self, raised):
        self.raised, self.asked = raised, 0

    def __getattr__(self, name):
        raise self.raised


def capsule():
    return need("numpy").ones(2).__dlpack__()


ARRAYS = {
    "NumPy": lambda: need("numpy").ones(2), "0-d": lambda: need("numpy").ones(()), "scalar": lambda: need("numpy").float32(1),
    "objects": lambda: need("numpy").array([None]), "torch": lambda: need("torch").ones(2), "jax": lambda: need("jax").numpy.ones(2),
    "pandas": lambda: need("pandas").Series([1.0]), "polars": lambda: need("polars").Series([1.0]),
    "PIL": lambda: need("PIL.Image").new("L", (2, 2)),
    "bytes": lambda: b"a", "bytearray": lambda: bytearray(1), "memoryview": lambda: memoryview(b"a"), "array": lambda: array.array("f"),
    "ctypes": lambda: (ctypes.c_float * 2)(), "Tensor": lambda: tenon.asdlpack(b"ab"), "capsule": capsule, "DLPack": Dlpack,
    "interface": Interface, "of the instance": lambda: OfInstance("__array_interface__", {}),
}  # fmt: skip
OTHERS = {
    "list": lambda: [1.0], "tuple": lambda: (1.0,), "dict": dict, "set": set, "int": lambda: 1, "float": lambda: 1.0, "str": lambda: "text",
    "None": lambda: None, "True": lambda: True, "complex": lambda: 1j, "range": lambda: range(3), "slice": lambda: slice(1),
    "class of arrays": lambda: need("numpy").ndarray, "class": lambda: Dlpack, "object": object, "function": lambda: need, "module": lambda: sys,
    "module of arrays": lambda: need("numpy"), "dtype": lambda: need("numpy").dtype("f4"), "own class": Owner, "generator": lambda: (x for x in ()),
    "None of the instance": lambda: OfInstance("__dlpack__", None), "another capsule": lambda: need("numpy")._core._multiarray_umath._ARRAY_API,
    "refuses": lambda: Dynamic(AttributeError("no")), "fails": lambda: Dynamic(RuntimeError("no")),
}  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
def test_is_array(results, name):
    obj = ARRAYS[name]()
    asked = Interface.asked
    for _ in range(2):
        assert results.is_array(obj) is True
    assert Interface.asked == asked


@pytest.mark.parametrize("name", OTHERS)
def test_is_no_array(results, name):
    obj = OTHERS[name]()
    for _ in range(2):
        assert results.is_array(obj) is False


def test_a_capsule_that_is_used_up(results):
    np = need("numpy")
    taken = capsule()
    tenon.asdlpack(taken)
    assert results.is_array(taken) is False
    fresh = np.ones(2).__dlpack__()
    assert results.is_array(fresh) and tenon.asdlpack(fresh).shape == (2,)  # looking has not used it


def test_of_what_binders_have_for_objects(of_binder):
    assert of_binder.is_array_twice(b"a") == (True, True)
    assert of_binder.is_array_twice([1]) == (False, False)


def test_an_exit_on_the_way_is_reported(results, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    assert results.is_array(Dynamic(MemoryError("none left"))) is False
    assert [type(each.exc_value) for each in told] == [MemoryError]


def test_ctrl_c_on_the_way_comes_again(results):
    gc.disable()  # or it may come in a callback of the collector's, which nobody would be told of
    try:
        with pytest.raises(KeyboardInterrupt):
            results.is_array(Dynamic(KeyboardInterrupt()))
            for _ in range(1_000_000):  # until the next look at signals
                pass
    finally:
        gc.enable()


# --- without the GIL ----------------------------------------------------------------------------------------------------

NEEDS_GIL = r"^tenon: this needs the GIL, which this thread does not hold; call it before the GIL is released"
SAID = {
    "from_python": (RuntimeError, NEEDS_GIL), "from_python copy": (RuntimeError, NEEDS_GIL), "from_python to": (RuntimeError, NEEDS_GIL),
    "borrow": (RuntimeError, NEEDS_GIL), "is_array": (RuntimeError, NEEDS_GIL), "empty_like": (RuntimeError, NEEDS_GIL),
    "empty_like of a shape": (RuntimeError, NEEDS_GIL), "to_python": (RuntimeError, NEEDS_GIL), "to_python result": (RuntimeError, NEEDS_GIL),
    "to_python error": (Exception, "shape"), "to_python like": (RuntimeError, NEEDS_GIL), "to_python result like": (RuntimeError, NEEDS_GIL),
    "to_python described like": (RuntimeError, NEEDS_GIL), "to_capsule": (RuntimeError, NEEDS_GIL), "to_capsule result": (RuntimeError, NEEDS_GIL),
    "to_capsule described": (RuntimeError, NEEDS_GIL), "to_library": (RuntimeError, NEEDS_GIL), "to_library error": (Exception, "shape"),
    "to_library unknown": (RuntimeError, NEEDS_GIL), "make_producer": (TypeError, "needs a class"), "make_producer type": (RuntimeError, NEEDS_GIL),
    "make_producer boxed": (RuntimeError, NEEDS_GIL), "raise": (BufferError, "said without the GIL"),
    "raise_caught": (IndexError, "caught without the GIL"), "warn_of_conversion": (RuntimeError, NEEDS_GIL),
    "set_conversion_hook": None, "numpy_array": (RuntimeError, NEEDS_GIL), "numpy_array of another rank": (RuntimeError, NEEDS_GIL),
}  # fmt: skip

CALLS = {"NumPy": lambda: need("numpy").ones(3), "torch": lambda: need("torch").ones(3), "bytes": lambda: b"abc", "list": list}


def capi():
    import bound_results_capi

    return bound_results_capi


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("what", SAID)
def test_on_a_thread_that_has_released_it(what, kind):
    obj = CALLS[kind]()
    for _ in range(2):
        if SAID[what] is None:
            assert capi().call_there(obj, what, "released") is False
            continue
        exception, said = SAID[what]
        with pytest.raises(exception, match=said):
            capi().call_there(obj, what, "released")


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("what", SAID)
def test_on_a_thread_that_python_knows_nothing_of(what, kind, monkeypatch):
    """It has nowhere to keep an exception: that is reported, and the answer is no."""
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    obj = CALLS[kind]()
    for _ in range(2):
        assert capi().call_there(obj, what, "another thread") is False
    if SAID[what] is None:
        assert told == []
        return
    exception, _ = SAID[what]
    assert len(told) == 2 and all(isinstance(each.exc_value, exception) for each in told)


@pytest.mark.parametrize("where", PLACES)
def test_or_raise_throws_everywhere(where, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda told: None)
    assert capi().or_raise_there(where) == "python_error"


@pytest.mark.parametrize("what", [what for what in SAID if not what.startswith(("raise", "make_producer", "warn", "set_"))])
def test_attached_they_do_what_they_say(what):
    np = need("numpy")
    x = np.ones(3)
    if what in ("to_python error", "to_library error", "to_library unknown", "borrow", "numpy_array of another rank"):
        with pytest.raises((BufferError, ValueError, RuntimeError)):
            capi().call_there(x, what, "attached")
    else:
        assert capi().call_there(x, what, "attached") is True


def test_a_library_that_to_library_does_not_know():
    said = r"tenon: to_library makes no arrays of 'nothing'; there are memoryview, numpy, torch, jax, tensorflow, paddle, cupy, tvm_ffi$"
    with pytest.raises(ValueError, match=said):
        capi().call_there(None, "to_library unknown", "attached")
