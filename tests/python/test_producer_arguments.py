# tests/python/test_producer_arguments.py: junk in the arguments of `__dlpack__` and of the other methods: the right exception, nothing handed out, nothing leaked.
from __future__ import annotations

import enum
import gc
import sys

import pytest
import tenon_exports
from fakes_ctypes import name_of
from producers import CPU, CUDA, NOWHERE, exactly_once, refuse
from tenon_exports import Counter, Matrix

np = pytest.importorskip("numpy")

MINE = ZeroDivisionError("mine")


class Indexed:
    """An integer by `__index__`; raises or lies if told to."""

    def __init__(self, answer):
        self.answer = answer

    def __index__(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def __repr__(self):
        return f"Indexed({self.answer!r})"


class Unprintable(str):
    def __repr__(self):
        raise MINE


class Pair(tuple):
    """Its items are what the tuple holds, whatever Python code says."""

    def __len__(self):
        raise MINE

    def __getitem__(self, item):
        raise MINE

    __iter__ = None


class Text(str):
    """A keyword's name that is no plain str; equal to nothing."""

    def __eq__(self, other):
        return False

    __hash__ = str.__hash__


class Kind(enum.IntEnum):
    CPU = 1
    CUDA = 2


HUGE = 2**64
NUMBERS = {"text": "1", "float": 1.0, "nan": float("nan"), "complex": 1j, "list": [1], "object": object(), "class": int,
           "true": True, "false": False, "huge": HUGE, "minus huge": -HUGE, "beyond huge": 10**400,
           "numpy float": np.float64(1), "bytes": b"1"}
PAIRS = {"number": 1, "text": "10", "list": [1, 0], "none in it": (1, None), "one": (1,), "three": (1, 0, 0),
         "empty": (), "bools": (True, False), "bool second": (1, False), "floats": (1.0, 0.0), "texts": ("1", "0"),
         "set": {1, 2}, "dict": {1: 0}, "nested": ((1, 0),), "huge": (HUGE, 0), "huge second": (1, HUGE), "minus huge": (-HUGE, 0),
         "generator": (i for i in (1, 0))}
JUNK = {
    "stream": NUMBERS,
    "max_version": {**PAIRS, "negative": (-1, 0), "negative second": (1, -1), "above 32 bits": (2**32, 0)},
    "dl_device": {**PAIRS, "no device": "nowhere", "bad number": "cuda:x", "negative number": "cuda:-1",
                  "bytes": b"cpu",
                  "above 31 bits": (2**31, 0), "id above 31 bits": (1, 2**31)},
    "copy": {"one": 1, "zero": 0, "text": "never", "float": 1.0, "object": object(), "empty": (), "numpy": np.True_,
             "enum": Kind.CPU},
}
CASES = [pytest.param(name, value, id=f"{name}: {what}")
         for name, values in JUNK.items() for what, value in values.items()]


def objects():
    """Objects of every kind, one after the other; nothing of them is left over."""
    for fields in (dict(), dict(device=CUDA, address=NOWHERE), dict(readonly=True)):
        counter = Counter()
        with exactly_once(counter):
            yield tenon_exports.produce(counter, **fields)
    yield Matrix(2, 3)


def call(**keywords):
    return lambda obj: obj.__dlpack__(**keywords)


@pytest.mark.parametrize(("name", "value"), CASES)
def test_P06_P36_junk_is_a_type_error_that_names_the_argument(name, value):
    others = dict.fromkeys(("max_version", "stream", "dl_device", "copy")) | {name: value}
    for obj in objects():
        for keywords in ({name: value}, others, dict(reversed(others.items()))):
            assert name in refuse(obj, TypeError, None, call(**keywords))
        del obj


def raises_of_its_own(name, value, exception, match):
    for obj in objects():
        refuse(obj, exception, match, call(**{name: value}))
        del obj


@pytest.mark.parametrize(("name", "value"), [("stream", Indexed(MINE)), ("max_version", (Indexed(MINE), 0)),
                                             ("max_version", (1, Indexed(MINE))), ("dl_device", (1, Indexed(MINE))),
                                             ("stream", Unprintable("1")), ("max_version", Unprintable("1")),
                                             ("copy", Unprintable("1")), ("dl_device", Unprintable("1"))])
def test_P02_exceptions_of_the_junk_itself_pass_unchanged(name, value):
    raises_of_its_own(name, value, ZeroDivisionError, "mine")


@pytest.mark.parametrize(("name", "value", "exception"), [
    ("stream", Indexed("1"), TypeError), ("max_version", (Indexed("1"), 0), TypeError),
    ("dl_device", (1, Indexed(1.0)), TypeError), ("dl_device", "\ud800", UnicodeEncodeError),
    ("stream", np.arange(2), TypeError),
], ids=["stream", "max_version", "dl_device", "surrogate", "array"])
def test_P06_P36_what_python_itself_says_of_junk_passes(name, value, exception):
    raises_of_its_own(name, value, exception, None)


@pytest.mark.parametrize(("keywords", "name"), [
    (dict(max_version=Pair((1, 3))), b"dltensor_versioned"), (dict(max_version=Pair((0, 3))), b"dltensor"),
    (dict(max_version=(Indexed(1), Indexed(0))), b"dltensor_versioned"), (dict(stream=Indexed(-1)), b"dltensor"),
    (dict(stream=np.int64(-1)), b"dltensor"), (dict(max_version=(np.uint8(1), np.int32(0))), b"dltensor_versioned"),
    (dict(copy=False), b"dltensor"),
])
def test_P06_what_is_as_good_as_an_integer_or_a_pair(keywords, name):
    assert name_of(Matrix(2, 3).__dlpack__(**keywords)) == name


@pytest.mark.parametrize("device", [CPU, (Kind.CPU, 0), (Indexed(1), np.int64(0)), Pair(CPU), "cpu", "cpu:0"])
def test_P28_spellings_of_a_device(device):
    assert name_of(Matrix(2, 3).__dlpack__(dl_device=device)) == b"dltensor"


def test_P02_keyword_names_that_are_no_plain_str():
    obj = tenon_exports.produce(Counter())
    for name in ("stream", "max_version", "dl_device", "copy"):
        assert name_of(obj.__dlpack__(**{Text(name): None})) == b"dltensor"
        built = "".join(list(name))  # not the interned one
        assert name_of(obj.__dlpack__(**{built: None})) == b"dltensor"
    refuse(obj, TypeError, "unexpected keyword", call(**{Text("streams"): None}))
    refuse(obj, TypeError, None, lambda o: o.__dlpack__(**{1: None}))


def test_P02_many_keywords():
    refuse(Matrix(2, 3), TypeError, "unexpected keyword", call(**{f"keyword_{i}": None for i in range(1000)}))


def test_P01_called_as_a_function_of_the_wrong_object():
    own = type(tenon_exports.produce(Counter()))
    for method in (own.__dlpack__, Matrix.__dlpack__, own.__dlpack_device__, own.__array__):
        for args in ((), (None,), (7,), (object(),)):
            with pytest.raises(TypeError):
                method(*args)
    with pytest.raises(TypeError):
        own.__dlpack__(Matrix(2, 3))
    with pytest.raises(TypeError):
        Matrix.__dlpack__(tenon_exports.produce(Counter()))


def test_P41_device_method_refuses_arguments():
    for obj in objects():
        refuse(obj, TypeError, None, lambda o: o.__dlpack_device__(None))
        refuse(obj, TypeError, None, lambda o: o.__dlpack_device__(stream=None))
        del obj


@pytest.mark.parametrize(("args", "keywords", "exception"), [
    (("no such type",), {}, TypeError), ((None, 1), {}, TypeError), ((None, None, None), {}, TypeError),
    ((), dict(copy="no"), TypeError), ((), dict(dtypes=None), TypeError),
    ((), dict(copy=Unprintable("x")), ZeroDivisionError), (("f8",), dict(copy=False), ValueError),
])
def test_junk_for_the_conversion_to_an_array(args, keywords, exception):
    refuse(tenon_exports.produce(Counter()), exception, None, lambda o: o.__array__(*args, **keywords))


@pytest.mark.parametrize("fault", [1, 2, 3])
def test_fault_in_the_description_of_a_users_class_reaches_every_protocol(fault):
    """C++ exceptions of `describe`, and descriptions that contradict themselves."""
    matrix = Matrix(2, 3)
    matrix.fault = fault
    for ask in (call(), call(max_version=(1, 3)), call(copy=True), memoryview, lambda m: m.__dlpack_device__(),
                lambda m: m.__array_interface__, lambda m: m.__array__(), bytes):
        refuse(matrix, (RuntimeError, BufferError, TypeError, SystemError), None, ask)
    assert not hasattr(matrix, "fault2")
    matrix.fault = 0
    assert memoryview(matrix).shape == (2, 3)


def test_a_refusal_leaves_nothing_behind():
    obj, junk = tenon_exports.produce(Counter()), [case.values for case in CASES]

    def references():
        gc.collect()
        return [sys.getrefcount(x) for x in (obj, type(obj), *(value for _, value in junk))]

    def refuse_all():
        for name, value in junk:
            refuse(obj, TypeError, None, call(**{name: value}))
        for keywords in (dict(dl_device=(2, 0), copy=False), dict(stream=1)):
            refuse(obj, (BufferError, ValueError), None, call(**keywords))

    refuse_all()
    before = references()
    for _ in range(10):
        refuse_all()
    assert references() == before
