# tests/python/real_support.py: what the tests over real libraries share: looking a library up, reading raw memory, lifetimes, child processes.
from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import fakes_ctypes
import pytest
from isolation import LIMIT, wait_until

import tenon

# Read by the libraries when they start: no banners, and no grabbing of a whole GPU for tests that stay on the CPU.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

READ_ONLY, COPIED, PADDED = 1, 2, 4


def has(module: str) -> bool:
    """Whether a library is installed. Does not import it, but the package it is in."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def need(module: str) -> ModuleType:
    """The library, or a skip that names it. A library that is there and does not import is a failure."""
    if not has(module):
        pytest.skip(f"{module} is not installed", allow_module_level=True)
    if module in sys.modules:
        return sys.modules[module]
    found = importlib.import_module(module)
    # A large library is a million objects: they are set aside, or each collection below takes half a second.
    gc.collect()
    gc.freeze()
    return found


def steady_repr(value: object) -> str:
    """As a name for a test: the same in every process, whatever address an object has."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


# --- reading ----------------------------------------------------------------------------------------


def offsets(t: tenon.Tensor) -> Iterator[int]:
    """Byte offset of every element from the first, in row-major order."""
    steps = [s * t.itemsize for s in t.strides]
    for index in itertools.product(*map(range, t.shape)):
        yield sum(i * s for i, s in zip(index, steps, strict=True))


def raw(t: tenon.Tensor) -> bytes:
    """The elements' bytes in row-major order, read from the address with no library's help."""
    return b"".join(ctypes.string_at(t.data_ptr + at, t.itemsize) for at in offsets(t))


def poke(t: tenon.Tensor, element: int, data: bytes) -> None:
    """Writes over one element (counted in row-major order) through the address."""
    assert len(data) == t.itemsize
    at = next(itertools.islice(offsets(t), element, None))
    ctypes.memmove(t.data_ptr + at, data, len(data))


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a packed array."""
    return tuple(
        int(s) for s in reversed(list(itertools.accumulate([1, *reversed(shape[1:])], lambda a, b: a * b)))
    )[: len(shape)]


def expect(
    t: tenon.Tensor,
    *,
    address: int | None,
    shape: tuple[int, ...],
    dtype: str,
    itemsize: int,
    readonly: bool,
    strides: tuple[int, ...] | None = None,
    padded: bool = False,
) -> None:
    """Everything a Tensor says, at once. `strides` are row-major unless given; `address` None is not looked at."""
    size = 1
    for n in shape:
        size *= n
    if strides is None:
        strides = row_major(shape)
    assert isinstance(t, tenon.Tensor)
    assert (t.shape, t.strides, t.ndim, t.size) == (shape, strides, len(shape), size)
    assert (t.dtype, t.itemsize, t.nbytes) == (dtype, itemsize, size * itemsize)
    assert (t.device, t.__dlpack_device__()) == ("cpu", (1, 0))
    assert t.readonly is readonly
    assert t.flags == (READ_ONLY if readonly else 0) | (PADDED if padded else 0)
    if address is not None:
        assert t.data_ptr == address
    packed = row_major(shape)
    assert t.is_contiguous is (
        size == 0 or all(n == 1 or a == b for n, a, b in zip(shape, strides, packed, strict=True))
    )
    assert dtype in repr(t)
    assert ("readonly" in repr(t)) is readonly


class _Buffer(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    ]  # fmt: skip


_api = ctypes.PyDLL(None)  # not ctypes.pythonapi: the types set on its functions are everybody's


def address_of_buffer(obj: object) -> int:
    """Where the first element of a buffer is, of any format, layout and writability."""
    view = _Buffer()
    full_read_only = 0x0100 | 0x0010 | 0x0008 | 0x0004  # PyBUF_FULL_RO
    assert _api.PyObject_GetBuffer(ctypes.py_object(obj), ctypes.byref(view), full_read_only) == 0
    address = view.buf or 0
    _api.PyBuffer_Release(ctypes.byref(view))
    return address


_pointer_of = _api.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def struct_in(capsule: object) -> fakes_ctypes.Legacy | fakes_ctypes.Versioned:
    """The struct of a DLPack capsule, as it lies there: for as long as the capsule is held."""
    versioned = "versioned" in repr(capsule)
    name, kind = (b"dltensor_versioned", fakes_ctypes.Versioned) if versioned else (b"dltensor", fakes_ctypes.Legacy)
    struct = kind.from_address(_pointer_of(capsule, name))
    struct.capsule = capsule
    return struct


Reporter = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
_Own = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
_Wrap = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
_Allocate = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(fakes_ctypes.Tensor), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, Reporter
)
_Borrow = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(fakes_ctypes.Tensor))
_Stream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class ExchangeTable(ctypes.Structure):
    """DLPackExchangeAPI, its functions called with the thread state held."""

    _fields_ = [
        ("version", fakes_ctypes.Version), ("prev_api", ctypes.c_void_p), ("allocate", _Allocate), ("own", _Own),
        ("wrap", _Wrap), ("borrow", _Borrow), ("stream", _Stream),
    ]  # fmt: skip


def reference_to(obj: object) -> int:
    """A new reference, as an address."""
    _api.Py_IncRef(ctypes.py_object(obj))
    return id(obj)


def exchange_table(kind: type) -> ExchangeTable:
    """The table a type publishes."""
    capsule = kind.__dlpack_c_exchange_api__  # type: ignore[attr-defined]
    return ExchangeTable.from_address(_pointer_of(capsule, b"dlpack_exchange_api"))


# --- lifetimes --------------------------------------------------------------------------------------


def references(obj: object) -> int:
    return sys.getrefcount(obj)


@contextlib.contextmanager
def nothing_kept(*objects: object) -> Iterator[None]:
    """What is inside must leave each object with exactly the references it had."""
    gc.collect()
    before = [references(o) for o in objects]
    yield
    gc.collect()
    assert [references(o) for o in objects] == before


def settle(counter: Any) -> None:
    """Waits for what a library lets go of on a thread of its own, as JAX does."""

    def settled() -> bool:
        gc.collect()
        return counter.releases == counter.exports

    wait_until(settled)


def keeps_alive(make: Callable[[], Any], weak: Callable[[Any], Callable[[], Any]]) -> None:
    """A Tensor holds what `make` returns until it goes, and not longer. `weak` makes a weak reference."""
    source = make()
    watch = weak(source)
    t = tenon.asdlpack(source)
    before = raw(t)
    del source
    gc.collect()
    assert watch() is not None, "released while the Tensor is held"
    assert raw(t) == before
    del t
    gc.collect()
    assert watch() is None, "still held after the Tensor is gone"


# --- other processes --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """How one expression ended in a process of its own."""

    returned: str | None = None
    raised: tuple[str, ...] = ()  # names of the exception's classes, its own first
    message: str = ""
    crashed: str = ""  # the exit status and the end of stderr, when the process died

    def refused(self, *kinds: str) -> None:
        """Asserts that one of these exceptions was raised, by class name."""
        assert not self.crashed, self.crashed
        assert self.raised, f"accepted: {self.returned}"
        assert set(kinds) & set(self.raised), f"{self.raised[0]}: {self.message}"

    def accepted(self) -> str:
        assert not self.crashed, self.crashed
        assert not self.raised, f"{self.raised[0]}: {self.message}"
        assert self.returned is not None
        return self.returned


_CHILD = """
import json, sys
job = json.load(sys.stdin)
answers = open(job["answers"], "w", buffering=1)
names = {}
exec(job["setup"], names)
for name, code in job["cases"]:
    print(json.dumps([name, None]), file=answers)
    try:
        answer = {"returned": repr(eval(code, names))}
    except BaseException as e:
        answer = {"raised": [c.__name__ for c in type(e).__mro__], "message": str(e)}
    print(json.dumps([name, answer]), file=answers)
"""


def run_child(code: str, *, stdin: str = "", env: Mapping[str, str] | None = None) -> Any:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        input=stdin,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def elsewhere(
    setup: str, cases: Mapping[str, str], answers: Any, *, env: Mapping[str, str] | None = None
) -> dict[str, Outcome]:
    """Evaluates each expression after `setup` in a child process; a new one goes on after a case that kills it."""
    outcomes: dict[str, Outcome] = {}
    while left := [[name, code] for name, code in cases.items() if name not in outcomes]:
        job = {"setup": setup, "cases": left, "answers": str(answers)}
        done = run_child(_CHILD, stdin=json.dumps(job), env=env)
        lines = [json.loads(line) for line in answers.read_text().splitlines()]
        for name, answer in lines:
            if answer is not None:
                outcomes[name] = Outcome(**{**answer, "raised": tuple(answer.get("raised", ()))})
        died = f"exit status {done.returncode}\n{done.stderr[-2000:]}"
        assert lines, f"the set-up failed: {died}"
        started = lines[-1][0]
        if started not in outcomes:
            outcomes[started] = Outcome(crashed=died)
        elif done.returncode != 0:  # died on the way out, or between two cases
            outcomes[started] = Outcome(crashed=f"after it: {died}")
    return outcomes


def script(code: str, *, env: Mapping[str, str] | None = None) -> str:
    """Runs a program that must end well; returns what it printed."""
    done = run_child(code, env=env)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
    return done.stdout
