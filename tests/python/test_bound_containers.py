# tests/python/test_bound_containers.py: text and objects in lists, tuples and dicts that a function of the C API is given stay for the length of the call.
from __future__ import annotations

import gc

import bound_hazards_capi as capi
import pytest
from isolation import run_isolated


class Text(str):
    """Notes when it goes."""

    gone = 0

    def __del__(self) -> None:
        Text.gone += 1


class Fresh(list):
    """A list whose items are made when they are asked for, and are nobody else's."""

    def __iter__(self):
        return (make() for make in list.__iter__(self))


def text(n: int) -> Text:
    return Text(f"a text of some length, number {n}; ")


def fresh(*numbers: int) -> Fresh:
    return Fresh([lambda n=n: text(n) for n in numbers])


ARGUMENTS = {
    "views": lambda: fresh(1, 2, 3),
    "pointers": lambda: fresh(1, 2, 3),
    "objects": lambda: fresh(1, 2, 3),
    "nested": lambda: Fresh([lambda: fresh(1, 2), lambda: fresh(3)]),
    "in_tuple": lambda: fresh(1, 2, 3),
    "in_dict": lambda: {"a": fresh(1, 2), "b": fresh(3)},
    "maybe": lambda: fresh(1, 2, 3),
    "deep": lambda: Fresh([lambda: Fresh([lambda: fresh(1, 2)]), lambda: Fresh([lambda: fresh(3)])]),
}


@pytest.mark.parametrize("function", ARGUMENTS)
def test_F87_items_made_for_the_call_stay_for_the_call(function):
    Text.gone = 0
    argument = ARGUMENTS[function]()

    def look() -> int:
        gc.collect()
        return Text.gone

    before_it_was_read, said = getattr(capi, function)(argument, look)
    assert before_it_was_read == 0
    assert said == text(1) + text(2) + text(3)
    gc.collect()
    assert Text.gone == 6  # the three of the call, which nothing keeps after it, and those compared with


def test_F87_a_list_that_is_emptied_meanwhile():
    for function in ("views", "pointers", "objects", "maybe"):
        items = [text(1), text(2)]

        def empty(items=items) -> int:
            items.clear()
            gc.collect()
            return 0

        assert getattr(capi, function)(items, empty)[1] == text(1) + text(2)


def test_what_is_returned_by_reference_is_not_moved_out_of():
    numpy = pytest.importorskip("numpy")
    x = numpy.zeros(3)
    (first,) = capi.made_once(x)
    first[:] = (1, 2, 3)
    (second,) = capi.made_once(x)
    assert second is not x
    assert second.tolist() == [1, 2, 3]
    assert numpy.shares_memory(first, second)


def test_F87_an_item_that_is_returned_keeps_its_memory():
    numpy = pytest.importorskip("numpy")
    items = [numpy.zeros(3), numpy.full(1 << 20, 2.0)]  # large: its memory goes back to the system
    last = capi.last_of(items)
    items.clear()
    gc.collect()
    assert (last == 2.0).all()


def test_F87_nothing_is_kept_when_the_call_is_refused():
    Text.gone = 0
    with pytest.raises(TypeError):
        capi.views(Fresh([lambda: text(1), lambda: 3]), int)
    with pytest.raises(TypeError):
        capi.nested(Fresh([lambda: fresh(1, 2), lambda: 3]), int)
    gc.collect()
    assert Text.gone == 3


EMPTIED = """
import array, gc, importlib, sys
import tenon
bound = importlib.import_module(sys.argv[1])

class Item:
    asked = 0
    def __dlpack__(self, **keywords):
        self.asked += 1
        out = tenon.asdlpack(array.array("f", [1, 2, 3])).__dlpack__(**keywords)
        if self.asked == int(sys.argv[2]):
            for found in gc.get_referrers(self):
                if type(found) is dict and "only" in found:
                    found.clear()
            found = None
        return out
    def __dlpack_device__(self):
        return (1, 0)

for _ in range(20):
    try:
        bound.totals({"only": Item()})  # takes float64
    except TypeError as refusal:
        str(refusal)
    else:
        raise SystemExit("taken")
"""


@pytest.mark.parametrize("when", [1, 2, 3])
@pytest.mark.parametrize("binder", ["bound_capi", "bound_nanobind", "bound_pybind11"])
def test_F85_a_dict_that_is_emptied_while_its_items_are_asked(binder, when):
    """The call holds a copy of it, which the collector shows to anybody."""
    pytest.importorskip(binder)
    run_isolated(EMPTIED, args=(binder, when), env={"PYTHONMALLOC": "debug"})
