# tests/python/test_negotiation.py: how `__dlpack__` is called: keywords, retries, streams, devices, copies, exceptions.
from __future__ import annotations

import enum
import signal

import fakes
import tenon
from isolation import isolated, table
from fake_cuda import Driver, stream_handle
from producers import (CPU, CUDA, CUDA_HOST, IS_COPIED, NOWHERE, ROCM, Ancient, Producer, exactly_once, raising, refuse,
                       take)

# --- keywords -------------------------------------------------------------------------------------


def prepare_child():
    Driver()  # before anybody looks for a real one


@isolated
def test_C07_max_version_is_asked_for():
    producer = Producer()
    with exactly_once(producer.struct):
        assert take(producer).version == (1, 3)
    assert producer.calls == [{"max_version": (1, 3)}]


def fresh_ancient(**members):
    return type("FreshAncient", (Ancient,), members)()


@isolated
def test_C07_F26_type_error_is_retried_once_and_remembered_per_type():
    producer = fresh_ancient()
    with exactly_once(producer.struct, exports=3):
        take(producer)
        assert [sorted(call) for call in producer.calls] == [["max_version"], []]
        take(producer)
        assert [sorted(call) for call in producer.calls[2:]] == [[]], "the type's dialect was forgotten"
        take(producer)
        assert len(producer.calls) == 4
    other = fresh_ancient()  # another class: asked anew
    with exactly_once(other.struct):
        take(other)
    assert len(other.calls) == 2


@isolated
def test_C07_dialect_is_forgotten_when_the_type_changes():
    producer = fresh_ancient()
    with exactly_once(producer.struct, exports=2):
        take(producer)
        type(producer).answer = Producer.answer
        take(producer)
    assert producer.calls[-1] == {"max_version": (1, 3)}


@isolated
def test_F26_own_type_error_of_a_modern_producer_is_not_retried():
    class Modern(Producer):
        fail = False

        def answer(self, **keywords):
            if self.fail:
                raise TypeError("mine")
            return super().answer(**keywords)

    producer = Modern()
    with exactly_once(producer.struct):
        take(producer)
        producer.fail = True
        refuse(producer, TypeError, "mine")
    assert len(producer.calls) == 2


@isolated
def test_F26_second_type_error_has_the_first_as_context():
    errors = [TypeError("first"), TypeError("second"), TypeError("third")]
    left = iter(errors)

    class Fails:
        calls = 0

        def __dlpack__(self, **keywords):
            Fails.calls += 1
            raise next(left)

        def __dlpack_device__(self):
            return CPU

    try:
        tenon.asdlpack(Fails())
    except TypeError as caught:
        assert caught is errors[1]
        assert caught.__context__ is errors[0]
    else:
        raise AssertionError("no exception")
    assert Fails.calls == 2


@isolated
def test_F26_same_exception_raised_twice_is_not_its_own_context():
    mine = TypeError("mine")
    producer = raising(mine)
    try:
        tenon.asdlpack(producer)
    except TypeError as caught:
        assert caught is mine and caught.__context__ is not mine
    assert type(producer).calls == 2


def passes_unchanged(exception):
    producer = raising(exception)
    try:
        tenon.asdlpack(producer)
    except BaseException as caught:
        assert caught is exception, caught
    else:
        raise AssertionError("no exception")
    assert type(producer).calls == 1


class MyError(Exception):
    pass


table(globals(), {
    "test_F25_KeyboardInterrupt_propagates": dict(exception=KeyboardInterrupt()),
    "test_F25_SystemExit_propagates": dict(exception=SystemExit(3)),
    "test_C26_BufferError_is_the_producers_own": dict(exception=BufferError("mine")),
    "test_C26_RuntimeError_is_the_producers_own": dict(exception=RuntimeError("mine")),
    "test_C26_MemoryError_is_the_producers_own": dict(exception=MemoryError("mine")),
    "test_C26_AttributeError_is_the_producers_own": dict(exception=AttributeError("mine")),
    "test_C26_NotImplementedError_is_the_producers_own": dict(exception=NotImplementedError("mine")),
    "test_C26_an_exception_of_its_own_class": dict(exception=MyError("mine")),
}, passes_unchanged)


@isolated
def test_C25_no_protocol_at_all_is_a_type_error_that_lists_the_rungs():
    for obj in (7, None, "text", object(), 1.5, {}, lambda: 0):
        text = refuse(obj, TypeError)
        assert "__dlpack__" in text and "buffer" in text and "__cuda_array_interface__" in text
        assert "__arrow_c_array__" in text and "__arrow_c_stream__" in text


@isolated
def test_C08_copy_and_device_are_passed_only_when_set():
    producer = Producer(flags=IS_COPIED)
    with exactly_once(producer.struct, exports=3):
        take(producer)
        take(producer, device="cpu")  # it is there already
        take(producer, copy=True)
    assert producer.calls == [{"max_version": (1, 3)}, {"max_version": (1, 3)}, {"max_version": (1, 3), "copy": True}]
    elsewhere = Producer(device=CUDA, data=NOWHERE)
    with exactly_once(elsewhere.struct):
        refuse(elsewhere, device="cpu", copy=False, match="device")
    assert elsewhere.calls == [{"max_version": (1, 3), "dl_device": CPU, "copy": False}]


@isolated
def test_C08_copy_false_is_passed_and_a_copy_then_refused():
    producer = Producer()
    with exactly_once(producer.struct):
        take(producer, copy=False)
    assert producer.calls == [{"max_version": (1, 3), "copy": False}]
    copier = Producer(flags=IS_COPIED)
    with exactly_once(copier.struct):
        refuse(copier, copy=False, match="copy")


@isolated
def test_C09_copy_is_made_here_when_the_producer_did_not():
    for make in (Producer, Ancient):
        producer = make()
        with exactly_once(producer.struct):
            copied = tenon.asdlpack(producer, copy=True)
            assert producer.struct.releases == 1, "the original is not needed any more"
            assert copied.data_ptr != producer.struct.address and copied.shape == (2, 3)
            assert copied.flags & IS_COPIED and not copied.readonly
            del copied


@isolated
def test_C09_F26_copy_is_made_here_when_the_producer_refuses_to():
    class NeverCopies(Producer):
        def answer(self, **keywords):
            if keywords.get("copy"):
                raise BufferError("no copies")
            return self.struct.capsule()

    producer = NeverCopies()
    with exactly_once(producer.struct):
        assert take(producer, copy=True).data_ptr != producer.struct.address
    assert [call.get("copy") for call in producer.calls] == [True, None]


@isolated
def test_C09_copy_of_the_producer_is_not_copied_again():
    producer = Producer(flags=IS_COPIED)
    with exactly_once(producer.struct):
        assert take(producer, copy=True).data_ptr == producer.struct.address


@isolated
def test_C09_memory_that_cannot_be_copied_here_is_refused():
    Driver().place(known=False)
    for device, reason in ((CUDA, "CUDA knows of no memory"), (ROCM, "HIP library"), ((8, 0), "only host memory")):
        producer = Producer(device=device, data=NOWHERE)
        with exactly_once(producer.struct):
            refuse(producer, copy=True, match=reason)


def junk_argument(**options):
    producer = Producer()
    refuse(producer, (TypeError, OverflowError), **options)
    assert producer.calls == []


table(globals(), {
    "test_F31_junk_device_text": dict(device="gpu"),
    "test_F31_junk_device_tuple": dict(device=(1,)),
    "test_F31_junk_device_floats": dict(device=(1.0, 0)),
    "test_F31_junk_device_huge": dict(device=(2**40, 0)),
    "test_F31_junk_device_beyond_long": dict(device=(2**80, 0)),
    "test_F31_junk_device_list": dict(device=[1, 0]),
    "test_F31_junk_device_bool": dict(device=(True, 0)),
    "test_F31_junk_stream_text": dict(stream="1"),
    "test_F31_junk_stream_float": dict(stream=1.0),
    "test_F31_junk_stream_bool": dict(stream=True),
    "test_F31_junk_stream_beyond_64_bits": dict(stream=2**80),
    "test_F31_junk_copy": dict(copy=1),
    "test_F31_junk_readonly": dict(readonly="yes"),
    "test_F31_unknown_keyword": dict(max_version=(1, 0)),
}, junk_argument)


@isolated
def test_F31_positional_arguments():
    for arguments in ((), (Producer(), None)):
        try:
            tenon.asdlpack(*arguments)
        except TypeError:
            continue
        raise AssertionError("taken")


# --- streams --------------------------------------------------------------------------------------


HANDLE = stream_handle(1)


def stream_passed(device, wanted=None, **options):
    Driver(), Driver("HIP")
    producer = Producer(device=device, data=NOWHERE)
    with exactly_once(producer.struct):
        take(producer, **options)
    assert len(producer.calls) == 1
    if wanted is None:
        assert "stream" not in producer.calls[0], producer.calls
    else:
        assert producer.calls[0]["stream"] == wanted, producer.calls


table(globals(), {
    "test_C20_F83_cuda_is_told_the_legacy_default_stream": dict(device=CUDA, wanted=1),
    "test_C20_F83_cuda_is_told_the_callers_stream": dict(device=CUDA, stream=HANDLE, wanted=HANDLE),
    "test_C20_cuda_is_told_not_to_synchronise": dict(device=CUDA, stream=-1, wanted=-1),
    "test_C20_cuda_second_device": dict(device=(2, 1), wanted=1),
    "test_C20_rocm_default_stream_is_zero": dict(device=ROCM, wanted=0),
    "test_C20_rocm_is_told_the_callers_stream": dict(device=ROCM, stream=HANDLE, wanted=HANDLE),
    "test_C20_no_stream_for_the_cpu": dict(device=CPU),
    "test_C20_no_stream_for_the_cpu_even_if_given": dict(device=CPU, stream=7),
    "test_C20_no_stream_for_pinned_memory": dict(device=CUDA_HOST),
    "test_C20_no_stream_for_managed_memory": dict(device=(13, 0)),
    "test_C20_no_stream_of_our_own_for_an_unknown_kind": dict(device=(14, 0)),
    "test_C20_callers_stream_for_an_unknown_kind": dict(device=(14, 0), stream=5, wanted=5),
}, stream_passed)


@isolated
def test_C20_no_stream_when_the_cpu_is_asked_for():
    class Moves(Producer):
        def answer(self, **keywords):
            return self.on_host.capsule()

    producer = Moves(device=CUDA, data=NOWHERE)
    producer.on_host = fakes.Struct(shape=(2, 3))
    with exactly_once(producer.on_host):
        assert take(producer, device="cpu").device == "cpu"
    assert producer.calls == [{"max_version": (1, 3), "dl_device": CPU}]


@isolated
def test_C21_runtime_error_about_a_stream_is_retried_without_it():
    class RefusesStreams(Producer):
        def answer(self, **keywords):
            if "stream" in keywords:
                raise RuntimeError("streams are not supported")
            return self.struct.capsule()

    producer = RefusesStreams(device=CUDA, data=NOWHERE)
    with exactly_once(producer.struct):
        take(producer)
    assert [("stream" in call) for call in producer.calls] == [True, False]


@isolated
def test_C21_F26_dlpack_is_never_called_more_than_twice():
    class RefusesEverything(Producer):
        def answer(self, **keywords):
            raise (TypeError if "max_version" in keywords else RuntimeError)(f"{sorted(keywords)}")

    producer = RefusesEverything(device=CUDA, data=NOWHERE)
    refuse(producer, RuntimeError)
    assert len(producer.calls) == 2


# --- devices --------------------------------------------------------------------------------------


@isolated
def test_C22_F47_device_method_that_lies_raises_and_releases_once():
    for said, true in ((CUDA, CPU), (CPU, CUDA), (CUDA, (2, 1)), ((99, 0), CPU), ((-1, -1), CPU)):
        producer = Producer(said_device=said, device=true, data=NOWHERE)
        with exactly_once(producer.struct):
            refuse(producer, match="device")


@isolated
def test_C22_pinned_memory_called_cpu_is_no_lie():
    producer = Producer(said_device=CUDA_HOST, device=CPU)
    with exactly_once(producer.struct):
        assert take(producer).device == "cpu"


@isolated
def test_C22_device_not_delivered_is_refused():
    for asked in (CPU, (8, 0), (2, 1), ROCM):
        producer = Producer(device=CUDA, data=NOWHERE)
        with exactly_once(producer.struct):
            refuse(producer, device=asked, copy=False, match="device")
    producer = Producer(device=(8, 0), data=NOWHERE)
    with exactly_once(producer.struct):
        refuse(producer, device=CPU, match="device")


@isolated
def test_C22_device_method_may_be_missing_or_an_enum():
    class Kind(enum.IntEnum):
        CPU = 1

    class NoDevice:
        def __init__(self):
            self.struct = fakes.Struct(shape=(2,))

        def __dlpack__(self, **keywords):
            return self.struct.capsule()

    for producer in (NoDevice(), type("NoneDevice", (NoDevice,), {"__dlpack_device__": None})(),
                     type("EnumDevice", (NoDevice,), {"__dlpack_device__": lambda self: (Kind.CPU, 0)})()):
        with exactly_once(producer.struct):
            assert take(producer).device == "cpu"


@isolated
def test_C22_F47_device_method_that_answers_junk():
    for answer in (None, 1, (1,), (1, 0, 0), [1, 0], ("cpu", 0), (1.5, 0), (2**80, 0), (1, 2**33)):
        producer = Producer()
        producer.said_device = answer
        with exactly_once(producer.struct, exports=0):
            refuse(producer, tenon.MalformedError, "__dlpack_device__")


@isolated
def test_C26_device_method_that_raises():
    for exception in (ValueError("mine"), KeyboardInterrupt()):
        class Fails(Producer):
            def __dlpack_device__(self):
                raise exception

        producer = Fails()
        with exactly_once(producer.struct, exports=0):
            try:
                tenon.asdlpack(producer)
            except BaseException as caught:
                assert caught is exception


@isolated
def test_F69_device_index_that_runs_code():
    """`__index__` of what `__dlpack_device__` returned runs Python in the middle of the import."""
    class Index:
        def __index__(self):
            refuse(7, TypeError)
            take(bytearray(8))
            return 1

    producer = Producer()
    producer.said_device = (Index(), 0)
    with exactly_once(producer.struct):
        assert take(producer).shape == (2, 3)


@isolated
def test_F82_ctrl_c_during_a_long_copy():
    def interrupt(number, frame):
        raise KeyboardInterrupt

    memory = bytearray(256 << 20)
    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            while True:
                tenon.asdlpack(memory, copy=True)
        except KeyboardInterrupt:
            pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    memory.append(0)  # nothing holds the buffer
