# tests/python/test_odd_values.py: kinds without a name, shapes without elements, and comparisons that are interrupted.
from __future__ import annotations

import copy
import pickle
import sys

import pytest
from arrow_producers import Array
from real_support import need

import tenon

HUGE = (0, 2**62, 2**62)


class Interrupted(BaseException):
    """Like KeyboardInterrupt."""


class Timeout(Exception):
    """What the handler of an alarm may raise, in the middle of anything."""


def raising(e: BaseException):
    def raise_it(*_):
        raise e

    return raise_it


# --- devices and shapes -------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [(99, 0), (99, 7), (2**31 - 1, 2**31 - 1)])
def test_a_device_without_a_name(pair):
    t = tenon.from_pointer(4096, 2, "uint8", device=pair)
    where = t.device
    assert (where, where.pair, str(where)) == (pair, pair, f"device({pair[0]}):{pair[1]}")
    assert where == tenon.device(pair) == tenon.device(str(where)) and not where.is_host
    assert pickle.loads(pickle.dumps(where)) == where == copy.copy(where)
    assert tenon.from_pointer(4096, 2, "uint8", device=where).device == where
    assert str(where) in repr(t) and t.__dlpack_device__() == pair
    for wrong in ("device(99", "device()", "device(1):0", "device(99):-1", "device(99x):0", "device(", "device"):
        assert where != wrong
        with pytest.raises(TypeError, match="is no device"):
            tenon.device(wrong)


def interface(shape, typestr="<f4"):
    return type("Host", (), {"__array_interface__": dict(version=3, shape=shape, typestr=typestr, data=(0, False))})()


@pytest.mark.parametrize("shape", [HUGE, HUGE[::-1], (2**62, 0, 2**62), (0, *(2**63 - 1,) * 5), (0,) * 64])
def test_F52_nothing_of_a_huge_shape(shape):
    t = tenon.asdlpack(interface(shape))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(t, protocol))
        assert (back.shape, back.dtype, back.size, back.nbytes) == (shape, "float32", 0, 0)
    assert copy.deepcopy(t).shape == shape
    assert tenon.from_pointer(0, shape, "float32").shape == shape
    assert tenon.asdlpack(t.__dlpack__(max_version=(1, 0))).shape == shape


# --- comparisons --------------------------------------------------------------------------------------

KINDS = {"dtype": tenon.dtype("float32"), "device": tenon.device("cpu")}
PASSED_ON = [Interrupted(), KeyboardInterrupt(), Timeout(), MemoryError(), RecursionError(), SystemExit()]


@pytest.mark.parametrize("known", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("e", PASSED_ON, ids=lambda e: type(e).__name__)
def test_what_is_no_answer_is_passed_on(known, e):
    liar = type("Liar", (), {"__module__": "torch", "type": property(raising(e)), "__repr__": raising(e)})()
    for compare in (lambda: known == liar, lambda: known != liar, lambda: type(known)(liar)):
        with pytest.raises(type(e)):
            compare()


@pytest.mark.parametrize("known", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("e", [TypeError(), ValueError(), AttributeError(), KeyError(), OverflowError()], ids=repr)
def test_an_object_that_lies_is_unequal(known, e):
    liar = type("Liar", (), {"__module__": "torch", "type": property(raising(e)), "__repr__": raising(e)})()
    assert known != liar and not known == liar


@pytest.mark.parametrize("known", KINDS.values(), ids=KINDS)
def test_too_deep_is_not_unequal(known):
    def dive(answers):
        try:
            dive(answers)
        except RecursionError:
            pass
        try:
            answers.append(known == str(known))
        except RecursionError:
            answers.append("too deep")

    answers: list[object] = []
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        dive(answers)
    finally:
        sys.setrecursionlimit(limit)
    assert set(answers) <= {True, "too deep"} and True in answers


# --- formats of Arrow ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "format, match",
    [
        ("+w:" + "0" * 28 + "3", "format|children"),  # 32 characters
        ("+w:" + "0" * 28 + "3junk", "longer than any number"),
        ("+w:" + "0" * 28 + "31", "longer than any number"),
        ("+w:3" + " " * 40, "longer than any number"),
        ("i" * 33, "none of the Arrow formats"),
        ("tsu:" + "America/Argentina/ComodRivadavia", "timestamps"),
        ("+ud:" + ",".join(map(str, range(60))), "unions"),
    ],
)
def test_F98_a_long_format_is_not_cut_and_believed(format, match):
    with pytest.raises((BufferError, ValueError), match=match):
        tenon.asdlpack(Array(schema={"format": format, "n_children": 0}))


def test_F98_a_list_of_a_long_format():
    from arrow_producers import list_schema, lists, numbers

    for size, taken in (("3", True), ("0" * 20 + "3", True), ("0" * 28 + "3", False), ("0" * 28 + "3x", False)):
        producer = Array(lists(3, numbers()), list_schema(size))
        if taken:
            assert tenon.asdlpack(producer).shape[1] == 3
        else:
            with pytest.raises(ValueError, match="format"):
                tenon.asdlpack(producer)


def test_nothing_of_a_huge_shape_in_numpy():
    np = need("numpy")
    a = np.zeros((0, 2**31, 2))
    assert pickle.loads(pickle.dumps(tenon.asdlpack(a))).shape == a.shape
