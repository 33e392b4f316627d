# tests/python/test_exchange_table.py: the C exchange table of a type: where it is looked for, and how its functions may misbehave.
from __future__ import annotations

import fakes
import tenon
import tenon_probe
from fake_cuda import RECORDS_ALL, Driver, remembers, stream_handle, waits
from isolation import isolated, table
from producers import CUDA, IS_COPIED, NOWHERE, READ_ONLY, Producer, exactly_once, exchange_class, refuse, take


def borrow(obj, **options):
    options.setdefault("read", False)
    return tenon_probe.borrow(obj, **options)


BOTH = (tenon.asdlpack, borrow)


@isolated
def test_X01_table_of_the_type_is_used():
    obj = exchange_class()()
    with exactly_once(obj.struct):
        seen = take(obj)
        assert (seen.shape, seen.data_ptr, seen.version) == ((2, 3), obj.struct.address, (1, 3))
    for _ in range(3):  # the first borrow makes the plan, the others find it
        assert borrow(obj, read=True)["sum"] == 15
    assert (obj.struct.exports, obj.struct.borrows) == (1, 3)


@isolated
def test_X01_attribute_of_the_instance_is_ignored():
    class Plain:
        def __init__(self):
            self.struct = fakes.Struct(shape=(2, 3))
            self.__dlpack_c_exchange_api__ = fakes.Table().capsule()

    obj = Plain()
    for importer in BOTH:
        refuse(obj, TypeError, "__dlpack_c_exchange_api__", importer)
    assert (obj.struct.exports, obj.struct.borrows) == (0, 0)


@isolated
def test_X01_metaclass_tricks_are_ignored():
    class Meta(type):
        def __getattr__(cls, name):
            raise ZeroDivisionError(name)

        @property
        def __dlpack_c_exchange_api__(cls):
            raise ZeroDivisionError

    class Odd(metaclass=Meta):
        pass

    for importer in BOTH:
        refuse(Odd(), TypeError, "no tensor protocol", importer)


@isolated
def test_X01_descriptor_on_the_type_is_not_run():
    class Trap:
        def __get__(self, obj, owner):
            raise ZeroDivisionError

    class Odd:
        __dlpack_c_exchange_api__ = Trap()

    refuse(Odd(), TypeError, "no tensor protocol")


def counts_as_absent(value, attribute="__dlpack_c_exchange_api__"):
    refuse(exchange_class(attribute=attribute, value=value)(), TypeError, "no tensor protocol")


table(globals(), {
    "test_X03_wrong_capsule_name": dict(value=fakes.Table().capsule("dltensor")),
    "test_X03_text": dict(value="table"),
    "test_X03_integer_under_the_new_name": dict(value=fakes.Table().address),
    "test_X03_class": dict(value=int),
    "test_X13_F81_zero_under_the_old_name": dict(value=0, attribute="__c_dlpack_exchange_api__"),
    "test_X13_F81_negative_integer_under_the_old_name": dict(value=-(2**70), attribute="__c_dlpack_exchange_api__"),
    "test_X13_F81_bool_under_the_old_name": dict(value=True, attribute="__c_dlpack_exchange_api__"),
}, counts_as_absent)


@isolated
def test_X03_None_falls_through_to_dlpack():
    class Both(Producer):
        __dlpack_c_exchange_api__ = None

    producer = Both()
    with exactly_once(producer.struct):
        take(producer)
    assert len(producer.calls) == 1


@isolated
def test_X13_old_spelling_as_integer_and_as_capsule():
    made = fakes.Table(version=(1, 2))
    for value in (made.address, made.capsule()):
        obj = exchange_class(attribute="__c_dlpack_exchange_api__", value=value)()
        with exactly_once(obj.struct):
            assert take(obj).shape == (2, 3)
        assert borrow(obj)["shape"] == (2, 3)


@isolated
def test_X13_good_old_spelling_behind_a_bad_new_one():
    obj = exchange_class(fakes.Table(version=(2, 0)), __c_dlpack_exchange_api__=fakes.Table().address)()
    with exactly_once(obj.struct):
        assert take(obj).shape == (2, 3)


def is_unusable(made=None, value=None, attribute="__dlpack_c_exchange_api__"):
    for importer in BOTH:
        obj = exchange_class(made, value=value, attribute=attribute)()
        with exactly_once(obj.struct, exports=0):
            refuse(obj, BufferError, "exchange table", importer)
    class Both(Producer):  # the method is there for those whose table is broken
        pass

    setattr(Both, attribute, value if value is not None else made.capsule())
    producer = Both()
    with exactly_once(producer.struct):
        assert take(producer).shape == (2, 3)
    assert len(producer.calls) == 1 and producer.struct.borrows == 0


table(globals(), {
    "test_X04_major_2_without_a_predecessor": dict(made=fakes.Table(version=(2, 0))),
    "test_X04_major_0": dict(made=fakes.Table(version=(0, 8))),
    "test_X04_cyclic_prev_api": dict(made=fakes.Table(version=(2, 0), prev="self")),
    "test_X04_prev_api_is_a_small_integer": dict(made=fakes.Table(version=(2, 0), prev=24)),
    "test_X04_prev_api_is_not_aligned": dict(made=fakes.Table(version=(2, 0), prev=fakes.Table().address + 4)),
    "test_X10_F81_mandatory_slot_is_null": dict(made=fakes.Table(null=("own",))),
    "test_X13_F81_small_integer": dict(value=1234, attribute="__c_dlpack_exchange_api__"),
    "test_X13_F81_odd_integer": dict(value=fakes.Table().address + 1, attribute="__c_dlpack_exchange_api__"),
}, is_unusable)


@isolated
def test_X13_F81_integer_that_points_nowhere():
    """Pure Python must not be able to make us follow a pointer that is not one."""
    class Junk:
        __c_dlpack_exchange_api__ = 0x10000

    refuse(Junk(), (TypeError, BufferError))


@isolated
def test_X04_prev_api_leads_to_major_1():
    newest = fakes.Table(version=(3, 0), prev=fakes.Table(version=(2, 0), prev=fakes.Table(version=(1, 9))))
    obj = exchange_class(newest)()
    with exactly_once(obj.struct):
        take(obj)
    assert borrow(obj)["shape"] == (2, 3)


@isolated
def test_X05_null_borrow_slot_takes_the_managed_path():
    obj = exchange_class(fakes.Table(null=("borrow",)))()
    with exactly_once(obj.struct, exports=3):
        assert borrow(obj, read=True)["sum"] == 15
        assert borrow(obj)["shape"] == (2, 3)
        take(obj)


@isolated
def test_X10_slots_we_do_not_call_may_be_null():
    obj = exchange_class(fakes.Table(null=("allocate", "to_python", "stream")))()
    with exactly_once(obj.struct):
        take(obj)


@isolated
def test_X06_failure_raises_the_producers_exception():
    for importer in BOTH:
        obj = exchange_class()(exchange="raise")
        with exactly_once(obj.struct, exports=0):
            for _ in range(2):
                refuse(obj, BufferError, "own words", importer)


@isolated
def test_X06_F25_keyboard_interrupt_of_a_table_function():
    for importer in BOTH:
        refuse(exchange_class()(exchange="interrupt"), KeyboardInterrupt, None, importer)


@isolated
def test_X06_failure_without_an_exception():
    for importer in BOTH:
        obj = exchange_class()(exchange="silent")
        with exactly_once(obj.struct, exports=0):
            for _ in range(2):
                refuse(obj, BufferError, "without an exception", importer)


@isolated
def test_X06_silent_failure_falls_through_to_dlpack():
    class Both(Producer):
        __dlpack_c_exchange_api__ = fakes.Table().capsule()

    producer = Both(exchange="silent")
    with exactly_once(producer.struct, exports=3):
        take(producer)
        borrow(producer)
        borrow(producer)


@isolated
def test_X06_a_table_that_contradicts_itself_settles_it():
    """The same library's `__dlpack__` is not asked, neither the first time nor when the type is known."""
    class Both(Producer):
        __dlpack_c_exchange_api__ = fakes.Table().capsule()

    for importer in BOTH:
        producer = Both(shape=(-1,))
        for _ in range(3):
            refuse(producer, tenon.MalformedError, "C exchange table: shape", importer)
        assert producer.calls == []


@isolated
def test_X06_success_with_an_exception_set():
    for importer in BOTH:
        obj = exchange_class()(exchange="ok_raised")
        with exactly_once(obj.struct, exports=None):
            for _ in range(2):
                refuse(obj, BufferError, "although it worked", importer)
    obj = exchange_class(fakes.Table(null=("borrow",)))(exchange="ok_raised")
    with exactly_once(obj.struct):
        refuse(obj, BufferError, "although it worked", borrow)


@isolated
def test_X06_success_without_a_tensor():
    for made in (fakes.Table(), fakes.Table(null=("borrow",))):
        for importer in BOTH:
            obj = exchange_class(made)(exchange="no_out")
            with exactly_once(obj.struct, exports=0):
                for _ in range(2):
                    refuse(obj, BufferError, None, importer)


@isolated
def test_X06_F27_table_function_that_throws_a_cpp_exception():
    for importer in BOTH:
        obj = exchange_class()(exchange="throw")
        for _ in range(2):
            refuse(obj, Exception, None, importer)


@isolated
def test_X06_F81_malformed_managed_struct_is_released_once():
    for fields in (dict(shape=None, ndim=3), dict(shape=(-1,)), dict(flags=8), dict(version=(2, 0)), dict(data=None)):
        obj = exchange_class()(**fields)
        with exactly_once(obj.struct):
            refuse(obj)
        with exactly_once(obj.struct, exports=2):
            refuse(obj, importer=lambda o: borrow(o, writable=True))


@isolated
def test_X07_borrowed_tensor_is_ours_for_the_call():
    """Python that runs during the call cannot change what was checked: shape and strides are copies."""
    import ctypes
    shape = (ctypes.c_int64 * 2)(2, 3)
    obj = exchange_class()(shape=ctypes.addressof(shape), ndim=2)

    def change():
        shape[0] = 2**40

    for _ in range(2):
        shape[0] = 2
        assert borrow(obj, read=True, during=change)["shape"] == (2, 3)


@isolated
def test_X07_C24_borrowed_struct_has_no_flags_so_writing_asks_for_the_managed_one():
    obj = exchange_class()(flags=READ_ONLY)
    for _ in range(2):
        assert borrow(obj)["shape"] == (2, 3)
    with exactly_once(obj.struct, exports=2):
        for _ in range(2):
            refuse(obj, BufferError, "read-only", lambda o: borrow(o, writable=True))
    writable = exchange_class()()
    with exactly_once(writable.struct):
        assert borrow(writable, writable=True)["flags"] == 0


@isolated
def test_X08_the_tables_stream_is_the_tensors_and_a_stream_asked_for_waits_for_it():
    driver, own, mine = Driver(), stream_handle(1), stream_handle(2)

    class Both(Producer):
        __dlpack_c_exchange_api__ = fakes.Table().capsule()

    producer = Both(device=CUDA, data=NOWHERE)
    with exactly_once(producer.struct, exports=7):
        fakes.work_on(own)
        assert tenon.asdlpack(producer).stream == own
        assert driver.calls() == [*remembers(own), "cuEventDestroy event"]
        assert tenon.asdlpack(producer, stream=mine).stream == mine
        assert driver.calls() == [*waits(mine, own), *remembers(mine), "cuEventDestroy event", *RECORDS_ALL]
        assert tenon.asdlpack(producer, stream=1).stream == 1
        assert driver.calls() == waits(1, own) + RECORDS_ALL
        assert tenon.asdlpack(producer, stream=-1).stream == own, "known without asking anybody to wait"
        for number in (0, 7, NOWHERE):
            refuse(producer, ValueError, "stream", stream=number)
        fakes.work_on(0)
    assert producer.calls == [], "nobody has to be called in Python"


@isolated
def test_X08_a_table_that_does_not_say_its_stream_or_lies():
    Driver()
    make = type("Tabled", (Producer,), {"__dlpack_c_exchange_api__": fakes.Table().capsule()})
    producer = make(device=CUDA, data=NOWHERE)
    with exactly_once(producer.struct, exports=2):
        fakes.work_on(-1)
        refuse(producer, BufferError, "which stream")
        fakes.work_on(7)
        refuse(producer, ValueError, "no stream's handle")
    with exactly_once(make().struct, exports=0):
        fakes.work_on(-1)
        take(make())  # the host has no streams to ask for
        fakes.work_on(0)


@isolated
def test_X09_table_published_for_objects_that_are_not_its_own():
    class Impostor:
        __dlpack_c_exchange_api__ = fakes.Table().capsule()

    for importer in BOTH:
        refuse(Impostor(), AttributeError, "struct", importer)


@isolated
def test_X02_subclass_that_inherits_uses_the_table():
    base = exchange_class()
    obj = type("Sub", (base,), {})()
    with exactly_once(obj.struct):
        take(obj)
    assert borrow(obj)["shape"] == (2, 3) and obj.struct.borrows == 1


@isolated
def test_X02_F81_subclass_that_overrides_dlpack_means_it():
    other = fakes.Struct(shape=(7,))
    base = exchange_class(__dlpack__=lambda self, **keywords: self.struct.capsule())
    obj = type("Sub", (base,), {"__dlpack__": lambda self, **keywords: other.capsule()})()
    with exactly_once(other, exports=3):
        assert take(obj).shape == (7,)
        for _ in range(2):
            assert borrow(obj)["shape"] == (7,)
    assert (obj.struct.exports, obj.struct.borrows) == (0, 0)


@isolated
def test_X02_subclass_with_a_table_of_its_own():
    obj = exchange_class(fakes.Table(null=("borrow",)), bases=(exchange_class(),))()
    with exactly_once(obj.struct):
        borrow(obj)
    assert obj.struct.borrows == 0


@isolated
def test_X02_table_added_later_is_noticed():
    class Late(Producer):
        pass

    producer = Late()
    with exactly_once(producer.struct, exports=3):
        take(producer)
        take(producer)
        assert len(producer.calls) == 2
        Late.__dlpack_c_exchange_api__ = fakes.Table().capsule()
        take(producer)
        assert len(producer.calls) == 2
        borrow(producer)
        assert producer.struct.borrows == 1
        del Late.__dlpack_c_exchange_api__
    with exactly_once(producer.struct, exports=4):
        take(producer)
    assert len(producer.calls) == 3


@isolated
def test_X02_table_added_to_a_base_is_noticed():
    class Base(Producer):
        pass

    producer = type("Derived", (Base,), {})()
    take(producer)
    borrow(producer)
    Base.__dlpack_c_exchange_api__ = fakes.Table().capsule()
    borrow(producer)
    assert producer.struct.borrows == 1


@isolated
def test_X14_guard_attribute_taken_from_an_unrelated_class():
    """The C function behind `str.isupper` must not be called on something that is not a str."""
    for name, descriptor in (("is_neg", str.isupper), ("is_conj", str.isupper), ("is_neg", bytearray.isupper),
                             ("requires_grad", type(lambda: 0).__dict__["__code__"]),
                             ("requires_grad", slice.__dict__["start"]), ("is_neg", list.copy)):
        for fields in (dict(shape=(4, 4)), dict(shape=(4,), strides=(2,)), dict(shape=(2,), dtype=(5, 64, 1))):
            for importer in (*BOTH, lambda o: borrow(o, writable=True)):
                obj = exchange_class(**{name: descriptor})(**fields)
                with exactly_once(obj.struct, exports=None):
                    try:
                        importer(obj)
                    except (TypeError, BufferError):
                        pass


@isolated
def test_X14_guards_are_asked_and_obeyed():
    for name in ("is_neg", "is_conj"):
        obj = exchange_class(**{name: lambda self: True})(shape=(2,), dtype=(5, 64, 1))
        with exactly_once(obj.struct, exports=None):
            for importer in BOTH:
                refuse(obj, BufferError, "view", importer)
    obj = exchange_class(requires_grad=property(lambda self: True))()
    with exactly_once(obj.struct, exports=None):
        assert take(obj).readonly
        refuse(obj, readonly=False, match="grad")
        refuse(obj, match="grad", importer=lambda o: borrow(o, writable=True))


@isolated
def test_X14_guard_that_raises():
    mine = ZeroDivisionError("mine")

    def fail(self):
        raise mine

    obj = exchange_class(is_conj=fail)(shape=(2,), dtype=(5, 64, 1))
    with exactly_once(obj.struct, exports=None):
        for importer in BOTH:
            refuse(obj, ZeroDivisionError, "mine", importer)


@isolated
def test_X15_F22_table_function_that_imports_other_types():
    """Foreign code in the middle of the fast path imports many other types, whose plans take the place of ours."""
    armed = False

    def import_many():
        for _ in range(200 if armed else 0):  # through the module under test: each keeps plans of its own
            borrow(type("Another", (Producer,), {})())
            take(type("Another", (Producer,), {})())

    for made in (fakes.Table(), fakes.Table(null=("borrow",))):
        for guards in ({}, {"is_neg": lambda self: False}):
            obj = exchange_class(made, **guards)(on_export=import_many, shape=(4,), strides=(2,))
            for importer in (take, borrow, lambda o: borrow(o, writable=True)):
                with exactly_once(obj.struct, exports=None):
                    armed = False
                    importer(obj)  # the plan is made
                    armed = True
                    importer(obj)  # found, and lost on the way


@isolated
def test_X15_F22_table_function_that_changes_its_own_type():
    def change():
        cls.counter = getattr(cls, "counter", 0) + 1

    cls = exchange_class()
    obj = cls(on_export=change)
    with exactly_once(obj.struct, exports=None):
        for _ in range(5):
            assert borrow(obj)["shape"] == (2, 3)
            assert take(obj).shape == (2, 3)


@isolated
def test_C08_copy_false_and_a_table_that_copies():
    obj = exchange_class()(flags=IS_COPIED)
    with exactly_once(obj.struct):
        refuse(obj, copy=False, match="copy")


@isolated
def test_C09_copy_true_through_a_table():
    obj = exchange_class()()
    with exactly_once(obj.struct):
        seen = take(obj, copy=True)
        assert seen.data_ptr != obj.struct.address and not seen.readonly


@isolated
def test_X11_X12_export_slots_are_never_called_by_an_import():
    obj = exchange_class()()  # its allocator and its to_py_object always fail
    with exactly_once(obj.struct):
        take(obj)


@isolated
def test_C20_F81_device_tensor_is_borrowed_without_being_touched():
    obj = exchange_class()(device=CUDA, data=NOWHERE)
    said = borrow(obj, read=True)
    assert (said["device"], said["pointer"], said["sum"]) == ("cuda:0", NOWHERE, None)
    refuse(obj, BufferError, "host", lambda o: borrow(o, space="host"))
    assert borrow(obj, space="accelerator")["size"] == 6


@isolated
def test_X05_borrow_checks_the_request():
    obj = exchange_class()(shape=(2, 3), strides=(1, 2))
    for _ in range(2):
        refuse(obj, BufferError, "got float32, expected float64", lambda o: borrow(o, dtype="float64"))
        refuse(obj, BufferError, "axes", lambda o: borrow(o, rank=1))
        refuse(obj, BufferError, "row-major", lambda o: borrow(o, order="c"))
        assert borrow(obj, dtype="float32", rank=2, order="f", space="host", read=True)["sum"] == 15
