# tests/python/test_real_torch_swapped.py: a PyTorch tensor that is given other memory while it is imported, and classes that only call themselves PyTorch's.
from __future__ import annotations

import gc
import sys
import threading
from types import SimpleNamespace

import pytest
import tenon_probe
from isolation import isolated, run_isolated
from producers import (  # noqa: F401 - some are for the programs below
    CUDA, NOWHERE, READ_ONLY, Ancient, exactly_once, exchange_class, refuse, take)
from quick import rest_is_slow
from real_support import need, raw

import tenon

torch = need("torch")
weak = torch.multiprocessing.reductions.StorageWeakRef


def is_held(t) -> bool:
    """What the tensor keeps is the storage that its memory lies in."""
    return type(t.owner) is torch.UntypedStorage and t.owner.data_ptr() == t.data_ptr


class Swapper:
    """Gives a tensor new memory each time it is called. The new storage has no Python object yet: one is made
    when it is asked for, and before 3.12 that is where the collector runs."""

    def __init__(self, x):
        self.x, self.count = x, 0

    def __call__(self, *_):
        self.count += 1
        with torch._C.DisableTorchFunction():
            self.x.data = torch.full((1000,), float(self.count))


class Cycle:
    """Calls `swap` when the collector finds it, and is there again for the next time."""

    def __init__(self, swap):
        self.me, self.swap = self, swap

    def __del__(self):
        if self.swap.count < 100:
            self.swap()
            Cycle(self.swap)


@pytest.fixture
def eager_collector():
    before = gc.get_threshold()
    gc.collect()
    yield lambda threshold: gc.set_threshold(threshold, 1, 1)
    gc.set_threshold(*before)


def import_while_swapped(x, **keywords):
    """A tensor that is held, or nothing when it is said that the memory kept changing."""
    try:
        t = tenon.asdlpack(x, **keywords)
    except BufferError as e:
        assert "other memory while it was imported" in str(e)
        return None
    finally:
        gc.set_threshold(0)
    assert is_held(t), "the memory of a held Tensor is not what it keeps"
    return t


@pytest.mark.parametrize("keywords", [{}, {"readonly": False}], ids=repr)
@pytest.mark.parametrize("threshold", [1, 2, 3, 4, 5])
def test_F86_finalizer_that_swaps_the_memory(eager_collector, threshold, keywords):
    for _ in range(10):
        x = torch.nn.Parameter(torch.zeros(1000), requires_grad=False)
        tenon.asdlpack(x)
        swap = Swapper(x)
        swap()
        Cycle(swap)
        eager_collector(threshold)
        import_while_swapped(x, **keywords)
        swap.count = 100


@pytest.mark.parametrize("threshold", [1, 2, 3, 4, 5])
def test_F86_collector_that_swaps_the_memory_each_time(eager_collector, threshold):
    for _ in range(10):
        x = torch.zeros(1000)
        tenon.asdlpack(x)
        swap = Swapper(x)
        swap()
        gc.callbacks.append(swap)
        try:
            eager_collector(threshold)
            taken = import_while_swapped(x)
        finally:
            gc.callbacks.remove(swap)
        assert taken is not None or sys.version_info < (3, 12), "there, it runs between two instructions of Python's alone"


class Meanwhile(torch.overrides.TorchFunctionMode):
    """Does something after each method that is called of PyTorch, before it answers."""

    def __init__(self, then):
        super().__init__()
        self.then = then

    def __torch_function__(self, func, types, args=(), kwargs=None):
        answer = func(*args, **(kwargs or {}))
        self.then()
        return answer


@pytest.mark.parametrize("times", [1, 2, 100])
def test_F86_method_that_swaps_the_memory(times):
    x = torch.zeros(1000)
    swap = Swapper(x)
    tenon.asdlpack(x)
    left = [times]

    def some():
        left[0] -= 1
        if left[0] >= 0:
            swap()

    try:
        with Meanwhile(some):
            t = tenon.asdlpack(x)
    except BufferError as e:
        assert times == 100 and "other memory" in str(e)
    else:
        assert times < 100 and is_held(t)


def test_F86_guards_speak_of_what_is_kept():
    """It is a negative view when it is borrowed, and none any more when `is_neg` has answered."""

    class Swapping(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            with torch._C.DisableTorchFunctionSubclass():
                if func is torch.Tensor.is_neg or func.__name__ == "is_neg":
                    args[0].data = torch.ones(3)
                return func(*args, **(kwargs or {}))

    for importer in (tenon.asdlpack, lambda o: torch.from_dlpack(tenon.asdlpack(o, copy=True))):
        x = torch._neg_view(torch.full((3,), 2.0)).as_subclass(Swapping)
        try:
            t = importer(x)
        except BufferError as e:
            assert "negative" in str(e)
        else:
            assert torch.from_dlpack(t).tolist() == [1, 1, 1]


@isolated
def test_F86_another_thread_swaps_the_memory():
    """Plain memory holds ones, that of negative views twos: whoever sees a two was told a wrong value."""
    x = torch.ones(2, 3)
    plain, negative = torch.ones(2, 3), torch._neg_view(torch.full((2, 3), 2.0))
    over = threading.Event()

    def swap():
        while not over.is_set():
            x.data = negative
            x.data = plain

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(200):
            for importer in (tenon.asdlpack, tenon_probe.borrow):
                try:
                    t = importer(x)
                except BufferError:
                    continue
                assert (t["sum"] == 6) if isinstance(t, dict) else raw(t) == raw(tenon.asdlpack(plain))
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(before)


def test_F86_memory_that_is_not_its_storages():
    """A subclass may hand out any storage as its own: it is not kept in the place of the memory."""
    other = torch.zeros(1)

    class Lying(torch.Tensor):
        def untyped_storage(self):
            return other.untyped_storage()

    class Nonsense(torch.Tensor):
        def untyped_storage(self):
            return 42

    class Pretending(torch.Tensor):
        def untyped_storage(self):
            class UntypedStorage:
                __module__ = "torch"
                data_ptr = nbytes = lambda self: 1 << 40

            return UntypedStorage()

    for cls in (Lying, Nonsense, Pretending):
        x = torch.arange(1000.0).as_subclass(cls)
        storage = weak(torch.Tensor.untyped_storage(x))
        t = tenon.asdlpack(x)
        assert t.data_ptr == x.data_ptr()
        x.data = torch.zeros(1)
        gc.collect()
        assert not storage.expired(), "what keeps the memory points to other memory now"
        del x
        gc.collect()
        assert not storage.expired(), "the memory of a held Tensor was freed"
        del t
        gc.collect()
        assert storage.expired()


HIDING = """
import contextlib, gc, sys
import numpy, tenon, torch
COUNT = 1 << 20

class Named(torch.Tensor):
    def untyped_storage(self):
        return 42

class Overridden(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        told = super().__torch_function__(func, types, args, kwargs or {})
        return 42 if "untyped_storage" in str(func) else told

class Exporting(torch.Tensor):
    def __dlpack__(self, **keywords):
        return super().__dlpack__(**keywords)

class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        told = func(*args, **(kwargs or {}))
        return 42 if "untyped_storage" in str(func) else told

way, known = sys.argv[1], sys.argv[2] == "known"
if known:
    tenon.asdlpack(torch.ones(3))
if way == "a method of the class itself":
    torch.Tensor.untyped_storage = lambda self: 42
elif way == "methods of storages":
    torch.UntypedStorage.data_ptr = lambda self: 1 << 40
    torch.UntypedStorage.nbytes = lambda self: 1 << 40
x = torch.ones(COUNT, dtype=torch.float64)
cls = {"a method": Named, "overridden functions": Overridden, "its own __dlpack__": Exporting}.get(way)
if cls is not None:
    x = torch.Tensor._make_subclass(cls, x)
with Mode() if way == "a mode" else contextlib.nullcontext():
    t = tenon.asdlpack(x)
x.data = torch.zeros(1, dtype=torch.float64)
gc.collect()
churn = [torch.full((COUNT,), -1.0, dtype=torch.float64) for _ in range(20)]
assert numpy.asarray(t).sum() == COUNT, "the memory of a held Tensor was freed"
"""


WAYS_TO_HIDE = ("a method", "a method of the class itself", "methods of storages", "overridden functions", "a mode",
                "its own __dlpack__")  # fmt: skip


@pytest.mark.parametrize("known", rest_is_slow(["known", "new"], "known"))
@pytest.mark.parametrize("way", rest_is_slow(WAYS_TO_HIDE, "a method", "a mode"))
def test_F86_a_storage_that_is_hidden_is_kept_all_the_same(way, known):
    """PyTorch's struct keeps the tensor, which points to other memory now: it is the storage that must be kept."""
    run_isolated(HIDING, args=(way, known))


LYING = """
import torch, tenon
hooks, keep = torch.Tensor._backward_hooks, []
def lie(self):
    keep.append({"x": len})
    hooks.__set__(self, keep[-1])
    return id(keep[-1])          # a word that is in every sample, and no implementation of a tensor
torch.Tensor._cdata = property(lie)
assert tenon.asdlpack(torch.ones(3)).tolist() == [1, 1, 1]
"""


def test_F89_where_the_implementation_is_said_to_be():
    """What is found by the address that a tensor names is called with: only PyTorch's own word will do."""
    run_isolated(LYING)


FOREIGN_TABLE = """
import sys
import fakes, numpy, torch
from bound_hazards import MODULES
import importlib
way, real = sys.argv[1], torch.Tensor.__dlpack_c_exchange_api__
lend = lambda a, **k: fakes.Struct(data=a.ctypes.data, shape=a.shape, dtype=(2, 64, 1), **k)
for name in MODULES:
    hazards = importlib.import_module("bound_hazards_" + name)
    x, y = torch.ones(3, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    if way == "known":
        hazards.alone(x)
    torch.Tensor.__dlpack_c_exchange_api__ = fakes.Table().capsule()
    small = numpy.ones(4)
    for _ in range(3):
        y.struct = lend(small, exchange="ok_raised")
        try:
            hazards.alone(y)
            raise SystemExit("taken, with an exception set")
        except TypeError as e:
            assert "although it worked" in str(e) or "although it worked" in str(e.__cause__), e
        y.struct = lend(small, flags=1)
        try:
            hazards.written_then(y, 1)
            raise SystemExit("read-only memory was written to")
        except TypeError as e:
            assert "read-only" in str(e), e
        assert (small == 1).all()
        big = [numpy.ones(1 << 20)]
        x.struct = lend(big[0])
        def moves():
            x.struct = lend(small)
            big.clear()
        y.struct = lend(small, on_export=moves)
        try:
            hazards.then_array(x, y)
            raise SystemExit("the change was not seen")
        except RuntimeError as e:
            assert "changed" in str(e), e
    torch.Tensor.__dlpack_c_exchange_api__ = real
"""


@pytest.mark.parametrize("way", rest_is_slow(["known", "new"], "known"))
def test_F89_another_table_on_the_class_itself(way):
    """Whose table it is tells the table, not the class it is found on."""
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this torch has no exchange table")
    run_isolated(FOREIGN_TABLE, args=(way,))


def test_tensors_beyond_their_storage_are_refused():
    """What is not there any more was read: the storage has been made smaller under the tensor."""
    for make in (torch.ones, lambda n: torch.nn.Parameter(torch.ones(n)), lambda n: torch.ones(n + 10)[10:]):
        for left in (0, 4, 1000 * 4 - 1):
            x = make(1000)
            x.untyped_storage().resize_(left)
            for act in (tenon.asdlpack, tenon.from_dlpack, lambda x: tenon.asdlpack(x, copy=True)):
                with pytest.raises((BufferError, ValueError), match="beyond its storage|null|cannot"):
                    act(x)
            x.untyped_storage().resize_(2000 * 4)
            assert tenon.asdlpack(x.detach()).shape == (1000,)


def test_empty_tensors_and_offsets_are_taken_by_their_storage():
    base = torch.arange(10.0)
    for x in (torch.empty(0), torch.empty(0, 3), base[10:], base[3:], base[9:], base[2:8:3], base.expand(2, 10),
              base.reshape(2, 5).T, torch.ones(4, dtype=torch.bool), torch.tensor(3)):  # fmt: skip
        t = tenon.asdlpack(x)
        assert type(t.owner) is torch.UntypedStorage
        assert t.shape == tuple(x.shape)


# --- classes that bear a library's name --------------------------------------------------------------


def impostor(**members):
    """A class that calls itself torch.Tensor; its table is its own."""
    made = exchange_class(untyped_storage=lambda self: "a storage", **members)
    made.__module__, made.__name__, made.__qualname__ = "torch", "Tensor", "Tensor"
    return made


def check_impostor(cls):
    for _ in range(2):
        obj = cls()
        with exactly_once(obj.struct):
            seen = take(obj)
            assert seen.data_ptr == obj.struct.address
        frozen = cls(flags=READ_ONLY)
        with exactly_once(frozen.struct, exports=None):
            refuse(frozen, BufferError, "read-only", lambda o: tenon_probe.borrow(o, writable=True))


@isolated
def test_F89_class_that_calls_itself_torch_tensor():
    check_impostor(impostor())


@isolated
def test_F89_class_in_a_module_that_calls_itself_torch():
    cls = impostor()
    real = sys.modules["torch"]
    sys.modules["torch"] = SimpleNamespace(Tensor=cls, UntypedStorage=str, _C=real._C, nn=real.nn)
    try:
        check_impostor(cls)
    finally:
        sys.modules["torch"] = real


@isolated
def test_F89_impostor_before_the_real_one():
    """What is found out about PyTorch is not spoilt by who comes first."""
    check_impostor(impostor())
    t = tenon.asdlpack(torch.ones(3))
    assert type(t.owner) is torch.UntypedStorage


@isolated
def test_F89_table_that_leaves_an_exception():
    """PyTorch's own table does not; one of an impostor is looked after."""
    obj = impostor()(exchange="ok_raised")
    with exactly_once(obj.struct, exports=None):
        refuse(obj, BufferError, "said although it worked", tenon_probe.borrow)
        refuse(obj, BufferError, "said although it worked")


def test_F89_class_that_calls_itself_cupy():
    """CuPy's legacy capsules are known to be writable: those of a class that bears its name are not."""
    run_isolated("""
from test_real_torch_swapped import *
from fake_cuda import Driver
driver = Driver()
ndarray = type("ndarray", (Ancient,), {"__module__": "cupy"})
for present in (False, True):
    if present:
        sys.modules["cupy"] = SimpleNamespace(ndarray=type("ndarray", (), {}))
    for _ in range(3):
        obj = ndarray(device=CUDA, data=NOWHERE)
        assert take(obj).readonly, "a legacy struct cannot say that it is not"
""")
