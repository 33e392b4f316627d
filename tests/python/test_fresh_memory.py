# tests/python/test_fresh_memory.py: an object that makes its bytes anew at every look has been copied, not shared.
from __future__ import annotations

import array
import ctypes
import sys

import pytest
from isolation import isolated
from real_support import COPIED, READ_ONLY, has, need

import tenon
import tenon._core

SHAPE = (2, 3)


class Host:
    """An `__array_interface__` over six bytes, made by `look` each time."""

    def __init__(self, look, **kept):
        self.look, self.kept = look, kept
        self.__dict__.update(kept)

    @property
    def __array_interface__(self):
        return self.look(self)


def described(data):
    return {"version": 3, "shape": SHAPE, "typestr": "|u1", "data": data}


MEMORY = bytearray(b"abcdef")
STATIC = (ctypes.c_uint8 * 6)(*range(6))
DICT = described(bytes(range(6)))

FRESH = {
    "bytes": Host(lambda self: described(bytes(MEMORY))),
    "bytearray": Host(lambda self: described(bytearray(MEMORY))),
    "memoryview of fresh bytes": Host(lambda self: described(memoryview(bytes(MEMORY)))),
    "with an offset": Host(lambda self: {**described(bytes(8)), "offset": 2}),
}
SHARED = {
    "bytes that the object has": Host(lambda self: described(self.data), data=bytes(MEMORY)),
    "bytearray that the object has": Host(lambda self: described(self.data), data=MEMORY),
    "view made anew of memory that stays": Host(lambda self: described(memoryview(MEMORY))),
    "view of bytes that stay": Host(lambda self: described(memoryview(self.data)), data=bytes(MEMORY)),
    "dictionary that the object has": Host(lambda self: self.said, said=described(bytes(MEMORY))),
    "dictionary of the module": Host(lambda self: DICT),
    "address": Host(lambda self: described((ctypes.addressof(STATIC), False))),
    "array": Host(lambda self: described(self.data), data=array.array("B", MEMORY)),
    "memory of somebody else": Host(lambda self: described((ctypes.c_uint8 * 6).from_buffer(MEMORY))),
}


@pytest.mark.parametrize("host", FRESH.values(), ids=FRESH)
def test_F95_fresh_bytes_are_a_copy(host):
    t = tenon.asdlpack(host)
    assert t.flags & COPIED and t.shape == SHAPE
    assert tenon.inspect(host).copied
    said = tenon.explain(host, "numpy")
    assert not said and said.outcome == "copied" and "makes a copy" in said.reason
    with pytest.raises(BufferError, match="copy=False"):
        tenon.asdlpack(host, copy=False)


@pytest.mark.parametrize("host", SHARED.values(), ids=SHARED)
def test_F95_memory_that_stays_is_shared(host):
    t = tenon.asdlpack(host)
    assert not t.flags & COPIED and tenon.asdlpack(host, copy=False).data_ptr == t.data_ptr
    assert not tenon.inspect(host).copied and tenon.explain(host, "numpy")


def test_F95_fresh_attributes_of_the_second_version():
    class Old:
        __array_typestr__, __array_shape__ = "|u1", (6,)

        @property
        def __array_data__(self):
            return bytes(MEMORY)

    assert tenon.asdlpack(Old()).flags & COPIED
    Old.__array_data__ = bytes(MEMORY)
    assert not tenon.asdlpack(Old()).flags & COPIED


def test_F95_one_byte_and_none():
    """Python has each byte once: nobody's memory. Where there is nothing, nothing is copied."""
    one = Host(lambda self: {**described(bytes(MEMORY[:1])), "shape": (1,)})
    none = Host(lambda self: {**described(bytes(MEMORY[:0])), "shape": (0,)})
    assert tenon.asdlpack(one).flags & COPIED and not tenon.asdlpack(none).flags & COPIED
    assert tenon.explain(none, "numpy")


def test_copy_true_is_memory_of_ones_own():
    t = tenon.asdlpack(FRESH["bytes"], copy=True)
    assert not t.readonly and bytes(t) == MEMORY


@pytest.mark.skipif(not has("PIL"), reason="pillow is not installed")
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "F", "I"])
def test_F95_pillow(mode):
    need("PIL")
    from PIL import Image

    image = Image.new(mode, (4, 3))
    t = tenon.asdlpack(image)
    assert t.flags & COPIED and t.flags & READ_ONLY and t.shape[:2] == (3, 4)
    said = tenon.explain(image, "torch")
    assert said.outcome == "copied" and not said.zero_copy
    image.putpixel((0, 0), 7 if len(t.shape) == 2 else (7,) * t.shape[2])
    assert not any(bytes(memoryview(t))), "what was taken does not follow"


@pytest.mark.skipif(not has("PIL"), reason="pillow is not installed")
@pytest.mark.parametrize("mode", ["L", "RGB", "I;16"])
def test_F95_pillow_without_a_copy(mode):
    """Refused: Arrow's interface of a picture shares, but says nothing of rows, bands and signs."""
    from PIL import Image

    with pytest.raises(BufferError, match="copy=False"):
        tenon.asdlpack(Image.new(mode, (4, 3)), copy=False)


@pytest.mark.skipif(not has("PIL"), reason="pillow is not installed")
def test_pillow_in_the_other_byte_order_is_refused():
    """Arrow's interface of it would give the numbers the wrong way round."""
    from PIL import Image

    other = "I;16B" if sys.byteorder == "little" else "I;16L"
    with pytest.raises(BufferError, match="byte order"):
        tenon.asdlpack(Image.new(other, (4, 3)))


def test_the_owner_of_an_interface():
    for host in (SHARED["address"], Host(lambda self: DICT | {"data": (ctypes.addressof(STATIC), True)})):
        assert tenon.asdlpack(host).owner is host
        seen = tenon.inspect(host)
        assert seen.rung == "__array_interface__" and seen.owner.endswith("Host") and "buffer" not in seen.owner
        assert tenon.inspect(tenon.asdlpack(host)).owner == seen.owner
    assert tenon.inspect(SHARED["bytes that the object has"]).owner == "buffer of bytes"


def check_fresh(obj, numbers):
    assert tenon.asdlpack(obj).tolist() == numbers
    with pytest.raises(BufferError, match="copy=False"):
        tenon.asdlpack(obj, copy=False)
    assert tenon.inspect(obj).copied and tenon.explain(obj, "numpy").outcome == "copied"


def test_F95_an_address_of_memory_made_anew():
    made = []

    def look(self):
        made.append((ctypes.c_uint8 * 6)(*range(6)))
        return described((ctypes.addressof(made[-1]), False))

    check_fresh(Host(look), [[0, 1, 2], [3, 4, 5]])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes have no __buffer__ before Python 3.12")
def test_F95_a_buffer_made_anew():
    class Fresh:
        def __buffer__(self, flags):
            return memoryview(bytearray(b"abc"))

    class Same:
        def __init__(self):
            self.memory = bytearray(b"abc")

        def __buffer__(self, flags):
            return memoryview(self.memory)

    check_fresh(Fresh(), [97, 98, 99])
    same = Same()
    assert tenon.asdlpack(same, copy=False).tolist() == [97, 98, 99]
    assert not tenon.inspect(same).copied and tenon.explain(same, "numpy").outcome == "shared"


@isolated
def test_F95_arrow_cannot_say_that_it_copied():
    """What gives other memory at every look is a copy; a stream that can be read once is believed."""
    from arrow_producers import Array, Stream, numbers

    class Once(Stream):
        def __arrow_c_stream__(self, requested_schema=None):
            if self.calls:
                raise ValueError("read already")
            return super().__arrow_c_stream__(requested_schema)

    memory = array.array("i", range(6))
    stays = {"length": 6, "buffers": [None, memory.buffer_info()[0]]}
    for producer in (Array(numbers()), Stream(numbers())):  # which make their memory anew
        t = tenon.asdlpack(producer)
        with pytest.raises(BufferError, match="copy=False"):
            tenon.asdlpack(producer, copy=False)
        said = tenon.explain(producer, "numpy")
        assert said.outcome == "copied" and "makes a copy" in said.reason and tenon.inspect(producer).copied
        assert t.tolist() == [*range(6)]
        del t
        assert producer.struct.exports == sum(producer.struct.given_back)
    for producer in (Array(stays), Stream(stays), Once(stays)):
        assert tenon.asdlpack(producer, copy=False).tolist() == [*range(6)]
        assert producer.struct.exports == sum(producer.struct.given_back)
    for make in (Array, Stream, Once):
        assert tenon.explain(make(stays), "numpy") and not tenon.inspect(make(stays)).copied


@isolated
def test_F95_interrupts_pass_a_second_look_at_arrow():
    from arrow_producers import Array

    class Interrupted(Array):
        def __arrow_c_array__(self, requested_schema=None):
            if self.calls:
                raise KeyboardInterrupt
            return super().__arrow_c_array__(requested_schema)

    with pytest.raises(KeyboardInterrupt):
        tenon.asdlpack(Interrupted(), copy=False)


@pytest.mark.skipif(not has("pandas"), reason="pandas is not installed")
@pytest.mark.skipif(not has("pyarrow"), reason="pyarrow is not installed")
def test_F95_pandas_puts_a_slice_together():
    pandas = need("pandas")
    numpy = need("numpy")
    if not hasattr(pandas.Series, "__arrow_c_stream__"):
        pytest.skip("before version 3 pandas speaks no protocol")
    whole = pandas.Series(numpy.arange(10))
    assert tenon.asdlpack(whole, copy=False).data_ptr == whole.to_numpy().ctypes.data
    assert tenon.explain(whole, "numpy")
    assert tenon.asdlpack(whole[::2]).tolist() == [0, 2, 4, 6, 8]
    with pytest.raises(BufferError, match="copy=False"):
        tenon.asdlpack(whole[::2], copy=False)
    assert tenon.explain(whole[::2], "torch").outcome == "copied"


@isolated
def test_F95_second_looks_do_not_multiply():
    """Each of the wrappers imports what it wraps: a second look at every one would double the calls with each."""
    from arrow_producers import Array

    calls = 0

    class Wrapper:
        def __init__(self, inner):
            self.inner = inner

        def __arrow_c_array__(self, requested_schema=None):
            nonlocal calls
            calls += 1
            return tenon.asdlpack(self.inner, copy=False).__arrow_c_array__()

    memory = array.array("i", range(6))
    wrapped = Array({"length": 6, "buffers": [None, memory.buffer_info()[0]]})
    for _ in range(15):
        wrapped = Wrapper(wrapped)
    assert tenon.asdlpack(wrapped, copy=False).data_ptr == memory.buffer_info()[0]
    assert calls == 30
    fresh = Wrapper(Wrapper(Array()))  # a copy is seen from outside
    with pytest.raises(BufferError, match="copy=False"):
        tenon.asdlpack(fresh, copy=False)
