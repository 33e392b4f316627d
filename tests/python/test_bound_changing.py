# tests/python/test_bound_changing.py: Python code that a later argument runs gives an earlier one other memory: the call is refused, and none that was freed is read.
from __future__ import annotations

import contextlib
import gc
import threading

import pytest
from bound_hazards import hazards, of_binder  # noqa: F401
from isolation import run_isolated
from producers import Producer, exactly_once, exchange_class
from quick import rest_is_slow
from real_support import need

COUNT = 1000
FLOAT64 = (2, 64, 1)
CHANGED = "changed while the other arguments were read"


class Torch:
    """A tensor, and what takes its memory away."""

    def __init__(self, way: str):
        self.library = need("torch")
        self.way = way

    def ones(self):
        return self.library.ones(COUNT, dtype=self.library.float64)

    def minus(self):
        return self.library.full((COUNT,), -1.0, dtype=self.library.float64)

    def change(self, t) -> None:
        if self.way == "data":
            t.data = self.library.zeros(1, dtype=self.library.float64)
        elif self.way == "set_":
            t.set_()
        else:
            t.resize_(3)


class Numpy:
    """An array, and what takes its memory away, or makes it another."""

    def __init__(self, way: str):
        self.library = need("numpy")
        self.way = way

    def ones(self):
        return self.library.ones(COUNT)

    def minus(self):
        return self.library.full(COUNT, -1.0)

    def change(self, a) -> None:
        if self.way == "setstate":
            a.__setstate__((1, (1,), self.library.dtype("f8"), False, bytes(8)))
        elif self.way == "resize":
            a.resize(2, refcheck=False)
        elif self.way == "dtype":
            a.dtype = "i8"
        elif self.way == "shape":
            a.shape = (2, COUNT // 2)
        else:
            a.setflags(write=False)


KINDS = {
    "torch data": lambda: Torch("data"),
    "torch set_": lambda: Torch("set_"),
    "torch resize_": lambda: Torch("resize_"),
    "numpy setstate": lambda: Numpy("setstate"),
    "numpy resize": lambda: Numpy("resize"),
    "numpy dtype": lambda: Numpy("dtype"),
    "numpy shape": lambda: Numpy("shape"),
}


class Argument:
    """Does something when it is converted, by whatever it is asked for, and then is a plain value."""

    def __init__(self, then=lambda: None):
        self.then = then
        self.asked = 0
        self.array = Producer(shape=(1,), dtype=FLOAT64)

    def run(self) -> None:
        self.asked += 1
        self.then()

    def __index__(self) -> int:
        self.run()
        return 3

    def __float__(self) -> float:
        self.run()
        return 3.0

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **keywords):
        self.run()
        return self.array.__dlpack__(**keywords)


def change_now(kind, victim, churn: list):
    """Takes the memory away, and puts other numbers in the place it had."""

    def change() -> None:
        kind.change(victim)
        gc.collect()
        churn.extend(kind.minus() for _ in range(20))

    return change


def refused(call) -> None:
    with pytest.raises(RuntimeError, match=CHANGED):
        call()


FUNCTIONS = ["then_index", "then_float", "then_array", "then_tensor"]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_F85_a_later_argument_changes_an_earlier_one(hazards, kind, function):
    kind = KINDS[kind]()
    victim, churn = kind.ones(), []
    later = Argument(change_now(kind, victim, churn))
    refused(lambda: getattr(hazards, function)(victim, later))
    assert later.asked >= 1


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", ["torch data", "numpy setstate"])
def test_F85_another_thread_does_it_meanwhile(hazards, kind, function):
    kind = KINDS[kind]()
    victim, churn = kind.ones(), []

    def on_a_thread() -> None:
        thread = threading.Thread(target=change_now(kind, victim, churn))
        thread.start()
        thread.join()

    refused(lambda: getattr(hazards, function)(victim, Argument(on_a_thread)))


@pytest.mark.parametrize("kind", ["torch data", "torch set_", "numpy setstate"])
def test_F85_by_name_in_a_list_in_an_optional_in_a_variant_written_to(hazards, kind):
    kind = KINDS[kind]()
    calls = {
        "then_list": lambda x, y: hazards.then_list(x, [y]),
        "named": lambda x, y: hazards.then_index(x=x, n=y),
        "named the other way round": lambda x, y: hazards.then_index(n=y, x=x),
        "maybe": hazards.maybe_then,
        "either": hazards.either_then,
        "converted": hazards.converted_then,
        "written": hazards.written_then,
        "defaulted": lambda x, y: hazards.defaulted(x, s=y),
    }
    for call in calls.values():
        victim, churn = kind.ones(), []
        later = Argument(change_now(kind, victim, churn))
        refused(lambda call=call, victim=victim, later=later: call(victim, later))


def test_F85_what_is_no_longer_to_be_written_to(hazards):
    kind = Numpy("frozen")
    victim = kind.ones()
    refused(lambda: hazards.written_then(victim, Argument(lambda: kind.change(victim))))
    victim = kind.ones()
    assert hazards.then_index(victim, Argument(lambda: kind.change(victim))) == COUNT


def test_F85_a_converted_copy_is_looked_at_too(hazards):
    """It is ours, and can be found all the same."""
    numpy = need("numpy")
    source = numpy.full(COUNT, 7, "f4")

    def change() -> None:
        copies = [o for o in gc.get_objects() if type(o) is numpy.ndarray and o.dtype == "f8" and o.size == COUNT and o[0] == 7]
        for copy in copies:
            copy.__setstate__((1, (1,), numpy.dtype("f8"), False, bytes(8)))
        found.extend(copies)

    found: list = []
    try:
        assert hazards.converted_then(source, Argument(change)) == 7.0 * COUNT
    except RuntimeError as error:
        assert CHANGED in str(error)
        assert found


def test_F85_subclasses_and_other_dtypes_of_numpy(hazards):
    numpy = need("numpy")

    class Subclass(numpy.ndarray):
        pass

    kind = Numpy("setstate")
    victim, churn = kind.ones().view(Subclass).copy(), []
    refused(lambda: hazards.then_index(victim, Argument(change_now(kind, victim, churn))))


def test_F85_through_a_class_that_is_converted(of_binder):
    kind = Torch("data")
    victim, churn = kind.ones(), []
    refused(lambda: of_binder.then_gauge(victim, Argument(change_now(kind, victim, churn))))
    victim = kind.ones()
    assert of_binder.gauge_then(Argument(lambda: kind.change(victim)), victim) == 0.0
    victim = kind.ones()
    assert of_binder.then_object(victim, Argument(lambda: kind.change(victim))) == COUNT
    assert of_binder.then_rest(victim, 1, Argument(), a=2) == COUNT


def test_F85_with_the_lock_released_for_the_call(of_binder):
    for kind in (Torch("set_"), Numpy("setstate")):
        victim, churn = kind.ones(), []
        refused(lambda kind=kind, victim=victim, churn=churn: of_binder.then_index_unlocked(
            victim, Argument(change_now(kind, victim, churn))))
        assert of_binder.then_index_unlocked(kind.ones(), Argument()) == COUNT
        assert of_binder.then_index_unlocked(kind.ones(), 3) == COUNT


def test_F85_what_changes_before_it_is_read_is_read_as_it_is_then(hazards):
    kind = Torch("data")
    victim = kind.ones()
    assert hazards.index_then(Argument(lambda: kind.change(victim)), victim) == 0.0


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_what_does_not_change_is_taken(hazards, library):
    kind = Torch("") if library == "torch" else Numpy("")
    for function in FUNCTIONS:
        later = Argument()
        assert getattr(hazards, function)(kind.ones(), later) == COUNT
        assert later.asked == 1
    for call in (hazards.maybe_then, hazards.either_then, hazards.converted_then):
        assert call(kind.ones(), Argument()) == COUNT
    assert hazards.written_then(kind.ones(), Argument()) == 2 * COUNT
    assert hazards.maybe_then(None, Argument()) == -1.0
    assert hazards.then_list(kind.ones(), [Argument()]) == COUNT
    assert hazards.then_array(kind.ones(), kind.minus()) == COUNT
    assert hazards.defaulted(kind.ones()) == 2 * COUNT


def test_what_is_held_anyway_need_not_be_looked_at(hazards):
    """A producer that was asked by `__dlpack__` is asked once, whatever the others do."""
    first = Producer(shape=(COUNT,), dtype=FLOAT64, data=bytes(8 * COUNT))
    with exactly_once(first.struct):
        assert hazards.then_index(first, Argument()) == 0.0
        assert len(first.calls) == 1


def test_no_second_look_where_no_code_has_run(hazards):
    """A library that we do not know is asked by its table: once, and a second time, to be held, only when foreign code ran."""

    def taken(call) -> tuple[int, int]:
        first = exchange_class()(shape=(3,), dtype=FLOAT64, data=bytes(24))
        with exactly_once(first.struct, exports=None):
            assert call(first) == 0.0
        return first.struct.borrows, first.struct.exports

    assert taken(hazards.alone) == (1, 0)
    assert taken(lambda x: hazards.then_index(x, 3)) == (1, 0)
    assert taken(lambda x: hazards.then_index(x, True) if hazards.__name__ != "bound_hazards_capi" else hazards.alone(x)) == (1, 0)
    assert taken(lambda x: hazards.then_float(x, 3.0)) == (1, 0)
    assert taken(lambda x: hazards.then_float(x, 3)) == (1, 0)
    assert taken(hazards.defaulted) == (1, 0)
    assert taken(lambda x: hazards.index_then(Argument(), x)) == (1, 0)
    numpy = need("numpy")
    assert taken(lambda x: hazards.then_array(x, numpy.ones(3))) == (1, 0)
    assert taken(lambda x: hazards.then_float(x, Argument())) == (1, 1)
    assert taken(lambda x: hazards.then_index(x, Argument())) == (1, 1)


def test_F85_a_table_of_a_library_we_do_not_know_runs_code(hazards):
    kind = Torch("data")
    victim, churn = kind.ones(), []
    later = exchange_class()(shape=(1,), dtype=FLOAT64, data=bytes(8), on_export=change_now(kind, victim, churn))
    with exactly_once(later.struct, exports=None):
        refused(lambda: hazards.then_array(victim, later))


class Answers:
    """Asked where a tensor lies; at the given time, counted from `armed` on, it does something else first."""

    def __init__(self):
        self.arm(0, None)

    def arm(self, at: int, then) -> None:
        self.asked, self.at, self.then = 0, at, then

    def __call__(self, func, *args):
        self.asked += 1
        if self.asked == self.at:
            self.then()
        return need("torch").device("cpu") if func.overloadpacket.__name__ == "device" else NotImplemented


def answered_by_its_class(torch, answers):
    """A class of tensors that Python answers for: lending one runs code, though the table is PyTorch's own."""

    class Wrapper(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return answers(func)

    tensor = torch.Tensor._make_wrapper_subclass(Wrapper, (COUNT,), dtype=torch.float64, dispatch_device=True)
    with torch._C._DisableTorchDispatch():
        tensor.data = torch.ones(COUNT, dtype=torch.float64)
    return tensor, contextlib.nullcontext()


def answered_by_a_mode(torch, answers):
    """Its class is torch.Tensor; what answers is whatever mode is in force."""

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.overloadpacket.__name__ == "device":
                return answers(func)
            return func(*args, **(kwargs or {}))

    plain = torch.ones(COUNT, dtype=torch.float64)
    return torch.Tensor._make_subclass(torch.Tensor, plain, dispatch_device=True), Mode()


def check_lending_that_runs_code(hazards, way) -> None:
    """At whichever question: the memory is what was there before, and kept, or the change is seen."""
    kind, answers = Torch("data"), Answers()
    later, mode = way(kind.library, answers)
    with mode:
        for call in (
            lambda x: hazards.then_array(x, later),
            lambda x: hazards.three(later, x, 3),
            lambda x: hazards.three(later, x, Argument()),
        ):
            answers.arm(0, None)
            assert call(kind.ones()) == COUNT
            questions = answers.asked
            assert questions > 0, "Python was not asked: nothing is tested"
            for at in range(1, questions + 1):
                victim, churn = kind.ones(), []
                answers.arm(at, change_now(kind, victim, churn))
                try:
                    assert call(victim) in (COUNT, 0)
                except RuntimeError as error:
                    assert CHANGED in str(error)
                assert answers.asked >= at


@pytest.mark.parametrize("way", rest_is_slow([answered_by_its_class, answered_by_a_mode], answered_by_its_class))
def test_F85_lending_a_tensor_of_pytorch_runs_code(way):
    """In a process of its own: PyTorch's dispatcher in Python imports Triton, which crashes beside TensorFlow. One for all
    modules: that takes seconds."""
    need("torch")
    run_isolated(f"import bound_hazards, test_bound_changing as tests\n"
                 f"for module in bound_hazards.installed(): tests.check_lending_that_runs_code(module, tests.{way.__name__})")


def test_F85_what_holds_one_argument_changes_another(hazards):
    """Taking the first again, to hold it, runs code that changes the second."""
    kind = Numpy("setstate")
    victim, churn = kind.ones(), []
    state = {"armed": False}

    def when_armed() -> None:
        if state["armed"]:
            change_now(kind, victim, churn)()

    first = exchange_class()(shape=(3,), dtype=FLOAT64, data=bytes(24), on_export=when_armed)
    for arm in (False, True):
        state["armed"] = False

        def then(arm=arm) -> None:
            state["armed"] = arm

        with exactly_once(first.struct, exports=None):
            if arm:
                refused(lambda: hazards.three(first, victim, Argument(then)))
            else:
                assert hazards.three(first, victim, Argument(then)) == COUNT


def test_F85_the_words_say_what_to_do(hazards):
    kind = Torch("set_")
    victim = kind.ones()
    with pytest.raises(RuntimeError) as caught:
        hazards.then_index(victim, Argument(lambda: kind.change(victim)))
    assert str(caught.value) == (
        "tenon: an argument (torch.Tensor) changed while the other arguments were read: its memory, shape or element type is "
        "another now; convert the other arguments before the call, or pass a copy")
