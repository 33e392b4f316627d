# tests/python/test_values.py: item() and tolist(): every element type and layout as Python's own numbers.
from __future__ import annotations

import ctypes
import doctest
import itertools
import math
import struct

import pytest
from real_support import has, need

import tenon
import tenon._values
from tenon import _core

NOWHERE = 0x7F00_0000_0000
PADDED = 4


def over(data: bytes, shape, triple, strides=None, *, first=0, padded=False):
    """A Tensor over these bytes whose first element lies `first` bytes in. Aligned for everything."""
    size = len(data) + 64
    memory = (ctypes.c_char * size)()
    start = -ctypes.addressof(memory) % 64
    memory[start : start + len(data)] = data
    address = ctypes.addressof(memory) + start + first
    return _core.from_pointer(address, shape, strides, triple, (1, 0), False, padded, memory, None)


def same(a: float, b: float) -> bool:
    """Equal, of one sign, or both NaN."""
    return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))


# --- layouts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("triple, format", [((0, 32, 1), "i"), ((4, 16, 1), "H")], ids=["int32", "bfloat16"])
@pytest.mark.parametrize(
    "shape, strides, first, wanted",
    [
        ((2, 3), None, 0, [[0, 1, 2], [3, 4, 5]]),
        ((3, 2), (1, 3), 0, [[0, 3], [1, 4], [2, 5]]),
        ((2, 2), (3, 2), 0, [[0, 2], [3, 5]]),
        ((2, 3), (-3, -1), 5, [[5, 4, 3], [2, 1, 0]]),
        ((2, 3), (3, -1), 2, [[2, 1, 0], [5, 4, 3]]),
        ((2, 3), (0, 1), 1, [[1, 2, 3], [1, 2, 3]]),
        ((3,), (0,), 4, [4, 4, 4]),
        ((), None, 3, 3),
        ((1, 1), (999, -999), 2, [[2]]),
        ((0,), None, 0, []),
        ((2, 0), None, 0, [[], []]),
        ((0, 2), None, 0, []),
        ((2, 0, 3), None, 0, [[], []]),
        ((1, 2, 1, 3), None, 0, [[[[0, 1, 2]], [[3, 4, 5]]]]),
    ],
)
def test_any_layout(triple, format, shape, strides, first, wanted):
    """By way of memoryview, and by ours."""
    if format == "i":
        data, size = struct.pack("6i", *range(6)), 4
    else:
        data, size = b"".join(struct.pack("<f", n)[2:] for n in range(6)), 2
    got = over(data, shape, triple, strides, first=first * size).tolist()
    assert got == wanted


def test_the_most_axes_there_can_be():
    got = over(b"\x01\x02", (1,) * 63 + (2,), (6, 8, 1)).tolist()
    for _ in range(63):
        (got,) = got
    assert got == [True, True]


def test_layouts_as_numpy_has_them():
    np = need("numpy")
    base = np.arange(120).reshape(2, 3, 4, 5)
    for a in (base, base.T, base[:, ::-1, ::2], base[1, :, :, 3], np.broadcast_to(base[0, 0], (3, 4, 5))):
        for kind in ("int64", "float16", "bool", "complex64"):
            typed = a.astype(kind, order="K") if kind != "int64" else a
            assert tenon.asdlpack(typed).tolist() == typed.tolist()


def test_memory_that_is_not_aligned():
    np = need("numpy")
    for kind in ("int32", "float16", "complex128"):
        a = np.frombuffer(b"\0" + np.arange(3).astype(kind).tobytes(), kind, offset=1)
        assert a.__array_interface__["data"][0] % a.itemsize
        assert tenon.asdlpack(a).tolist() == a.tolist()


# --- element types ----------------------------------------------------------------------------------

LIMITS = {
    "b": (-128, 127), "B": (0, 255), "h": (-(2**15), 2**15 - 1), "H": (0, 2**16 - 1), "i": (-(2**31), 2**31 - 1),
    "I": (0, 2**32 - 1), "q": (-(2**63), 2**63 - 1), "Q": (0, 2**64 - 1), "e": (-65504.0, 2**-24),
    "f": (-math.inf, 2.0**-149), "d": (math.inf, 5e-324), "?": (False, True),
}  # fmt: skip


@pytest.mark.parametrize("name, triple, format", [(n, t, f) for n, t, _, f, _ in _core.DTYPES if len(f) == 1])
def test_types_with_a_letter(name, triple, format):
    values = list(LIMITS[format])
    got = over(struct.pack(f"=2{format}", *values), (2,), triple).tolist()
    assert got == values
    assert [type(v) for v in got] == [type(v) for v in values]
    assert over(struct.pack(f"={format}", values[1]), (1, 1), triple).item() == values[1]


def test_every_byte_but_zero_is_true():
    got = over(bytes(range(256)), (256,), (6, 8, 1)).tolist()
    assert got == [False] + [True] * 255
    assert over(b"\x02", (), (6, 8, 1)).item() is True


@pytest.mark.parametrize("bits, format", [(32, "e"), (64, "f"), (128, "d")])
def test_complex(bits, format):
    t = over(struct.pack(f"=4{format}", 1, -2, 0.5, math.inf), (2,), (5, bits, 1))
    assert t.tolist() == [1 - 2j, complex(0.5, math.inf)]
    assert type(t.tolist()[0]) is complex


NUMBERS_OF_ML_DTYPES = [
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int2", "int4", "uint2",
    "uint4",
]  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS_OF_ML_DTYPES)
def test_every_code_means_what_ml_dtypes_says(name):
    np, ml_dtypes = need("numpy"), need("ml_dtypes")
    if not hasattr(ml_dtypes, name):
        pytest.skip(f"this ml_dtypes has no {name}")
    bits = tenon.dtype(name).bits
    codes = np.arange(1 << bits, dtype=np.uint8 if bits <= 8 else np.uint16)
    array = codes.view(getattr(ml_dtypes, name))
    python = float if "float" in name else int
    got = tenon.asdlpack(array).tolist()
    assert len(got) == 1 << bits
    assert {type(v) for v in got} == {python}
    wrong = [(c, v, w) for c, (v, w) in enumerate(zip(got, map(python, array), strict=True)) if not same(v, w)]
    assert not wrong


def test_no_type_of_the_table_is_forgotten():
    covered = {n for n, _, _, f, _ in _core.DTYPES if len(f) == 1} | set(NUMBERS_OF_ML_DTYPES)
    rest = {"bcomplex32", "complex32", "complex64", "complex128", "opaque_handle64", "float4_e2m1fn_x2"}
    assert {n for n, *_ in _core.DTYPES} == covered | rest


# --- elements smaller than a byte -------------------------------------------------------------------


def packed(codes: list[int], bits: int) -> bytes:
    """As DLPack packs: element i in the bits from i * bits, counted from the low end of the memory."""
    whole = sum(code << i * bits for i, code in enumerate(codes))
    return whole.to_bytes((len(codes) * bits + 7) // 8, "little")


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"])
def test_packed_and_padded_are_the_same_values(name):
    triple = tenon.dtype(name).triple
    bits = triple[1]
    codes = [(7 * i + 3) % (1 << bits) for i in range(15)]
    by_the_byte = over(bytes(codes), (3, 5), triple, padded=True)
    by_the_bit = over(packed(codes, bits), (3, 5), triple)
    assert (by_the_byte.flags & PADDED, by_the_bit.flags & PADDED) == (PADDED, 0)
    assert by_the_bit.nbytes == (15 * bits + 7) // 8
    assert by_the_bit.tolist() == by_the_byte.tolist()
    flat = list(itertools.chain(*by_the_byte.tolist()))
    every_other = over(packed(codes, bits), (7,), triple, (2,)).tolist()
    assert every_other == flat[:14:2]
    # Element 8 begins a byte, whatever the width.
    backwards = over(packed(codes, bits), (9,), triple, (-1,), first=8 * bits // 8).tolist()
    assert backwards == flat[8::-1]


def test_bits_beside_a_padded_element_are_not_looked_at():
    assert over(b"\xf3\xff", (2,), (0, 4, 1), padded=True).tolist() == [3, -1]


def test_low_nibble_first():
    assert over(b"\x21\xf3", (4,), (1, 4, 1)).tolist() == [1, 2, 3, 15]
    assert over(b"\x21\xf3", (4,), (0, 4, 1)).tolist() == [1, 2, 3, -1]


def test_lanes_are_a_tuple():
    assert over(b"\x21\x7f", (2,), (17, 4, 2)).tolist() == [(0.5, 1.0), (-6.0, 6.0)]
    assert over(struct.pack("=6h", *range(6)), (2,), (0, 16, 3)).tolist() == [(0, 1, 2), (3, 4, 5)]
    assert over(struct.pack("=4f", 1, 2, 3, 4), (), (5, 64, 2)).item() == (1 + 2j, 3 + 4j)
    assert over(packed([1, 2, 3, 4, 5, 6], 4), (2,), (1, 4, 3)).tolist() == [(1, 2, 3), (4, 5, 6)]
    assert over(b"\x21\x03\x54\x06", (2,), (1, 4, 3), padded=True).tolist() == [(1, 2, 3), (4, 5, 6)]


@pytest.mark.skipif(not has("torch"), reason="torch is not installed")
def test_pairs_of_torch():
    torch = need("torch")
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this torch has no float4_e2m1fn_x2")
    t = tenon.asdlpack(torch.tensor([0x21, 0x7F], dtype=torch.uint8).view(torch.float4_e2m1fn_x2))
    assert t.tolist() == [(0.5, 1.0), (-6.0, 6.0)]


# --- refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape, count", [((2, 3), "6 elements"), ((0,), "no element"), ((2, 0), "no element")])
def test_item_is_for_one_element(shape, count):
    with pytest.raises(ValueError, match=f"exactly one element.* has {count}.*tolist"):
        over(b"abcdef", shape, (1, 8, 1)).item()


@pytest.mark.parametrize("device", ["cuda:0", "rocm:1", "metal:0", "vulkan:0"])
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_device_memory_is_not_followed(device, kind):
    for shape in ((1,), (2, 2)):
        t = tenon.from_pointer(NOWHERE, shape, kind, device=device)
        with pytest.raises(BufferError, match=rf'on {device} and cannot be read.*asdlpack\(t, device="cpu"\)'):
            t.tolist()
    with pytest.raises(BufferError, match="cannot be read"):
        tenon.from_pointer(NOWHERE, (), kind, device=device).item()


@pytest.mark.parametrize("device", ["cuda_host", "cuda_managed", "rocm_host"])
def test_host_memory_of_devices_is_read(device):
    memory = ctypes.c_uint16(0x3FC0)
    t = tenon.from_pointer(ctypes.addressof(memory), (), "bfloat16", device=device, owner=memory)
    assert t.item() == 1.5


@pytest.mark.parametrize(
    "triple, reason",
    [
        ((3, 64, 1), "handles that only the library"),
        ((200, 8, 1), "code 200 with 8 bits"),
        ((0, 24, 1), "code 0 with 24 bits"),
        ((2, 7, 3), "code 2 with 7 bits"),
    ],
)
def test_what_has_no_meaning_is_refused(triple, reason):
    t = tenon.from_pointer(NOWHERE, (1,), triple)
    for method in (t.item, t.tolist):
        with pytest.raises(BufferError, match=reason):
            method()


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_no_elements_are_told_at_once(dtype):
    def listed(*shape):
        return tenon.from_pointer(NOWHERE, shape, dtype).tolist()

    assert listed(3, 0) == [[], [], []] and listed(0, 2**40) == [] == listed(0, 2**40, 0)
    for shape in ((2**40, 0), (2**20, 2**20, 0), (2**40, 0, 2**20)):
        with pytest.raises(MemoryError, match="has no elements, and more than"):
            listed(*shape)


def test_the_memory_is_let_go():
    deleted: list[int] = []
    memory = ctypes.c_uint16(0x3FC0)
    t = tenon.from_pointer(ctypes.addressof(memory), (1,), "bfloat16", deleter=deleted.append)
    assert (t.item(), t.tolist()) == (1.5, [1.5])
    assert not deleted
    del t
    assert deleted == [ctypes.addressof(memory)]


def test_examples_in_the_docstrings():
    assert doctest.testmod(tenon._values).attempted >= 5
    assert doctest.testmod(tenon._values).failed == 0
