# tests/python/test_bound_interrupts.py: an exception that ends the call, raised by an item of a list, is raised by that call and no other.
from __future__ import annotations

import gc
import sys
import weakref

import pytest
from bound_hazards import of_binder  # noqa: F401
from real_support import need

ENDING = [KeyboardInterrupt, SystemExit, MemoryError, GeneratorExit]


class Item:
    """Raises when it is asked the first time, or every time, and else is of the wrong type, or no array at all."""

    def __init__(self, exception, times: int = 1, then=lambda: None):
        self.exception, self.times, self.then = exception, times, then

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **keywords):
        self.times -= 1
        self.then()
        if self.times >= 0:
            raise self.exception
        raise BufferError("not now")


@pytest.mark.parametrize("exception", ENDING)
def test_F92_the_very_call_raises(of_binder, exception):
    for function in (of_binder.items, of_binder.items_or_any, of_binder.any_or_items):
        mine = exception("said by the item")
        with pytest.raises(exception) as caught:
            function([Item(mine)])
        assert caught.value is mine


@pytest.mark.parametrize("exception", ENDING)
@pytest.mark.parametrize("binder", ["capi", "nanobind", "pybind11"])
def test_what_ends_a_call_passes_through_a_conversion(binder, exception):
    """An argument is converted by its library, which is asked for functions one after another."""
    numpy = need("numpy")
    bound = pytest.importorskip(f"bound_{binder}")
    mine = exception("said by an attribute")

    def raising(self):
        raise mine

    def asked(name, array):
        return array.view(type("Asked", (numpy.ndarray,), {
            name: property(raising), "to": lambda self, kind: numpy.asarray(self).astype(kind)
        }))  # fmt: skip

    transposed, doubles = numpy.ones((2, 3), "f4").T, numpy.ones(3)
    for function, argument in (
        (bound.strides_c, asked("contiguous", transposed)),
        (bound.first_converted, asked("astype", doubles)),
    ):  # fmt: skip
        with pytest.raises(exception) as caught:
            function(argument)
        assert caught.value is mine


@pytest.mark.parametrize("exception", ENDING)
def test_F92_no_later_call_does(of_binder, exception):
    numpy = need("numpy")
    item = Item(exception())
    with pytest.raises(exception):
        of_binder.items_or_any([item])
    assert of_binder.items([numpy.ones(3)]) == 1
    with pytest.raises(TypeError, match="not now"):
        of_binder.items([item])
    assert of_binder.items_or_any([item]) == "anything"
    assert of_binder.any_or_items([item]) == "a list"


def test_F92_a_function_without_a_hook_leaves_nothing_behind(of_binder, monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: reported.append(type(u.exc_value)))
    item = Item(KeyboardInterrupt())
    with pytest.raises((TypeError, KeyboardInterrupt)) as caught:
        of_binder.bare([item])
    # pybind11's casters may throw; nanobind's may not, and there it is reported.
    assert reported == ([] if caught.type is KeyboardInterrupt else [KeyboardInterrupt])
    with pytest.raises(TypeError, match="not now"):
        of_binder.items([item])


def test_F92_calls_within_calls(of_binder):
    """What an inner call raises is the inner call's; what the outer has put off stays the outer's."""
    numpy = need("numpy")
    caught = []

    def inner() -> None:
        try:
            of_binder.items([Item(SystemExit(1))])
        except SystemExit as error:
            caught.append(error.code)

    with pytest.raises(KeyboardInterrupt):
        of_binder.items([Item(KeyboardInterrupt(), then=inner)])
    assert caught == [1]
    assert of_binder.items_and_call([numpy.ones(3)], inner) == 1
    assert caught == [1, 1]

    def quietly() -> None:
        assert of_binder.items([numpy.ones(3)]) == 1

    with pytest.raises(KeyboardInterrupt):
        of_binder.items_and_call([Item(KeyboardInterrupt(), then=quietly)], quietly)


def test_F92_nothing_is_kept(of_binder):
    class Kept(KeyboardInterrupt):
        pass

    item = Item(Kept())
    seen = weakref.ref(item)
    with pytest.raises(Kept) as caught:
        of_binder.items_or_any([item])
    exception = weakref.ref(caught.value)
    caught.value.__traceback__ = None
    del item, caught
    gc.collect()
    assert seen() is None and exception() is None
