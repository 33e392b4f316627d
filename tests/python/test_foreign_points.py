# tests/python/test_foreign_points.py: at every point where code of others can run, everything changes that can: docs/dev/foreign-code.md.
"""Each row is an operation on objects that are made anew for every round. A first round counts the points at which code of
others can run; then there is a round for each of them, in which `mutate` runs there and then: the memory of all arguments
is swapped and what was freed is written over, types are rebound and die, capsules are consumed, the collector runs. What
comes out is the right value, before or after the change, or an exception; never a crash, another value, or a leak.

The points are those of core/foreign_code.hpp, seen by the native module foreign_points; and, before Python 3.12, every
allocation, at which the collector may run and with it any finalizer.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys

import pytest
from isolation import isolated, table

N = 3000  # elements of a kind of memory that is freed at once, and used again by the next that needs as much
OLD, NEW, POISON = 1.0, 2.0, 1000.0
#: What an import or a call may raise when its object changes in the middle. SystemError is a broken rule of the C API.
REFUSALS = (BufferError, TypeError, ValueError, AttributeError, RuntimeError, NotImplementedError)
MOST_ROUNDS = 150  # of the hundreds of points of a first look at NumPy, as many as this, evenly spread


def prepare_child() -> None:
    flags = sys.getdlopenflags()
    sys.setdlopenflags(flags | os.RTLD_GLOBAL)
    try:
        import foreign_points  # noqa: F401  before the modules that look for it
    finally:
        sys.setdlopenflags(flags)


def native(name: str):
    prepare_child()
    return importlib.import_module(name)


# --- where things happen ---------------------------------------------------------------------------------------------


class Points:
    """The points that foreign_code marks."""

    def arm(self, function, at: int) -> None:
        native("foreign_points").arm(function, at)

    def disarm(self) -> int:
        return native("foreign_points").disarm()


class Allocations:
    """Every allocation of an object that the collector knows (before 3.12; later it waits for the interpreter's loop)."""

    def arm(self, function, at: int) -> None:
        self.passed, self.failed, self.busy = 0, None, False

        def seen(phase, info):
            if phase != "start" or self.busy:
                return
            here, self.passed = self.passed, self.passed + 1
            if at in (-1, here):
                self.busy = True
                try:
                    function()
                except BaseException as exception:
                    self.failed = exception
                self.busy = False

        gc.collect()
        self.threshold = gc.get_threshold()
        gc.callbacks.append(seen)
        gc.set_threshold(1)

    def disarm(self) -> int:
        gc.set_threshold(*self.threshold)
        gc.callbacks.pop()
        assert self.failed is None, f"what was to happen at a point raised {self.failed!r}"
        return self.passed


def explore(make, where) -> int:
    """`make()` gives an operation, what is to change in the middle of it, and a check of what came out."""
    run, mutate, check = make()
    with contextlib.suppress(*REFUSALS):
        run()  # what is looked for once, and kept for the process
    gc.collect()
    gc.freeze()  # what libraries have made by now is not looked through each time
    run, mutate, check = make()
    outcome = None
    where.arm(lambda: None, -1)
    try:
        outcome = run()
    except REFUSALS:  # some are refused in any case: what matters is that nothing else happens
        pass
    finally:
        count = where.disarm()
    if outcome is not None:
        check(outcome)
    step = max(1, count // MOST_ROUNDS)
    for at in [-1, *range(0, count, step)]:
        run, mutate, check = make()
        outcome = None
        where.arm(mutate, at)
        try:
            outcome = run()
        except REFUSALS:
            pass
        finally:
            where.disarm()
        if outcome is not None:
            check(outcome)
        del outcome
        gc.collect()
        if hasattr(check, "at_end"):
            check.at_end()
    return count


# --- what changes ----------------------------------------------------------------------------------------------------


def write_over(address: int, keep: list, make, address_of) -> None:
    """Makes what takes the place of memory that was freed, and keeps it; the allocator may give it a while later."""
    for _ in range(64):
        keep.append(make())
        if address_of(keep[-1]) == address:
            return


def torch_memory(size: int = N, dtype: str = "float64"):
    """A tensor, and how its memory is swapped: what it had is freed, and written over by the next of its size."""
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)
    tensor = torch.full((size,), OLD, dtype=kind)
    address = tensor.data_ptr()

    def swap():
        tensor.data = torch.full((size,), NEW, dtype=kind)
        write_over(address, keep, lambda: torch.full((size,), POISON, dtype=kind), lambda t: t.data_ptr())

    keep: list = []
    return tensor, swap


def numpy_memory(size: int = N, dtype: str = "float64"):
    import numpy as np

    array = np.full(size, OLD, dtype)
    address = array.ctypes.data
    state = (1, (size,), np.dtype(dtype), False, np.full(size, NEW, dtype).tobytes())
    keep: list = []

    def swap():
        array.__setstate__(state)
        write_over(address, keep, lambda: np.full(size, POISON, dtype), lambda a: a.ctypes.data)

    return array, swap


def quiet(*actions):
    """Does all of it, and what is refused (a bytearray that is lent cannot grow) is not done."""

    def run():
        for action in actions:
            with contextlib.suppress(Exception):
                action()
        gc.collect()

    return run


class Checked:
    """The sums that are right; and that whatever was handed out has come back."""

    def __init__(self, *right: float, fakes=()):
        self.right = right
        self.fakes = fakes

    def __call__(self, outcome) -> None:
        if callable(outcome):  # what is there now that nothing changes any more
            outcome = outcome()
        assert outcome in self.right, f"{outcome}, and right would be {self.right}"

    def at_end(self) -> None:
        for fake in self.fakes:
            assert fake.exports == fake.releases, f"handed out {fake.exports}, released {fake.releases} times"
            assert not fake.had_error, "released with an exception pending"


# --- import: one row for each rung -----------------------------------------------------------------------------------


def sum_of(how: str, obj) -> float:
    """The sum of all elements, as the C++ side sees them."""
    probe = native("tenon_probe")
    if how == "borrow":
        return probe.borrow(obj)["sum"]
    held = probe.hold(obj)
    del obj
    gc.collect()
    return held.describe()["sum"]


def rebind(obj, other):
    """The object becomes one of another class, and its own class goes away if nobody holds it."""

    def action():
        obj.__class__ = other

    return action


class Nothing:
    """An object that speaks no protocol at all; what others become."""


def of_exchange_table(how):
    tensor, swap = torch_memory()
    return lambda: sum_of(how, tensor), quiet(swap), Checked(N * OLD, N * NEW)


def of_parameter(how):
    torch = pytest.importorskip("torch")
    tensor, _ = torch_memory()
    parameter = torch.nn.Parameter(tensor)  # over the same memory, which goes when both have other
    fresh = torch.full((N,), NEW, dtype=torch.float64)

    def change():
        tensor.data = parameter.data = fresh
        keep.extend(torch.full((N,), POISON, dtype=torch.float64) for _ in range(3))

    keep: list = []
    return lambda: sum_of(how, parameter), quiet(change), Checked(N * OLD, N * NEW)


def of_numpy(how):
    array, swap = numpy_memory()
    # Whoever keeps an array keeps the object: what its owner does to its memory afterwards nobody can prevent.
    changes = quiet(swap) if how == "borrow" else quiet(lambda: array.setflags(write=False))
    return lambda: sum_of(how, array), changes, Checked(N * OLD, N * NEW)


def of_numpy_subclass(how):
    import numpy as np

    class Sub(np.ndarray):
        pass

    array = np.full(N, OLD).view(Sub)
    changes = quiet(lambda: setattr(array, "__class__", np.ndarray), lambda: setattr(Sub, "__dlpack__", None))
    del Sub
    return lambda: sum_of(how, array), changes, Checked(N * OLD)


def of_fake_table(how):
    from producers import exchange_class

    cls = exchange_class()
    obj = cls(shape=(2, 3))
    struct = obj.struct
    changes = quiet(lambda: delattr(type(obj), "__dlpack_c_exchange_api__"), rebind(obj, Nothing))
    del cls
    return lambda: sum_of(how, obj), changes, Checked(15.0, 0.0, fakes=[struct])


def of_dlpack(how):
    import fakes

    struct = fakes.Struct(shape=(2, 3))

    class Producer:
        def __dlpack__(self, **keywords):
            return struct.capsule()

        def __dlpack_device__(self):
            return (1, 0)

    obj = Producer()
    changes = quiet(lambda: delattr(type(obj), "__dlpack__"), rebind(obj, Nothing))
    del Producer
    return lambda: sum_of(how, obj), changes, Checked(15.0, 0.0, fakes=[struct])


def of_cached_capsule(how):
    """The producer keeps its capsule, and somebody else consumes it."""
    import fakes
    import tenon

    struct = fakes.Struct(shape=(2, 3))
    taken: list = []

    class Producer:
        def __init__(self):
            self.capsule = struct.capsule()

        def __dlpack__(self, **keywords):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    obj = Producer()
    capsule = obj.capsule
    changes = quiet(lambda: taken.append(tenon.asdlpack(capsule)), rebind(obj, Nothing))
    return lambda: sum_of(how, obj), changes, Checked(15.0, 0.0)


def of_bare_capsule(how):
    import fakes
    import tenon

    struct = fakes.Struct(shape=(2, 3))
    capsule = struct.capsule()
    return (lambda: sum_of(how, capsule), quiet(lambda: tenon.asdlpack(capsule)),
            Checked(15.0, 0.0, fakes=[struct]))


def of_bytearray(how):
    memory = bytearray([1]) * N
    return lambda: sum_of(how, memory), quiet(lambda: memory.extend(bytes(N))), Checked(N * 1.0, N * 1.0)


def of_memoryview(how):
    memory = memoryview(bytearray([1]) * N)
    return lambda: sum_of(how, memory), quiet(memory.release), Checked(N * 1.0)


def of_array_interface(how):
    memory = bytearray([1]) * N

    class Producer:
        @property
        def __array_interface__(self):
            return described

    described = {"version": 3, "shape": (N,), "typestr": "|u1", "data": memory}
    obj = Producer()
    changes = quiet(described.clear, lambda: memory.extend(bytes(N)), lambda: delattr(type(obj), "__array_interface__"),
                    rebind(obj, Nothing))
    del Producer
    return lambda: sum_of(how, obj), changes, Checked(N * 1.0)


def of_address_interface(how):
    import numpy as np

    array = np.full(N, OLD)

    class Producer:
        def __init__(self):
            self.array = array
            self.__array_interface__ = dict(array.__array_interface__)

    obj = Producer()
    changes = quiet(lambda: obj.__array_interface__.clear(), lambda: delattr(obj, "__array_interface__"), rebind(obj, Nothing))
    return lambda: sum_of(how, obj), changes, Checked(N * OLD)


def of_arrow(how):
    import arrow_producers

    class Producer(arrow_producers.Array):
        pass

    obj = Producer()
    struct = obj.struct
    changes = quiet(lambda: delattr(type(obj), "__arrow_c_array__"), rebind(obj, Nothing))
    del Producer
    return lambda: sum_of(how, obj), changes, Checked(15.0, fakes=[struct] if hasattr(struct, "exports") else [])


RUNGS = {
    "exchange_table": of_exchange_table,
    "parameter": of_parameter,
    "numpy": of_numpy,
    "numpy_subclass": of_numpy_subclass,
    "fake_table": of_fake_table,
    "dlpack": of_dlpack,
    "cached_capsule": of_cached_capsule,
    "bare_capsule": of_bare_capsule,
    "bytearray": of_bytearray,
    "memoryview": of_memoryview,
    "array_interface": of_array_interface,
    "address_interface": of_address_interface,
    "arrow": of_arrow,
}


# --- export ----------------------------------------------------------------------------------------------------------


def bytes_of(array) -> float:
    import numpy as np

    return float(np.asarray(array).sum())


def as_like(model_of):
    """to_python(t, like): C++ memory becomes an array of the library that the other is of."""

    def make(_):
        exports = native("tenon_exports")
        counter = exports.Counter()
        model, swap = model_of()
        data = bytes(24)
        return (lambda: bytes_of(exports.like(counter, model, shape=(2, 3), data=data)), quiet(swap),
                Checked(0.0, fakes=[counter]))

    return make


def empty_like(model_of):
    def make(_):
        exports = native("tenon_exports")
        model, swap = model_of()
        return lambda: bytes_of(exports.empty_like(model, (2, 3), "uint8")), quiet(swap), Checked(42.0)

    return make


def dying_model():
    """An object whose class goes away."""

    class Model:
        def __array_namespace__(self):
            raise AttributeError("none")

    obj = Model()
    return obj, rebind(obj, Nothing)


def producing_model():
    """An object of a library with a table of its own, whose class goes away."""
    from producers import exchange_class

    obj = exchange_class()(shape=(2, 3))
    return obj, rebind(obj, Nothing)


def shown_model():
    """An object that has memory and no library, and whose class goes away."""

    class Model:
        @property
        def __array_interface__(self):
            raise AssertionError("asked")

    obj = Model()
    return obj, rebind(obj, Nothing)


def looked_at(model_of):
    """is_array(obj), of a class that changes meanwhile."""

    def make(_):
        model, swap = model_of()
        return lambda: float(native("bound_results_capi").is_array(model)), quiet(swap), Checked(0.0, 1.0)

    return make


def exported(leave):
    def make(_):
        exports = native("tenon_exports")
        counter = exports.Counter()
        produced = exports.produce(counter, shape=(6,), data=bytes(24))
        others: list = []

        def change():
            others.append(memoryview(produced))
            others.append(produced.__dlpack__())

        def run():
            return leave(produced)

        def let_go():
            nonlocal produced
            produced = None
            others.clear()
            gc.collect()
            assert counter.exports == counter.releases == 1

        check = Checked(0.0)
        check.at_end = let_go
        return run, quiet(change), check

    return make


def through_numpy(obj):
    import numpy as np

    return bytes_of(np.from_dlpack(obj))


def through_tenon(name):
    def leave(obj):
        return native("tenon_probe").borrow(Only(obj, name))["sum"]

    return leave


class Only:
    """Shows one protocol of another object alone."""

    def __init__(self, obj, name):
        setattr(self, name, getattr(obj, name))
        self.owner = obj


EXPORTS = {
    "like_torch": as_like(torch_memory),
    "like_numpy": as_like(numpy_memory),
    "like_dying": as_like(dying_model),
    "like_producing": as_like(producing_model),
    "like_shown": as_like(shown_model),
    "named_numpy": exported(lambda obj: bytes_of(native("bound_results_capi").numpy_of(obj))),
    "named_torch": exported(lambda obj: bytes_of(native("bound_results_capi").torch_of(obj))),
    "named_memoryview": exported(lambda obj: bytes_of(native("bound_results_capi").memory_of(obj))),
    "is_array_dying": looked_at(dying_model),
    "is_array_shown": looked_at(shown_model),
    "empty_like_torch": empty_like(torch_memory),
    "empty_like_numpy": empty_like(numpy_memory),
    "empty_like_dying": empty_like(dying_model),
    "empty_like_shown": empty_like(shown_model),
    "dlpack": exported(through_numpy),
    "buffer": exported(lambda obj: float(sum(memoryview(obj).cast("B").tobytes()))),
    "numpy_asarray": exported(bytes_of),
    "array_interface": exported(through_tenon("__array_interface__")),
    "arrow": exported(lambda obj: 0.0 * len(obj.__arrow_c_array__())),
    "table": exported(lambda obj: native("tenon_probe").hold(obj).describe()["sum"]),
}


# --- bound functions -------------------------------------------------------------------------------------------------


class Loud:
    """A number, or an array, that runs Python when it is looked at."""

    def __init__(self, array=None):
        self.array = array

    def __float__(self):
        return 1.0

    def __index__(self):
        return 1

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return (1, 0)


def bound_add(memory_of, loud: bool):
    """out = x + y, every memory swapped while the arguments are read."""

    def make(binder):
        import numpy as np

        module = native(binder)
        x, swap_x = memory_of()
        y, swap_y = memory_of()
        out, swap_out = memory_of()
        kept = np.full(N, OLD)
        second = Loud(kept) if loud else y

        def run():
            module.add(x, second, out)
            return lambda: float(sum(np.asarray(out).tolist()))

        sums = {N * (a + b) for a in (OLD, NEW) for b in (OLD, NEW)} | {N * NEW}
        # The function may have written to memory that `out` had no longer when it returned.
        return run, quiet(swap_x, swap_y, swap_out), Checked(*sums, N * OLD)

    return make


def bound_sizes(binder):
    module = native(binder)
    x, swap_x = torch_memory(dtype="float32")
    y, swap_y = torch_memory(dtype="float32")
    z, swap_z = numpy_memory(dtype="float32")
    kept, swap_kept = torch_memory(dtype="float32")
    run = lambda: float(module.sizes_times(x, y, z, kept, Loud()))
    return run, quiet(swap_x, swap_y, swap_z, swap_kept), Checked(4.0 * N)


def bound_list(binder):
    module = native(binder)
    x, swap_x = torch_memory()
    y, swap_y = torch_memory()
    arrays = [x, y]
    # nanobind's own caster reads a list's items in place, and holds none of them.
    changes = quiet(swap_x, swap_y, *([] if binder == "bound_nanobind" else [arrays.clear]))
    # The list may have become shorter while it was read.
    sums = [N * (a + b) for a in (OLD, NEW, 0.0) for b in (OLD, NEW, 0.0)]
    return lambda: module.total_of(arrays), changes, Checked(*sums)


def bound_dict(binder):
    module = native(binder)
    x, swap_x = torch_memory()
    arrays = {"x": x}
    return (lambda: sum(module.totals(arrays).values()), quiet(swap_x, arrays.clear), Checked(N * OLD, N * NEW, 0.0))


def bound_fill(binder):
    module = native(binder)
    x, swap = torch_memory(dtype="float32")

    def run():
        module.fill(x, Loud())
        return lambda: float(x.sum())

    return run, quiet(swap), Checked(N * 1.0, N * NEW)


BOUND = {
    "add_torch": bound_add(torch_memory, loud=False),
    "add_numpy": bound_add(numpy_memory, loud=False),
    "add_torch_loud": bound_add(torch_memory, loud=True),
    "add_numpy_loud": bound_add(numpy_memory, loud=True),
    "sizes": bound_sizes,
    "list": bound_list,
    "dict": bound_dict,
    "fill": bound_fill,
}
BINDERS = ("bound_capi", "bound_nanobind", "bound_pybind11")


def kept(way: str, memory_of=torch_memory, wrap=lambda x: x):
    """What is kept of an argument, given back, and dropped, its memory swapped meanwhile."""

    def make(binder):
        module = native(binder)
        module.drop()
        x, swap = memory_of()

        def run():
            getattr(module, way)(wrap(x))
            sums = module.total_of_all()
            module.last()
            if module.total_of_all() != sums:
                return POISON  # what is kept does not change
            module.drop()
            return sums

        return run, quiet(swap), Checked(N * OLD, N * NEW)

    return make


def kept_capsule(binder):
    import fakes

    module = native(binder)
    module.drop()
    struct = fakes.Struct(shape=(6,), dtype=(2, 64, 1), data=bytes(48))
    capsule = struct.capsule()

    def run():
        module.keep(capsule)
        sums = module.total_of_all()
        module.drop_on_thread()
        return sums

    return run, quiet(lambda: importlib.import_module("tenon").asdlpack(capsule)), Checked(0.0, fakes=[struct])


KEPT = {
    "copied": kept("keep"),
    "moved": kept("keep_moved"),
    "assigned": kept("keep_assigned"),
    "converted": kept("keep_converted", memory_of=lambda: torch_memory(dtype="float32")),
    "item": kept("keep_items", wrap=lambda x: [x]),
    "optional": kept("keep_optional"),
    "capsule": kept_capsule,
}
KEEPERS = ("bound_kept_capi", "bound_kept_nanobind", "bound_kept_pybind11")

WHERE = {"points": Points(), "allocations": Allocations()}

table(
    globals(),
    {
        f"test_{kind}_{name}_{how}_{where}": {"make": make, "how": how, "where": where}
        for where in WHERE
        for kind, rows, ways in (("import", RUNGS, ("borrow", "hold")), ("export", EXPORTS, ("out",)), ("bound", BOUND, BINDERS),
                                 ("kept", KEPT, KEEPERS))
        for name, make in rows.items()
        for how in ways
    },
    lambda make, how, where: explore(lambda: make(how), WHERE[where]),
)


@isolated
def test_the_points_are_seen():
    """Without any, all the others would prove nothing."""
    for name in ("tenon_probe", *BINDERS, *KEEPERS):
        if importlib.util.find_spec(name) is None:
            continue
        module = native(name)
        obj = Loud(__import__("array").array("d", [1.0, 2.0]))
        obj.array = memoryview(obj.array)
        look = next(getattr(module, name) for name in ("borrow", "total", "keep") if hasattr(module, name))
        Points().arm(lambda: None, -1)
        with contextlib.suppress(*REFUSALS):
            look(obj)
        assert Points().disarm() > 10


@isolated
def test_a_fault_is_seen():
    """What holds nothing over a point is found out: here a pointer, taken before the memory is swapped."""
    import ctypes

    tensor, swap = torch_memory()
    address = tensor.data_ptr()
    swap()
    assert (ctypes.c_double * N).from_address(address)[0] != OLD
