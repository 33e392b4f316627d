# tests/python/test_pickle.py: a Tensor is pickled by value: every protocol, type and layout, and pickles made by hand.
from __future__ import annotations

import copy
import ctypes
import doctest
import gc
import multiprocessing
import pickle
import re
import struct
import sys
from pathlib import Path

import pytest
from isolation import LIMIT
from real_support import address_of_buffer, need, script, steady_repr

import tenon
import tenon._pickle
from tenon import _core
from tenon._pickle import rebuild

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "pickling.md"
NOWHERE = 0x7F00_0000_0000
READ_ONLY, COPIED, PADDED = 1, 2, 4
LITTLE = sys.byteorder


def over(memory, shape, triple, strides=None, *, first=0, readonly=False, padded=False):
    """A Tensor over a ctypes array that begins `first` bytes in."""
    return _core.from_pointer(
        ctypes.addressof(memory) + first, shape, strides, triple, (1, 0), readonly, padded, memory, None
    )


def halves(*numbers: int):
    return (ctypes.c_uint16 * len(numbers))(*numbers)


def there_and_back(t, protocol):
    return pickle.loads(pickle.dumps(t, protocol))


def bytes_of(t) -> bytes:
    return ctypes.string_at(t.data_ptr, t.nbytes)


LAYOUTS = {
    "row-major": dict(shape=(2, 3), strides=None),
    "column-major": dict(shape=(2, 3), strides=(1, 2)),
    "axes in another order": dict(shape=(3, 1, 2), strides=(1, 50, 3)),
    "reversed": dict(shape=(6,), strides=(-1,), first=5),
    "with gaps": dict(shape=(2, 2), strides=(3, 2)),
    "repeated": dict(shape=(3, 2), strides=(0, 1)),
    "without axes": dict(shape=(), strides=None),
    "empty": dict(shape=(2, 0), strides=None),
    "empty, strided": dict(shape=(0, 2), strides=(7, -3)),
}
COMPACT = [n for n in LAYOUTS if n not in ("reversed", "with gaps", "repeated")]


def laid_out(name, memory, triple, itemsize, **options):
    fields = LAYOUTS[name]
    return over(memory, fields["shape"], triple, fields["strides"], first=fields.get("first", 0) * itemsize, **options)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("readonly", [False, True], ids=["writable", "read-only"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_in_band(layout, readonly, protocol):
    memory = halves(0, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0)
    t = laid_out(layout, memory, (4, 16, 1), 2, readonly=readonly)
    back = there_and_back(t, protocol)
    assert back.tolist() == t.tolist()
    assert (back.shape, back.dtype, back.device, back.readonly) == (t.shape, t.dtype, "cpu", readonly)
    assert back.size == 0 or back.data_ptr != t.data_ptr
    if layout in COMPACT and t.size:
        assert [s for s, n in zip(back.strides, back.shape, strict=True) if n > 1] == [
            s for s, n in zip(t.strides, t.shape, strict=True) if n > 1
        ]
    else:
        assert back.is_contiguous


@pytest.mark.parametrize("layout", LAYOUTS)
def test_out_of_band_is_the_memory_itself(layout):
    memory = (ctypes.c_int32 * 6)(*range(6))
    t = laid_out(layout, memory, (0, 32, 1), 4)
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(t, 5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    assert len(data) < 300  # what it is, and no values
    received = address_of_buffer(buffers[0])
    assert layout not in COMPACT or not t.size or received == t.data_ptr
    back = pickle.loads(data, buffers=buffers)
    assert back.tolist() == t.tolist()
    assert not t.size or back.data_ptr == received
    if layout in COMPACT and t.size:
        memory[LAYOUTS[layout].get("first", 0)] = 77
        assert back.tolist() == t.tolist()  # one memory, so both see it


def test_out_of_band_keeps_the_memory_and_lets_go():
    deleted: list[int] = []
    memory = (ctypes.c_int32 * 3)(1, 2, 3)
    t = tenon.from_pointer(ctypes.addressof(memory), (3,), "int32", owner=memory, deleter=deleted.append)
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(t, 5, buffer_callback=buffers.append)
    back = pickle.loads(data, buffers=buffers)
    del t, buffers
    gc.collect()
    assert not deleted
    assert back.tolist() == [1, 2, 3]
    del back
    gc.collect()
    assert len(deleted) == 1


@pytest.mark.parametrize("readonly", [False, True], ids=["writable", "read-only"])
def test_received_memory_is_kept_and_not_copied(readonly):
    t = over((ctypes.c_int64 * 4)(1, 2, 3, 4), (2, 2), (0, 64, 1), readonly=readonly)
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(t, 5, buffer_callback=buffers.append)
    received = bytearray(buffers[0].raw())
    back = pickle.loads(data, buffers=[received])
    assert back.readonly is readonly
    assert back.data_ptr == address_of_buffer(received)
    with pytest.raises(BufferError):
        received.append(1)  # it is lent
    assert pickle.loads(data, buffers=[bytes(received)]).readonly


TYPES = [(name, triple) for name, triple, *_ in _core.DTYPES]


@pytest.mark.parametrize(
    "name, triple, padded", [(n, t, p) for n, t in TYPES for p in (False, True) if not p or t[1] * t[2] % 8]
)
def test_every_type(name, triple, padded):
    itemsize = tenon.dtype(triple).itemsize
    memory = (ctypes.c_uint64 * 16)(*(0x0123456789ABCDEF * (i + 1) % 2**64 for i in range(16)))
    t = over(memory, (3, 3) if itemsize < 16 else (3, 2), triple, padded=padded)
    for protocol in (2, 4, 5):
        back = there_and_back(t, protocol)
        assert (back.shape, back.dtype, back.flags & PADDED) == (t.shape, name, PADDED if padded else 0)
        assert (back.nbytes, bytes_of(back)) == (t.nbytes, bytes_of(t))
    other = copy.deepcopy(t)
    assert (other.dtype, other.flags & PADDED, bytes_of(other)) == (name, t.flags & PADDED, bytes_of(t))


@pytest.mark.parametrize("triple", [(200, 24, 1), (2, 32, 4), (77, 16, 65535)])
def test_types_without_a_name(triple):
    memory = (ctypes.c_uint8 * (triple[1] * triple[2] // 8))(*range(24 // 8))
    t = over(memory, (1,), triple)
    for protocol in (0, 5):
        back = there_and_back(t, protocol)
        assert tenon.dtype(back.dtype).triple == triple
        assert bytes_of(back) == bytes_of(t)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("step", [-3, 0, 7, -(2**63), 2**63 - 1])
def test_an_axis_of_one_element_may_have_any_step(step, protocol):
    """Nobody steps along it; the others are column-major, so that strides are written down."""
    t = over((ctypes.c_double * 6)(*range(6)), (3, 1, 2), (2, 64, 1), (1, step, 3))
    back = there_and_back(t, protocol)
    assert back.shape == (3, 1, 2) and back.tolist() == t.tolist() == [[[0.0, 3.0]], [[1.0, 4.0]], [[2.0, 5.0]]]


def test_a_packed_transposed_one_keeps_its_order():
    memory = (ctypes.c_uint8 * 3)(0x21, 0x43, 0x65)
    t = over(memory, (2, 3), (1, 4, 1), (1, 2))
    back = there_and_back(t, 5)
    assert (back.tolist(), back.strides) == ([[1, 3, 5], [2, 4, 6]], (1, 2))


def test_packed_with_gaps_is_refused_with_a_reason():
    memory = (ctypes.c_uint8 * 3)(0x21, 0x43, 0x65)
    with pytest.raises(BufferError, match="packed"):
        pickle.dumps(over(memory, (3,), (1, 4, 1), (2,)))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_device_memory_is_refused(protocol):
    t = tenon.from_pointer(NOWHERE, (2,), "float32", device="cuda:0")
    with pytest.raises(BufferError, match=r'on cuda:0 and cannot be pickled.*asdlpack\(t, device="cpu"\)'):
        pickle.dumps(t, protocol)


def test_memory_that_is_not_aligned_is_copied_and_nothing_else_is():
    data = struct.pack("3d", 1, 2, 3)
    memory = bytearray(64)
    start = -address_of_buffer(memory) % 8
    for shift in range(8):
        memory[start + shift : start + shift + 24] = data
        received = memoryview(memory)[start + shift : start + shift + 24]
        for buffer in (received, received.toreadonly()):
            back = rebuild(buffer, (3,), None, (2, 64, 1), False, LITTLE)
            assert back.tolist() == [1, 2, 3]
            assert (back.data_ptr == address_of_buffer(received)) is (shift == 0)
            assert back.data_ptr % 8 == 0
            assert back.readonly is buffer.readonly
            del back


def test_tensors_that_are_not_aligned_are_pickled():
    memory = (ctypes.c_uint8 * 9)(0, *struct.pack("2i", 5, 6))
    t = tenon.asdlpack(memoryview(memory).cast("B")[1:].cast("i"))
    assert t.data_ptr % 4
    assert there_and_back(t, 5).tolist() == [5, 6]


def test_one_pickled_twice_comes_back_as_one():
    t = tenon.asdlpack(bytearray(b"abc"))
    first, second = pickle.loads(pickle.dumps([t, t]))
    assert first is second


# --- by hand ----------------------------------------------------------------------------------------

GOOD = dict(buffer=b"\0" * 24, shape=(2, 3), strides=None, triple=(0, 32, 1), padded=False, byteorder=LITTLE)


def test_the_arguments_the_rest_starts_from_are_good():
    assert rebuild(**GOOD).tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    "change",
    [
        dict(buffer=b""), dict(buffer=b"\0" * 23), dict(buffer=b"\0" * 25), dict(buffer=None), dict(buffer="x" * 24),
        dict(buffer=memoryview(bytes(48))[::2]),
        dict(shape=(2, 4)), dict(shape=()), dict(shape=[2, 3]), dict(shape=(2, -3)), dict(shape=(-2, -3)),
        dict(shape=(2.0, 3)), dict(shape=(True, 6)), dict(shape=(2**62, 2**62)), dict(shape=(0, 2**80)),
        dict(shape=(2**63, 0), buffer=b""), dict(shape=None),
        dict(shape=(1,) * 63 + (2, 3)), dict(shape=(2**62,) * 100_000),
        dict(strides=(3,)), dict(strides=(3, 1, 1)), dict(strides=(4, 1)), dict(strides=(0, 1)),
        dict(strides=(-3, -1)), dict(strides=(1, 1)), dict(strides=(2**62, 1)), dict(strides="31"),
        dict(strides=(3, "1")), dict(strides=(3.0, 1.0)), dict(strides=(2, 1)), dict(strides=(1, 3)),
        dict(shape=(0, 3), strides=(2**70, 1), buffer=b""),
        dict(triple=(0, 32)), dict(triple=(0, 0, 1)), dict(triple=(0, 32, 0)), dict(triple=(256, 32, 1)),
        dict(triple=(-1, 32, 1)), dict(triple=(0, 32, 65536)), dict(triple="int32"), dict(triple=None),
        dict(triple=(0, 64, 1)), dict(triple=(0, 2**70, 1)), dict(triple=("0", "32", "1")), dict(triple=(17, 6, 1)),
        dict(padded=None), dict(padded=1), dict(byteorder="middle"), dict(byteorder=None),
    ],
    ids=lambda change: ", ".join(f"{k}={steady_repr(v)[:20]}" for k, v in change.items()),
)  # fmt: skip
def test_what_does_not_fit_is_refused(change):
    if change == dict(triple=(0, 32)):  # the lanes may be left out
        assert rebuild(**GOOD | change).size == 6
        return
    with pytest.raises((TypeError, ValueError, BufferError), match="."):
        rebuild(**GOOD | change)


class Liar(int):
    """A number that is another one when it is multiplied."""

    def __mul__(self, other):
        return 6

    __rmul__ = __mul__


class LyingTuple(tuple):
    def __iter__(self):
        return iter((2, 3))


def test_numbers_that_lie_are_refused():
    with pytest.raises(TypeError, match="damaged"):
        rebuild(**GOOD | dict(shape=LyingTuple((2**40, 3))))
    with pytest.raises(TypeError, match="damaged"):
        rebuild(**GOOD | dict(shape=(Liar(2**40), 3)))
    with pytest.raises(ValueError, match="damaged"):
        rebuild(**GOOD | dict(strides=(Liar(3), 1)))


def test_damaged_pickles_raise_and_do_not_crash():
    """Every byte of a pickle changed, to a few values: it may still load, and then it can be read."""
    done = script("""
import pickle, tenon
good = pickle.dumps(tenon.asdlpack(memoryview(bytes(range(24))).cast("B", (2, 12))), 5)
loaded = refused = 0
for at in range(len(good)):
    for value in {0, 1, 127, 128, 255, good[at] ^ 1, (good[at] + 1) % 256}:
        try:
            t = pickle.loads(good[:at] + bytes([value]) + good[at + 1 :])
        except Exception:
            refused += 1
            continue
        if isinstance(t, tenon.Tensor):
            assert t.nbytes <= 24
            try:
                t.tolist()
            except BufferError as e:  # a type without a meaning
                assert "means" in str(e) or "mean" in str(e) or "handles" in str(e)
            loaded += 1
print(loaded > 0, refused > 0)
""")
    assert done.split() == ["True", "True"]


# --- copies -----------------------------------------------------------------------------------------


def test_reduce_by_hand():
    t = tenon.asdlpack(bytearray(b"abc"))
    make, arguments = t.__reduce__()
    assert make(*arguments).tolist() == [97, 98, 99]
    with pytest.raises(TypeError, match="integer"):
        t.__reduce_ex__("a")


def test_a_copy_is_the_same_view():
    t = tenon.asdlpack(b"abc")
    assert copy.copy(t) is t


def test_a_deep_copy_is_memory_of_its_own():
    memory = (ctypes.c_int32 * 6)(*range(6))
    t = over(memory, (2, 2), (0, 32, 1), (3, -2), first=8, readonly=True)
    other = copy.deepcopy(t)
    memory[2] = 99
    assert other.tolist() == [[2, 0], [5, 3]]
    assert t.tolist() == [[99, 0], [5, 3]]
    assert (other.dtype, other.device, other.readonly, other.is_contiguous) == (t.dtype, "cpu", False, True)


def test_a_deep_copy_is_made_once():
    t = tenon.asdlpack(bytearray(b"abc"))
    first, second, inside = copy.deepcopy([t, t, {"t": t}])
    assert first is second is inside["t"]
    assert first is not t
    memo = {id(t): "remembered"}
    assert copy.deepcopy(t, memo) == "remembered"


def test_device_memory_is_never_followed_for_a_deep_copy():
    t = tenon.from_pointer(NOWHERE, (2,), "float32", device="metal:0")
    with pytest.raises(BufferError, match="host memory"):
        copy.deepcopy(t)


# --- in company -------------------------------------------------------------------------------------


def test_numpy_arrays_that_were_tensors():
    np = need("numpy")
    a = np.arange(12, dtype="f4").reshape(3, 4)
    for view in (a, a.T, a[::2], a[:, ::-1]):
        back = there_and_back(tenon.asdlpack(view), 5)
        np.testing.assert_array_equal(np.asarray(back), view)
        assert np.asarray(back).flags.writeable


def doubled(t):
    return tenon.asdlpack(bytearray(2 * value for value in t.tolist()))


def echo(inbox, outbox):
    outbox.put(doubled(inbox.get(timeout=LIMIT)))


def test_multiprocessing_pool_and_queue():
    context = multiprocessing.get_context("spawn")
    t = tenon.asdlpack(bytearray(b"\x01\x02\x03"))
    with context.Pool(1) as pool:
        assert pool.apply_async(doubled, (t,)).get(LIMIT).tolist() == [2, 4, 6]
    inbox, outbox = context.Queue(), context.Queue()
    worker = context.Process(target=echo, args=(inbox, outbox), daemon=True)
    worker.start()
    inbox.put(t)
    assert outbox.get(timeout=LIMIT).tolist() == [2, 4, 6]
    worker.join(LIMIT)
    assert worker.exitcode == 0


def test_examples_in_the_docstrings_and_the_guide():
    results = doctest.testmod(tenon._pickle)
    assert (results.failed, results.attempted > 2) == (0, True)
    sessions = re.findall(r"```pycon\n(.*?)```", GUIDE.read_text(), re.S)
    assert sessions
    session = doctest.DocTestParser().get_doctest("\n".join(sessions), {}, "guide", str(GUIDE), 0)
    assert doctest.DocTestRunner().run(session).failed == 0
