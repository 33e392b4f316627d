# tests/python/test_hostile_attributes.py: where `__dlpack__` may be found, and what may happen while it is looked for or called.
from __future__ import annotations

import sys

import fakes
import tenon
from isolation import SANITIZED, isolated
from producers import Ancient, Producer, exactly_once, refuse, take


class OneStruct:
    """A base with a struct and no protocol."""

    def __init__(self):
        self.struct = fakes.Struct(shape=(2, 3))

    def export(self, **keywords):
        return self.struct.capsule()


@isolated
def test_F63_property_that_raises_AttributeError_is_absent():
    class Hidden(OneStruct):
        __dlpack__ = property(lambda self: self.no_such_thing)

    refuse(Hidden(), TypeError, "no tensor protocol")


@isolated
def test_F63_property_that_raises_anything_else_propagates():
    mine = ValueError("mine")

    def fail(self):
        raise mine

    for attribute in ("__dlpack__", "__dlpack_device__", "__cuda_array_interface__", "__array_interface__",
                      "__arrow_c_array__", "__arrow_c_device_array__", "__arrow_c_stream__"):
        members = {attribute: property(fail)}
        if attribute == "__dlpack_device__":
            members["__dlpack__"] = OneStruct.export
        obj = type("Raises", (OneStruct,), members)()
        try:
            tenon.asdlpack(obj)
        except ValueError as caught:
            assert caught is mine
        else:
            raise AssertionError(attribute)


@isolated
def test_F63_dlpack_set_to_None_is_absent():
    class Opted(OneStruct):
        __dlpack__ = None

    refuse(Opted(), TypeError, "no tensor protocol")


@isolated
def test_F63_dlpack_that_is_not_callable():
    class Odd(OneStruct):
        __dlpack__ = 7

    refuse(Odd(), TypeError)


@isolated
def test_F63_method_of_the_instance_alone():
    obj = OneStruct()
    obj.__dlpack__ = obj.export
    with exactly_once(obj.struct):
        assert take(obj).shape == (2, 3)
    other = OneStruct()  # of the same class, without the method
    refuse(other, TypeError)
    obj.__dict__.clear()


@isolated
def test_F63_getattr_proxy():
    class Proxy:
        def __init__(self, target):
            self._target = target

        def __getattr__(self, name):
            return getattr(self._target, name)

    producer = Producer()
    with exactly_once(producer.struct):
        assert take(Proxy(producer)).shape == (2, 3)
    assert producer.calls == [{"max_version": (1, 3)}]


@isolated
def test_F63_getattribute_that_raises():
    mine = ZeroDivisionError("mine")

    class Hostile:
        def __getattribute__(self, name):
            raise mine

    try:
        tenon.asdlpack(Hostile())
    except ZeroDivisionError as caught:
        assert caught is mine


@isolated
def test_F63_static_and_class_methods():
    struct = fakes.Struct(shape=(2, 3))
    for wrap in (staticmethod, classmethod):
        function = (lambda **keywords: struct.capsule()) if wrap is staticmethod else (lambda cls, **keywords: struct.capsule())
        obj = type("Odd", (), {"__dlpack__": wrap(function)})()
        with exactly_once(struct, exports=None):
            assert take(obj).shape == (2, 3)


@isolated
def test_F63_class_passed_in_place_of_an_instance():
    refuse(Producer, TypeError, "instance")
    refuse(int, TypeError)
    meta = type("Meta", (type,), {"__dlpack__": lambda cls, **keywords: fakes.Struct(shape=(2,)).capsule()})
    refuse(meta("WithMeta", (), {}), TypeError)


class Recursive:
    def __dlpack__(self, **keywords):
        return tenon.asdlpack(self)


def meet_the_recursion_limit():
    previous = sys.getrecursionlimit()
    if SANITIZED:  # whose stack frames are several times as large
        sys.setrecursionlimit(300)
    try:
        refuse(Recursive(), RecursionError)
    finally:
        sys.setrecursionlimit(previous)


@isolated
def test_F63_C25_self_recursive_producer():
    meet_the_recursion_limit()


@isolated
def test_F63_self_recursive_producer_on_a_thread():
    import threading

    failures = []

    def run():
        try:
            meet_the_recursion_limit()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failures, failures


@isolated
def test_F63_subclass_overriding_and_subclass_inheriting():
    class Inherits(Producer):
        pass

    class Overrides(Producer):
        def __dlpack__(self, **keywords):
            return self.other.capsule()

    first, second = Inherits(), Overrides()
    second.other = fakes.Struct(shape=(7,))
    with exactly_once(first.struct), exactly_once(second.other):
        assert take(first).shape == (2, 3)
        assert take(second).shape == (7,)
    assert second.struct.exports == 0


@isolated
def test_F63_class_assigned_during_the_call():
    """The object changes its class while it is imported: what was learnt is not said of the other class."""
    class Other(Ancient):
        def answer(self, **keywords):
            if self.fails:
                raise BufferError("not now")
            return Ancient.answer(self, **keywords)

    class Turncoat(Producer):
        def __dlpack__(self, **keywords):
            self.__class__ = Other
            return self.struct.capsule()

    Other.fails = True
    refuse(Other(), match="not now")  # seen, but how it wants to be called is not known yet
    turncoat = Turncoat()
    with exactly_once(turncoat.struct):
        take(turncoat)
    old = Other()
    old.fails = False
    with exactly_once(old.struct):
        take(old)


@isolated
def test_F26_C_functions_that_break_the_calling_rules():
    for function in (fakes.returns_null, fakes.returns_with_error):
        for attribute in ("__dlpack__", "__dlpack_device__"):
            members = {attribute: staticmethod(function)}
            if attribute == "__dlpack_device__":
                members["__dlpack__"] = OneStruct.export
            refuse(type("Broken", (OneStruct,), members)(), SystemError)
