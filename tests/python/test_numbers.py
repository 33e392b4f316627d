# tests/python/test_numbers.py: a Tensor of one element is a number to int(), float(), complex(), bool() and operator.index().
from __future__ import annotations

import ctypes
import math
import operator
import struct

import pytest
from isolation import WITHOUT_PACKAGE, run_isolated
from real_support import has, need
from test_values import over, same

import tenon
from tenon import _core

ALL = (int, float, complex, bool, operator.index)
KNOWN = [(n, t) for n, t, *_ in _core.DTYPES if n not in ("opaque_handle64", "float4_e2m1fn_x2")]
WIDE = {(0, 64): (-(2**63), 2**63 - 1, 0, -1), (1, 64): (2**64 - 1, 2**63, 0), (0, 32): (-(2**31), 5), (1, 32): (2**32 - 1,)}


def test_F93_a_buffer_is_not_text():
    t = tenon.asdlpack(b"2")  # the digit 2 is 50
    assert (int(t), float(t), complex(t), bool(t)) == (50, 50.0, 50 + 0j, True)
    np = need("numpy")
    zero_d = tenon.asdlpack(np.array(50, np.uint8))
    assert [f(zero_d) for f in ALL] == [50, 50.0, 50 + 0j, True, 50]


def outcome(function, value):
    try:
        return function(value)
    except Exception as e:
        return type(e)


def alike(a, b) -> bool:
    if isinstance(a, complex) and isinstance(b, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    return same(a, b) if isinstance(a, float) and isinstance(b, float) else a == b


def codes_of(triple) -> list[bytes]:
    """Every pattern of up to 8 bits, and some of the others."""
    code, bits, _ = triple
    if bits <= 8:
        return [bytes([n]) for n in range(1 << bits)]
    if (code, bits) in WIDE:
        return [n.to_bytes(bits // 8, "little", signed=n < 0) for n in WIDE[code, bits]]
    if bits == 16:
        return [struct.pack("=H", n) for n in range(0, 1 << 16, 7)]
    values = (0.0, -0.0, 1.5, -3.75, math.inf, -math.inf, math.nan, 1e30)
    if code == 5:
        letter = {32: "e", 64: "f", 128: "d"}[bits]
        finite = [v if letter != "e" or abs(v) < 1e4 or math.isinf(v) else 2.0 for v in values]
        return [struct.pack(f"=2{letter}", a, b) for a in finite for b in finite]
    return [struct.pack({32: "=f", 64: "=d"}[bits], v) for v in values]


@pytest.mark.parametrize("name, triple", KNOWN, ids=[n for n, _ in KNOWN])
def test_every_type_of_the_table(name, triple):
    """What item() is, by Python's own rules for it; a complex number is no int and no float, a truth no index."""
    for memory in codes_of(triple):
        t = over(memory, (), triple)
        value = t.item()
        for function in ALL:
            expected = outcome(function, value)
            if function is operator.index and triple[0] not in (0, 1):
                expected = TypeError
            got = outcome(function, t)
            assert alike(got, expected), (function, memory, got, expected)
            assert type(got) is type(expected)


def test_axes_of_one_element():
    for shape in ((1,), (1, 1), (1,) * 64):
        t = over(b"\x07", shape, (1, 8, 1))
        assert (int(t), float(t), complex(t), bool(t)) == (7, 7.0, 7 + 0j, True)
        with pytest.raises(TypeError, match="without axes is an index"):
            operator.index(t)


def test_packed_elements_are_the_low_bits():
    assert int(over(b"\xf9", (), (0, 4, 1))) == -7 and int(over(b"\xf9", (), (1, 2, 1), padded=True)) == 1


@pytest.mark.parametrize("shape", [(0,), (2,), (2, 0), (2, 3)])
@pytest.mark.parametrize("function", ALL)
def test_not_one_element(function, shape):
    with pytest.raises(TypeError, match="one element|one integer"):
        function(over(bytes(6), shape, (1, 8, 1)))


@pytest.mark.parametrize("function", ALL)
def test_memory_that_cannot_be_read_here(function):
    for device in ("cuda:0", "metal:0"):
        with pytest.raises(TypeError, match=rf'on {device}; .*asdlpack\(t, device="cpu"\)'):
            function(tenon.from_pointer(0x7F0000000000, (), "int32", device=device))


@pytest.mark.parametrize("function", ALL)
def test_what_is_no_number(function):
    for triple in ((3, 64, 1), (17, 4, 2), (0, 16, 3), (42, 8, 1)):
        with pytest.raises(TypeError, match="is a number, and this one is of type|one integer"):
            function(over(bytes(16), (), triple))


def test_of_no_integer_python_says_so():
    np = need("numpy")
    for value, error in ((math.inf, OverflowError), (math.nan, ValueError)):
        with pytest.raises(error):
            int(tenon.asdlpack(np.array(value)))
    with pytest.raises(TypeError, match="imaginary"):
        float(tenon.asdlpack(np.array(1 + 2j)))


def test_bytes_are_still_the_memory():
    np = need("numpy")
    for a in (np.array(5, np.uint16), np.array([5], np.uint16), np.arange(3, dtype=np.uint16), np.array([], np.int8)):
        t = tenon.asdlpack(a)
        assert bytes(t) == bytes(memoryview(t)) == a.tobytes()
    assert bytearray(tenon.asdlpack(b"\x05")) == b"\x05"


def test_numpy_sees_an_array_and_no_number():
    np = need("numpy")
    for a in (np.array(5, np.uint8), np.array([5], np.int16), np.arange(6.0).reshape(2, 3), np.array(1 + 2j)):
        t = tenon.asdlpack(a)
        for f in (np.asarray, np.sum, np.float32 if a.dtype.kind != "c" else np.complex64, lambda x: np.array([x, x]),
                  lambda x: np.add(x, 1), lambda x: np.stack([x, x]), lambda x: np.full((2, *a.shape), x)):  # fmt: skip
            got, expected = f(t), f(a)
            assert np.shares_memory(got, a) or f is not np.asarray
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape) and (got == expected).all()
    out = np.zeros(3)
    out[0] = tenon.asdlpack(np.array(2.5))
    assert out.tolist() == [2.5, 0, 0] and np.arange(9)[tenon.asdlpack(np.array(5))] == 5


@pytest.mark.skipif(not has("torch"), reason="torch is not installed")
def test_torch_sees_an_array_and_no_number():
    np, torch = need("numpy"), need("torch")
    for a in (np.array(5, np.uint8), np.array([5], np.int16), np.arange(6.0).reshape(2, 3)):
        for f in (torch.tensor, torch.as_tensor, torch.from_dlpack):
            got = f(tenon.asdlpack(a))
            assert (tuple(got.shape), str(got.dtype)) == (a.shape, f"torch.{a.dtype}") and got.tolist() == a.tolist()


def test_what_stands_in_for_the_package_is_a_number_too():
    run_isolated(WITHOUT_PACKAGE + """
t = tenon_exports.produce(tenon_exports.Counter(), shape=(1,))
assert type(t).__module__ == "tenon_stand_in"
memoryview(t)[0] = 50.0
assert (int(t), float(t), complex(t), bool(t)) == (50, 50.0, 50 + 0j, True)
""")


def test_F93_a_class_made_a_producer_is_not_text():
    exports = pytest.importorskip("tenon_exports")

    class Derived(exports.Matrix):
        pass

    class Counted(exports.Matrix):
        def __int__(self):
            return 17

    for cls in (exports.Matrix, Derived, Counted):
        one, many = cls(1, 1), cls(2, 2)
        memoryview(one)[0, 0] = 2.5
        assert float(one) == 2.5 and int(one) == (17 if cls is Counted else 2)
        with pytest.raises(TypeError, match="one element"):
            float(many)


def test_memory_need_not_be_aligned():
    raw = (ctypes.c_uint8 * 9)(*range(9))
    t = tenon.asdlpack(memoryview(raw).cast("B")[1:])
    np = need("numpy")
    a = np.frombuffer(memoryview(t)[:8], np.int64).reshape(())
    assert int(tenon.asdlpack(a)) == int(a)
