# tests/python/test_type_cache.py: what is remembered of a type ends with the type, or with the next change to it.
from __future__ import annotations

import gc
import sys

import fakes
import tenon_probe
from isolation import SANITIZED, isolated
from producers import Ancient, Producer, exactly_once, exchange_class, refuse, take


def borrow(obj):
    return tenon_probe.borrow(obj, read=False)


def kinds():
    """Four ways to be imported, each with a shape of its own."""
    def plain(n):
        return type("Same", (Producer,), {})(shape=(n,))

    def ancient(n):
        return type("Same", (Ancient,), {})(shape=(n,))

    def exchanged(n):
        return exchange_class()(shape=(n,))

    def nothing(n):
        return type("Same", (), {})()

    return plain, exchanged, ancient, nothing


@isolated
def test_X02_new_types_at_the_address_of_dead_ones():
    """Each class dies before the next is made, so that addresses come back; each must be itself."""
    makers = kinds()
    addresses = set()
    made = 0
    for n in range(1, 400):
        make = makers[n * 7 % 4]
        obj = make(n)
        addresses.add(id(type(obj)))
        made += 1
        if make is makers[3]:
            refuse(obj, TypeError, "no tensor protocol")
        else:
            with exactly_once(obj.struct, exports=None):
                assert take(obj).shape == (n,)
                assert borrow(obj)["shape"] == (n,)
        del obj
        if n % 3 == 0:
            gc.collect()
    if not SANITIZED:  # which keeps freed memory back
        assert len(addresses) < made, "no address came back: the test has seen nothing"


@isolated
def test_X02_cleared_type_cache():
    """Tags may start again when the interpreter's type cache is cleared."""
    clear = getattr(sys, "_clear_type_cache", None) or sys._clear_internal_caches
    import warnings
    warnings.simplefilter("ignore")

    class Late(Producer):
        pass

    producer = Late()
    for n in range(300):
        take(producer)
        if n % 2:
            Late.__dlpack_c_exchange_api__ = fakes.Table().capsule()
        elif n:
            del Late.__dlpack_c_exchange_api__
        clear()
        for _ in range(n % 7):
            type("Filler", (), {}).__doc__  # takes tags  # noqa: B018
        before = producer.struct.borrows
        borrow(producer)
        assert producer.struct.borrows - before == n % 2, n


@isolated
def test_X02_type_that_is_changed_very_often():
    """A type may run out of tags; then it is looked at every time."""
    class Busy(Producer):
        pass

    producer = Busy()
    for n in range(3000):
        Busy.counter = n
        if n % 100 == 0:
            Busy.__dlpack_c_exchange_api__ = fakes.Table().capsule()
        if n % 100 == 50:
            del Busy.__dlpack_c_exchange_api__
        before = producer.struct.borrows
        borrow(producer)
        assert producer.struct.borrows - before == (n % 100 < 50), n


@isolated
def test_X02_class_of_an_object_is_assigned():
    class One(Producer):
        pass

    class Two(Producer):
        def answer(self, **keywords):
            return self.other.capsule()

    producer = One()
    producer.other = fakes.Struct(shape=(7,))
    for _ in range(3):
        producer.__class__ = One
        assert take(producer).shape == borrow(producer)["shape"] == (2, 3)
        producer.__class__ = Two
        assert take(producer).shape == borrow(producer)["shape"] == (7,)


@isolated
def test_X02_bases_of_a_type_are_assigned():
    class Empty:
        pass

    class Full(Producer):
        pass

    class Moves(Full):
        pass

    producer = Moves()
    for _ in range(3):
        Moves.__bases__ = (Full,)
        assert take(producer).shape == borrow(producer)["shape"] == (2, 3)
        Moves.__bases__ = (type("Bare", (Empty,), {}),)
        refuse(producer, TypeError, "no tensor protocol")
        refuse(producer, TypeError, "no tensor protocol", borrow)


@isolated
def test_C07_method_replaced_on_the_class():
    class Changes(Producer):
        pass

    producer = Changes()
    other = fakes.Struct(shape=(9,))
    assert take(producer).shape == borrow(producer)["shape"] == (2, 3)
    Changes.__dlpack__ = lambda self, **keywords: other.capsule()
    assert take(producer).shape == borrow(producer)["shape"] == (9,)
    Changes.__dlpack__ = None
    refuse(producer, TypeError)
    Changes.__dlpack__ = property(lambda self: lambda **keywords: other.capsule())
    assert take(producer).shape == (9,)
    del Changes.__dlpack__
    assert take(producer).shape == (2, 3)


@isolated
def test_X02_metaclass_with_its_own_mro():
    class Meta(type):
        def mro(cls):
            return super().mro()

    class Odd(Producer, metaclass=Meta):
        pass

    producer = Odd()
    with exactly_once(producer.struct, exports=4):
        for _ in range(2):
            take(producer)
            borrow(producer)


@isolated
def test_X02_class_that_pretends_to_be_numpy():
    """A name is no proof: only the running NumPy's own array type is read as a struct."""
    import types

    fake = types.ModuleType("numpy")
    made = type("numpy.ndarray", (Producer,), {"__slots__": [f"s{n}" for n in range(16)]})
    fake.ndarray = made
    fake.zeros = lambda *arguments: made()
    before = sys.modules.get("numpy")
    sys.modules["numpy"] = fake
    try:
        producer = made()
        with exactly_once(producer.struct, exports=2):
            assert take(producer).shape == borrow(producer)["shape"] == (2, 3)
    finally:
        sys.modules.pop("numpy")
        if before is not None:
            sys.modules["numpy"] = before


@isolated
def test_C10_class_that_pretends_to_be_a_framework():
    for module in ("torch", "jaxlib.xla_extension", "jax", "tensorflow.python", "\udc80", 7, None):
        producer = type("Array", (Producer,), {"__module__": module})()
        with exactly_once(producer.struct, exports=None):
            for importer in (take, borrow):
                try:
                    importer(producer)
                except (AttributeError, BufferError):
                    assert "tensorflow" in module  # it is asked for its dtype, and has none
