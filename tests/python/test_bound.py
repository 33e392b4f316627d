# tests/python/test_bound.py: the same functions, bound by pybind11, by nanobind and by hand, do the same: the rows of bound_table.py.
from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator

import pytest
from bound_table import FLOAT64, ROWS, Call, Row, said_by
from producers import Producer, exactly_once, exchange_class, raising
from real_support import need

MODULES = ("capi", "pybind11", "nanobind")


@pytest.fixture(scope="module", params=MODULES)
def bound(request):
    """Each of the modules, by turns."""
    if request.param != "capi":
        pytest.importorskip(request.param)
    return importlib.import_module(f"bound_{request.param}")


def fakes_in(call: Call) -> list:
    """Everything among the arguments that counts what it hands out."""
    found = []
    waiting = [*call.args, *call.keywords.values()]
    for thing in waiting:
        if isinstance(thing, (list, tuple)):
            waiting += thing
        elif isinstance(thing, dict):
            waiting += thing.values()
        else:
            found.append(getattr(thing, "struct", thing))
    return [fake for fake in found if hasattr(fake, "exports")]


def check(bound, row: Row) -> None:
    call = row.arguments()
    producers = fakes_in(call)
    function = getattr(bound, row.function)
    # Looking for garbage takes long: only where something counts.
    with exactly_once(*producers, exports=None) if producers else contextlib.nullcontext():
        if row.exception is None:
            result = function(*call.args, **call.keywords)
            if callable(row.result):
                assert row.result(call, result), result
            else:
                assert result == row.result
                assert type(result) is type(row.result)
            del result
        else:
            with pytest.raises(row.exception) as caught:
                function(*call.args, **call.keywords)
            error = caught.value
            assert str(error) == said_by(row)
            assert type(error) is row.exception or row.exception is ValueError
            cause = error.__cause__
            assert (type(cause), str(cause)) == (type(row.cause), str(row.cause))
            error.__traceback__ = error.__cause__ = error.__context__ = None  # their frames hold the producers
            del error, cause, caught
        del call


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_row(bound, row):
    for library in row.needs:
        need(library)
    check(bound, row)


def test_every_row_has_a_name_of_its_own():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)


def test_every_module_has_the_same_functions():
    seen = []
    for name in MODULES:
        if name == "capi" or importlib.util.find_spec(name):
            module = importlib.import_module(f"bound_{name}")
            seen.append({row.function for row in ROWS if hasattr(module, row.function)})
    assert all(functions == {row.function for row in ROWS} for functions in seen)


def test_no_memory_is_a_memory_error(bound):
    """Without a message: the binders say std::bad_alloc there."""
    with pytest.raises(MemoryError):
        bound.fail(Producer(shape=(6,), dtype=FLOAT64), "bad_alloc")


# --- while the function runs -----------------------------------------------------------------------------------------


def running(bound, arrays: list, meanwhile: Callable[[], None]) -> float:
    """The sum of the arrays, taken after `meanwhile` has been called while the function is running."""
    sums: list[float] = []
    thread = threading.Thread(target=lambda: sums.append(bound.total_of_when_told(arrays)))
    thread.start()
    while not bound.is_waiting() and thread.is_alive():
        thread.join(0.001)
    meanwhile()
    bound.tell()
    thread.join()
    return sums[0]


def test_a_list_may_change_while_the_function_runs(bound):
    numpy = need("numpy")
    arrays = [numpy.full(1000, 1.0), numpy.full(1000, 2.0)]

    def clear() -> None:
        arrays.clear()
        gc.collect()
        for _ in range(10):  # in the place of what was let go too early
            numpy.full(1000, -1.0)

    assert running(bound, arrays, clear) == 3000.0


def test_items_of_a_list_are_released_when_the_function_is_done(bound):
    fake = Producer(shape=(0,), dtype=FLOAT64)
    with exactly_once(fake.struct, exports=None):
        def look() -> None:
            assert fake.struct.exports - fake.struct.releases == 1

        assert running(bound, [fake], look) == 0.0


# --- conversions -----------------------------------------------------------------------------------------------------


@pytest.fixture
def reporting(bound) -> Iterator[Callable[[str], None]]:
    bound.reported_conversions()
    yield bound.report_conversions
    bound.report_conversions("")


def test_the_hook_is_told_of_each_conversion(bound, reporting):
    numpy = need("numpy")
    reporting("note")
    bound.first_converted(numpy.ones(3))
    assert bound.reported_conversions() == ["numpy.ndarray -> numpy.ndarray, float32[*]"]
    bound.strides_f(numpy.ones((2, 3)))
    assert bound.reported_conversions() == ["numpy.ndarray -> numpy.ndarray, F-contiguous float32[*, *]"]
    bound.total_of_converted([numpy.ones(3, "f4"), numpy.ones(3), numpy.ones(3, "i4")])
    assert bound.reported_conversions() == ["numpy.ndarray -> numpy.ndarray, float64[*]"] * 2


def test_the_hook_is_not_told_of_what_was_not_passed_on(bound, reporting):
    numpy = need("numpy")
    reporting("note")
    bound.first_converted(numpy.ones(3, "f4"))
    with pytest.raises(TypeError):
        bound.first_converted(numpy.ones((3, 3)))
    with pytest.raises(TypeError):
        bound.strides_c(numpy.ones(3))
    assert bound.reported_conversions() == []


class Converting(Producer):
    """Converts itself, and counts how often."""

    conversions = 0

    def astype(self, dtype):
        self.conversions += 1
        return Producer(shape=self.shape, data=bytes(64))

    def __init__(self, shape, **fields):
        super().__init__(shape=shape, dtype=FLOAT64, **fields)
        self.shape = shape


def test_what_would_be_refused_anyway_is_not_converted(bound):
    fits, too_long = Converting((3,)), Converting((2, 3))
    assert bound.first_converted(fits) == 0.0
    with pytest.raises(TypeError, match="wrong number of axes"):
        bound.first_converted(too_long)
    assert (fits.conversions, too_long.conversions) == (1, 0)


def test_what_the_hook_raises_ends_the_call(bound, reporting):
    numpy = need("numpy")
    reporting("raise")
    for call in (lambda: bound.first_converted(numpy.ones(3)), lambda: bound.total_of_converted([numpy.ones(3, "f4")])):
        with pytest.raises(PermissionError, match="^no copies today$"):
            call()
    assert bound.first_converted(numpy.ones(3, "f4")) == 1.0


def test_conversions_can_be_warned_of(bound, reporting):
    numpy = need("numpy")
    reporting("warn")
    with pytest.warns(RuntimeWarning) as caught:
        bound.first_converted(numpy.ones(3))
    assert [str(w.message) for w in caught] == ["tenon: an argument of type numpy.ndarray was copied to become float32[*]"]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="was copied to become float32"):
            bound.first_converted(numpy.ones(3))


# --- interrupts, capsules --------------------------------------------------------------------------------------------


def test_an_interrupt_is_raised_once(bound):
    """Not now and then again at the next chance."""
    for arguments in (raising(KeyboardInterrupt()), [raising(KeyboardInterrupt())]):
        function = bound.total_of if isinstance(arguments, list) else bound.total
        with pytest.raises(KeyboardInterrupt):
            function(arguments)
        assert sum(range(1000)) == 499500
        assert bound.total_of([]) == 0.0


def test_a_capsule_that_was_refused_can_still_be_used(bound):
    fake = Producer(shape=(2, 3)).struct
    with exactly_once(fake):
        capsule = fake.capsule()
        for refuse in (bound.total, bound.fill_2d, lambda c: bound.total_of([c]), bound.either):
            with pytest.raises(TypeError) as caught:
                refuse(capsule)
            caught.value.__traceback__ = None
        assert bound.total_2d(capsule) == 15.0
        with pytest.raises(TypeError, match="consumed already"):
            bound.total_2d(capsule)
        del capsule, caught


def test_capsules_stay_whole_when_another_argument_is_refused(bound):
    """In every kind of parameter: they are taken when all the arguments fit."""
    structs = [Producer(shape=(6,)).struct for _ in range(4)]
    with exactly_once(*structs):
        capsules = [struct.capsule() for struct in structs]
        with pytest.raises(TypeError):
            bound.sizes_times(*capsules, "not a number")
        assert bound.sizes_times(*capsules, 2) == 48
        with pytest.raises(TypeError, match="consumed already"):
            bound.sizes_times(*capsules, 2)
        del capsules


@pytest.mark.parametrize("places", [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)])
def test_one_capsule_for_two_arguments_is_refused_and_released_once(bound, places):
    numpy = pytest.importorskip("numpy")
    struct = Producer(shape=(6,)).struct
    with exactly_once(struct):
        capsule = struct.capsule()
        arguments = [numpy.ones(6, "float32")] * 4
        for place in places:
            arguments[place] = capsule
        with pytest.raises(BufferError, match="consumed already"):
            bound.sizes_times(*arguments, 2)
        del capsule, arguments


def test_a_borrowed_argument_is_asked_for_once(bound):
    fake = Producer(shape=(2, 3))
    with exactly_once(fake.struct, exports=1):
        assert bound.total_2d(fake) == 15.0
    table = exchange_class()(shape=(2, 3))
    with exactly_once(table.struct, exports=0):
        assert bound.total_2d(table) == 15.0
        assert table.struct.borrows == 1


# --- what is noted of a refusal --------------------------------------------------------------------------------------


def refusal(function, *args) -> str:
    with pytest.raises(TypeError) as caught:
        function(*args)
    caught.value.__traceback__ = None
    return str(caught.value)


def test_what_is_refused_while_a_refusal_is_put_into_words(bound):
    """The type's module is asked for, which asks the same function with the same object, and another."""
    asked, inner = [], []

    class Meta(type):
        @property
        def __module__(cls):
            if len(asked) < 2:
                asked.append(1)
                inner.append(refusal(bound.total, thing))
                refusal(bound.total_of, [thing, object()])
            return "made_up"

    thing = Meta("Thing", (), {})()
    said = "total(): argument 'x' is not an array: expected float64[*], got made_up.Thing; try numpy.asarray(x, 'float64')"
    outer = refusal(bound.total, thing)
    assert len(inner) == 2 and said in inner
    # nanobind asks for it first, for words of its own: these stand when the reason has been told by then.
    assert outer == said or (bound.__name__ == "bound_nanobind" and outer.startswith("total(): incompatible"))
    asked.clear()
    assert refusal(bound.total_of, [thing]) == (
        "total_of(): argument 'xs', item 0, is not an array: expected float64[*], got made_up.Thing; try "
        "numpy.asarray(xs[0], 'float64')")


def test_an_item_that_is_made_when_it_is_asked_for(bound):
    """It is not in the list any more when the reason is told."""
    rows = need("numpy").ones((2, 3), "f4")
    assert refusal(bound.total_of, rows).startswith(
        "total_of(): argument 'xs', an item, has the wrong dtype: expected float64[*], got float32[3] with strides (1,)")


class Thing:
    """No array."""


def test_nothing_that_was_refused_is_kept(bound):
    seen = []
    for function, wrap in ((bound.total, lambda x: x), (bound.either, lambda x: x), (bound.keep, lambda x: x),
                           (bound.total_of, lambda x: [x]), (bound.totals, lambda x: {"a": x})):
        thing = Thing()
        seen.append(weakref.ref(thing))
        assert "is not an array" in refusal(function, wrap(thing))
        del thing
    gc.collect()
    assert [ref() for ref in seen] == [None] * len(seen)


def test_nothing_that_was_refused_is_kept_by_a_call_that_is_under_way(bound):
    """A list's item asks functions that refuse: what they note goes with them, not with the call that goes on."""
    seen, alive = [], []

    class Asking(Producer):
        def answer(self, **keywords):
            for function in (bound.total, bound.keep):
                thing = Thing()
                seen.append(weakref.ref(thing))
                refusal(function, thing)
                del thing
            gc.collect()
            alive.append(sum(ref() is not None for ref in seen))
            return super().answer(**keywords)

    assert bound.total_of([Asking(shape=(0,), dtype=FLOAT64)]) == 0.0
    assert alive and set(alive) == {0}
