# tests/python/test_kept.py: arrays that outlive their call keep their memory: in members, globals, lists and other threads, dropped by whoever comes last.
from __future__ import annotations

import ctypes
import gc
import importlib
import os
import sys
import weakref

import pytest
from isolation import LEAKS_BY_DESIGN, SANITIZED, run_isolated
from producers import Producer, exactly_once, exchange_class
from quick import rest_is_slow
from real_support import need

FLOAT64 = (2, 64, 1)
COUNT = 1000
BINDERS = ["capi", "pybind11", "nanobind"]
#: Every run is a process.
EXIT_RUNS = int(os.environ.get("TENON_EXIT_RUNS", "4" if SANITIZED else "18"))


def module_of(binder: str):
    if binder != "capi":
        pytest.importorskip(binder)
    return importlib.import_module(f"bound_kept_{binder}")


@pytest.fixture(scope="module", params=BINDERS)
def kept(request):
    return module_of(request.param)


@pytest.fixture(scope="module", params=BINDERS[1:])
def with_class(request):
    return module_of(request.param)


@pytest.fixture(autouse=True)
def nothing_stays(request):
    yield
    for name in ("kept", "with_class"):
        if name in request.fixturenames:
            request.getfixturevalue(name).drop()


def numpy_ones():
    return need("numpy").ones(COUNT)


def torch_ones():
    torch = need("torch")
    return torch.ones(COUNT, dtype=torch.float64)


def jax_ones():
    jax = need("jax")
    with jax.experimental.enable_x64() if hasattr(jax.experimental, "enable_x64") else jax.enable_x64(True):
        return jax.numpy.ones(COUNT, dtype="float64")


def buffer_ones():
    return memoryview(bytearray(bytes(ctypes.c_double(1.0)) * COUNT)).cast("d")


def array_ones():
    return __import__("array").array("d", [1.0]) * COUNT


MAKERS = {"numpy": numpy_ones, "torch": torch_ones, "jax": jax_ones, "memoryview": buffer_ones, "array.array": array_ones}
WAYS = ["keep", "keep_moved", "keep_assigned", "keep_fixed", "keep_released", "keep_optional", "keep_variant", "keep_converted"]
DROPS = ["drop", "drop_released", "drop_on_thread"]


def churn() -> list:
    """Memory of the same size is asked for and written to: what was freed is something else by now."""
    torch = sys.modules.get("torch")
    made: list = [bytearray(b"\xff" * 8 * COUNT) for _ in range(50)]
    if "numpy" in sys.modules:
        made += [sys.modules["numpy"].full(COUNT, -1.0) for _ in range(50)]
    if torch is not None:
        made += [torch.full((COUNT,), -1.0, dtype=torch.float64) for _ in range(50)]
    return made


# --- what is kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("maker", MAKERS)
def test_F99_memory_lives_on(kept, maker, way):
    x = MAKERS[maker]()
    getattr(kept, way)(x)
    assert kept.last() is x, "the very object that came"
    kind = type(x)
    del x
    gc.collect()
    others = churn()
    assert kept.total_of_all() == kept.total_on_thread() == COUNT
    assert type(kept.last()) is kind
    del others


@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("way", [*WAYS, "keep_written"])
def test_every_reference_is_given_back(kept, way, drop):
    x = numpy_ones()
    before = sys.getrefcount(x)
    for _ in range(3):
        getattr(kept, way)(x)
    assert kept.count() == 3 and sys.getrefcount(x) > before
    getattr(kept, drop)()
    assert kept.count() == 0 and sys.getrefcount(x) == before


@pytest.mark.parametrize("maker", MAKERS)
def test_what_is_not_kept_is_not_held(kept, maker):
    x = MAKERS[maker]()
    before = sys.getrefcount(x)
    assert kept.same(x) is x
    if hasattr(kept, "Keeper"):
        assert kept.Keeper().size_of(x) == COUNT
    assert sys.getrefcount(x) == before


def test_copies_made_on_other_threads(kept):
    for maker in MAKERS.values():
        x = maker()
        kept.keep_on_threads(x, 8)
        assert kept.count() == 8 and kept.last() is x
        del x
        gc.collect()
        others = churn()
        assert kept.total_on_thread() == 8 * COUNT
        kept.drop_on_thread()
        del others


def test_items_of_a_list(kept):
    for maker in MAKERS.values():
        kept.keep_items([maker(), maker()])
        gc.collect()
        others = churn()
        assert kept.total_of_all() == 2 * COUNT
        kept.drop()
        del others


def test_a_converted_copy_is_kept_too(kept):
    numpy = need("numpy")
    kept.keep_converted(numpy.ones(COUNT, dtype=numpy.float32))
    gc.collect()
    others = churn()
    assert kept.total_of_all() == COUNT and kept.last().dtype == numpy.float64
    del others


def test_new_memory_is_the_same_object_each_time(kept):
    kept.keep_empty_like(torch_ones())
    first = kept.last()
    assert isinstance(first, need("torch").Tensor) and kept.last() is first
    first[:] = 2.0
    assert kept.total_of_all() == 2 * COUNT
    assert kept.made() is kept.made()


def test_a_capsule_is_kept_and_given_back_once(kept):
    for way in WAYS:
        producer = Producer(shape=(3,), dtype=FLOAT64, data=bytes(ctypes.c_double(2.0)) * 3)
        with exactly_once(producer.struct):
            getattr(kept, way)(producer)
            assert kept.last() is producer
            assert producer.struct.releases == 0 and kept.total_of_all() == 6.0
            kept.drop_on_thread()


def test_a_bare_capsule_comes_back_as_a_tensor(kept):
    """The capsule itself is used up."""
    numpy, tenon = need("numpy"), need("tenon")
    for way in ("same", "shared", *WAYS):
        x = numpy_ones()
        made = getattr(kept, way)(x.__dlpack__())
        if made is None:
            made = kept.last()
            assert kept.last() is made, "the same each time"
        assert isinstance(made, tenon.Tensor), way
        assert numpy.shares_memory(numpy.from_dlpack(made), x)
        kept.drop()


def test_a_table_of_another_library_is_asked_to_own(kept):
    producer = exchange_class()(shape=(3,), dtype=FLOAT64, data=bytes(ctypes.c_double(2.0)) * 3)
    struct = producer.struct
    with exactly_once(struct):
        kept.keep_moved(producer)
        assert kept.total_of_all() == 6.0 and struct.releases == 0
        del producer
        kept.drop_released()


def test_numbers_of_axes_and_elements_stay(kept):
    numpy = need("numpy")
    x = numpy.arange(24.0).reshape(2, 3, 4)[:, ::2, ::-1]
    kept.keep(x)
    assert kept.total_of_all() == x.sum()
    for empty in (numpy.ones((0, 3)), numpy.ones(())):
        kept.keep(empty)
        assert kept.last() is empty


# --- what happens to the argument meanwhile -------------------------------------------------------


@pytest.mark.parametrize("change", ["data", "set_", "resize_"])
def test_F99_what_is_kept_stays_when_the_tensor_gets_other_memory(kept, change):
    torch = need("torch")
    x = torch_ones()

    def swap():
        if change == "data":
            x.data = torch.full((1,), 7.0, dtype=torch.float64)
        elif change == "set_":
            x.set_(torch.full((1,), 7.0, dtype=torch.float64))
        else:
            x.data = torch.zeros(0, dtype=torch.float64)
        gc.collect()
        swap.others = churn()

    assert kept.keep_then(x, swap) == COUNT
    kept.keep(x := torch_ones())
    swap()
    assert kept.total_of_all() == COUNT
    assert kept.last() is not x and torch.equal(kept.last(), torch_ones()), "the object shows other memory by now"


def test_an_array_that_is_kept_cannot_be_resized(kept):
    x = numpy_ones()
    kept.keep_moved(x)
    with pytest.raises(ValueError, match="resize"):
        x.resize(3)
    memory = bytearray(16)
    kept.keep(memoryview(memory).cast("d"))
    with pytest.raises(BufferError):
        memory.append(0)
    kept.drop()
    memory.append(0)


def test_writes_are_seen(kept):
    x = numpy_ones()
    kept.keep_written(x)
    assert x.sum() == kept.total_of_all() == 2 * COUNT


def test_an_empty_array_says_so(kept):
    for _ in range(2):
        with pytest.raises(RuntimeError, match="^tenon: the array is empty: nothing was put into it"):
            kept.nothing()


@pytest.mark.parametrize("maker", MAKERS)
def test_a_shared_tensor_is_the_object_that_came(kept, maker):
    x = MAKERS[maker]()
    before = sys.getrefcount(x)
    assert kept.shared(x) is x
    assert sys.getrefcount(x) == before


# --- members --------------------------------------------------------------------------------------


@pytest.mark.parametrize("member", ["fixed", "any_rank", "shared"])
@pytest.mark.parametrize("maker", MAKERS)
def test_a_member_is_set_and_got(with_class, maker, member):
    keeper, x = with_class.Keeper(), MAKERS[maker]()
    before = sys.getrefcount(x)
    setattr(keeper, member, x)
    assert getattr(keeper, member) is x
    other = MAKERS[maker]()
    setattr(keeper, member, other)
    assert getattr(keeper, member) is other and sys.getrefcount(x) == before
    del keeper
    assert sys.getrefcount(other) == before


def test_methods_and_constructors_keep(with_class):
    x, y = numpy_ones(), torch_ones()
    keeper = with_class.Keeper(x)
    assert keeper.get() is x
    keeper.set(y)
    keeper.add(x)
    keeper.add(y)
    assert keeper.get() is y and keeper.many[0] is x and keeper.many[1] is y
    keeper.clear()
    with pytest.raises(RuntimeError, match="the array is empty"):
        keeper.get()


def test_a_member_that_may_be_none(with_class):
    keeper, x = with_class.Keeper(), numpy_ones()
    assert keeper.maybe is None
    keeper.maybe = x
    assert keeper.maybe is x
    keeper.maybe = None
    assert keeper.maybe is None


def test_what_a_property_is_set_to_has_a_name(with_class):
    for member in ("fixed", "maybe"):
        with pytest.raises(TypeError, match="^argument 'value' is not an array: expected"):
            setattr(with_class.Keeper(), member, "nothing")


def test_a_tensor_as_a_member():
    tenon = need("tenon")
    keeper, x = module_of("nanobind").Keeper(), numpy_ones()
    keeper.owned = x
    assert isinstance(keeper.owned, tenon.Tensor) and need("numpy").shares_memory(keeper.owned.numpy(), x)
    del x
    gc.collect()
    assert keeper.owned.numpy().sum() == COUNT


def test_a_tensor_that_was_never_set_says_so(with_class):
    with pytest.raises(BufferError, match="^tenon: the tensor is empty: nothing was put into it"):
        _ = with_class.Keeper().owned
    with pytest.raises(RuntimeError, match="^tenon: the array is empty"):
        _ = with_class.Keeper().shared


def subclassed(library: str):
    """An array that can be in a cycle."""
    if library == "torch":
        return torch_ones()
    numpy = need("numpy")
    return numpy.ones(3).view(type("Mine", (numpy.ndarray,), {}))


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("member", ["fixed", "any_rank", "shared"])
def test_a_cycle_through_a_kept_array_is_collected(with_class, member, library):
    keeper, x = with_class.Keeper(), subclassed(library)
    setattr(keeper, member, x)
    x.keeper = keeper
    seen = weakref.ref(x)
    del keeper, x
    gc.collect()
    assert seen() is None


def test_the_collector_sees_an_object_whose_constructor_has_not_run(with_class):
    for _ in range(20):
        other = bytearray(b"\xff" * 1000)  # in the place of which it may come to lie
        del other
        keeper = with_class.Keeper.__new__(with_class.Keeper)
        gc.collect()
        del keeper


@pytest.mark.parametrize("member", ["fixed", "shared"])
def test_what_two_hold_is_not_taken_from_one(with_class, member):
    """The collector counts: a reference that two arrays share is neither's to show."""
    keeper, other, x = with_class.Keeper(), with_class.Keeper(), subclassed("numpy")
    setattr(keeper, member, x)
    other.add(x)
    with_class.keep(keeper.fixed if member == "fixed" else keeper.shared)
    x.keeper = keeper
    del keeper, x
    for _ in range(3):
        gc.collect()
    assert with_class.total_of_all() == other.many[0].sum() == 3.0
    assert getattr(with_class.last().keeper, member) is with_class.last()


# --- the end --------------------------------------------------------------------------------------

AT_EXIT = """
import gc, importlib, sys
module, run = importlib.import_module(sys.argv[1]), int(sys.argv[2])
import numpy
makers = [lambda: numpy.ones(1000), lambda: numpy.ones((3, 4))[:, ::2]]
if "torch" in sys.argv[3:]:
    import torch
    makers.append(lambda: torch.ones(1000, dtype=torch.float64))
makers.append(lambda: memoryview(bytearray(8000)).cast("d"))
import atexit
atexit.register(module.count)
for n, maker in enumerate(makers):
    module.keep(maker()), module.keep_moved(maker()), module.keep_released(maker())
    module.keep_on_threads(maker(), 4)
    module.keep_items([numpy.ones(5), numpy.ones(6)])
    if hasattr(module, "Keeper"):
        keepers = [module.Keeper(numpy.ones(3)) for _ in range(3)]
        keepers[0].shared, keepers[1].any_rank = maker(), maker()
        cycle = numpy.ones(3).view(type("Mine", (numpy.ndarray,), {}))
        keepers[2].any_rank, cycle.keeper = cycle, keepers[2]
    for k in range(6):
        module.drop_later(maker(), run * 700 + 300 * k * k)
assert module.total_on_thread() == module.total_of_all()
if run % 3 == 1:
    module.drop_on_thread()
elif run % 3 == 2:
    del keepers
    gc.collect()
""".replace("del keepers", "keepers = None")


@pytest.mark.parametrize("binder", rest_is_slow(BINDERS, "nanobind"))
def test_F99_the_process_ends_with_arrays_kept_everywhere(binder):
    """Globals that the C runtime destroys after the interpreter, members, and threads that drop theirs meanwhile."""
    module_of(binder)
    for run in range(-(-EXIT_RUNS // len(BINDERS))):
        libraries = ["torch"] if run % 4 == 3 and not SANITIZED and importlib.util.find_spec("torch") else []
        run_isolated(AT_EXIT, args=(f"bound_kept_{binder}", run, *libraries), env=LEAKS_BY_DESIGN)
