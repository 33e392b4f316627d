# tests/python/test_real_ml_dtypes.py: NumPy arrays of the ml_dtypes types: named right, sub-byte ones flagged as padded, bytes unchanged.
from __future__ import annotations

import gc

import pytest
from isolation import run_isolated
from real_support import COPIED, PADDED, READ_ONLY, expect, need, nothing_kept, poke, raw, references

import tenon

ml_dtypes = need("ml_dtypes")
np = need("numpy")


def is_type(obj):
    try:
        return isinstance(obj, type) and np.dtype(obj).kind in "Vfiuc"
    except TypeError:
        return False


ALL = sorted(n for n, v in vars(ml_dtypes).items() if is_type(v) and not n.startswith("_"))
# In DLPack 1.3 under the same name. What is left has no code there.
KNOWN = {
    "bfloat16", "complex32", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
    "int2", "int4", "uint2", "uint4",
}  # fmt: skip
SUB_BYTE = {"float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int2", "int4", "uint2", "uint4"}
TAKEN = [n for n in ALL if n in KNOWN]
IN_TORCH = [n for n in TAKEN if n not in SUB_BYTE and n not in {"float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"}]


def numbers(name, shape=(3, 4)):
    return (np.arange(int(np.prod(shape))) % 2).astype(getattr(ml_dtypes, name)).reshape(shape)


def agrees(t, a, name):
    expect(
        t,
        address=a.__array_interface__["data"][0],
        shape=a.shape,
        strides=tuple(s // a.itemsize for s in a.strides),
        dtype=name,
        itemsize=a.itemsize,
        readonly=not a.flags.writeable,
        padded=name in SUB_BYTE,
    )
    assert raw(t) == a.tobytes()


def test_there_is_something_to_test():
    assert len(TAKEN) >= 8
    assert "bfloat16" in TAKEN


@pytest.mark.parametrize("name", TAKEN)
def test_type(name):
    a = numbers(name)
    assert type(a) is np.ndarray
    agrees(tenon.asdlpack(a), a, name)


LAYOUTS = {
    "sliced": lambda a: a[1:, 1::2],
    "reversed": lambda a: a[::-1, ::-1],
    "transposed": lambda a: a.T,
    "broadcast": lambda a: np.broadcast_to(a[0], (2, 4)),
    "0-d": lambda a: a[1, 1, ...],
    "empty": lambda a: a[:0],
}


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout(name, layout):
    a = LAYOUTS[layout](numbers(name))
    agrees(tenon.asdlpack(a), a, name)


@pytest.mark.parametrize("name", TAKEN)
def test_writes_are_seen_both_ways(name):
    a = np.zeros(3, getattr(ml_dtypes, name))
    one = np.ones((), a.dtype)
    t = tenon.asdlpack(a, readonly=False)
    poke(t, 2, one.tobytes())
    a[0] = 1
    assert a.tobytes() == raw(t) == np.array([1, np.zeros((), a.dtype)[()], 1], a.dtype).tobytes()


@pytest.mark.parametrize("name", TAKEN)
def test_read_only(name):
    a = numbers(name)
    a.flags.writeable = False
    assert tenon.asdlpack(a).flags == READ_ONLY | (PADDED if name in SUB_BYTE else 0)
    with pytest.raises(BufferError, match="read-only"):
        tenon.asdlpack(a, readonly=False)


@pytest.mark.parametrize("name", TAKEN)
def test_copy(name):
    a = numbers(name)[:, ::-1]
    t = tenon.asdlpack(a, copy=True)
    assert t.flags == COPIED | (PADDED if name in SUB_BYTE else 0)
    assert (t.dtype, t.shape, t.nbytes, raw(t)) == (name, a.shape, a.nbytes, a.tobytes())


@pytest.mark.parametrize("name", [n for n in ALL if n not in KNOWN])
def test_type_without_a_dlpack_word_is_refused(name):
    a = numbers(name)
    with nothing_kept(a), pytest.raises(BufferError):
        tenon.asdlpack(a)


@pytest.mark.parametrize("name", [n for n in TAKEN if np.dtype(getattr(ml_dtypes, n)).itemsize > 1])
def test_byte_swapped_is_refused(name):
    a = numbers(name)
    swapped = a.astype(a.dtype.newbyteorder())
    if swapped.dtype.isnative:
        pytest.skip(f"this NumPy does not swap {name}")
    with pytest.raises(BufferError, match="byte order"):
        tenon.asdlpack(swapped)


def test_field_of_a_structure_that_does_not_divide_is_refused():
    a = np.zeros(3, [("a", "u1"), ("b", ml_dtypes.bfloat16)])["b"]
    assert a.strides == (3,)
    with pytest.raises(BufferError):
        tenon.asdlpack(a)


@pytest.mark.parametrize("name", IN_TORCH)
def test_read_through_torch(name):
    torch = need("torch")
    a = numbers(name)
    if not hasattr(torch, name):
        pytest.skip(f"this torch has no {name}")
    back = torch.from_dlpack(tenon.asdlpack(a))
    assert (back.data_ptr(), back.dtype, tuple(back.shape)) == (a.ctypes.data, getattr(torch, name), a.shape)
    assert bytes(back.view(torch.uint8).flatten().tolist()) == a.tobytes()


@pytest.mark.parametrize("name", TAKEN)
def test_comes_back_to_tenon_unchanged(name):
    a = numbers(name)
    t = tenon.asdlpack(tenon.asdlpack(a))
    agrees(t, a, name)


@pytest.mark.parametrize("name", sorted(SUB_BYTE & set(TAKEN)))
def test_padding_is_never_lost_in_a_legacy_capsule(name):
    """A legacy capsule has no flags: padded elements must not leave as packed ones."""
    t = tenon.asdlpack(numbers(name))
    with pytest.raises(BufferError):
        t.__dlpack__()
    assert tenon.asdlpack(t.__dlpack__(max_version=(1, 1))).flags == PADDED


@pytest.mark.parametrize("name", TAKEN)
def test_references_are_given_back(name):
    a = numbers(name)
    before = references(a)
    t = tenon.asdlpack(a)
    assert references(a) == before + 1
    with nothing_kept(a.dtype):
        for _ in range(100):
            tenon.asdlpack(a)
    del t
    gc.collect()
    assert references(a) == before


def test_scalar_is_read_or_an_exception():
    for name in TAKEN:
        s = numbers(name)[0, 1]
        try:
            t = tenon.asdlpack(s)
        except (BufferError, TypeError):
            continue
        assert raw(t) == np.asarray(s).tobytes()


@pytest.mark.parametrize("name", TAKEN)
def test_mapped_file(name, tmp_path):
    """Weights are mapped more often than read: numpy.memmap is a subclass with the same struct."""
    whole = numbers(name)
    whole.tofile(tmp_path / "weights")
    mapped = np.memmap(tmp_path / "weights", dtype=whole.dtype, mode="r", shape=whole.shape)
    t = tenon.asdlpack(mapped)
    assert (t.data_ptr, t.dtype, t.shape, t.readonly) == (mapped.ctypes.data, name, whole.shape, True)
    assert raw(t) == whole.tobytes()


CHANGED = """
import gc, sys, warnings
import ml_dtypes, numpy as np, tenon
warnings.simplefilter("ignore")
kind = ml_dtypes.bfloat16
armed = None

class Key(str):
    __hash__ = str.__hash__
    def __eq__(self, other):
        global armed
        if armed is not None:
            change, armed = armed, None
            change()
        return False

names = gc.get_referents(kind.__dict__)[0]  # a key that compares as it likes, ahead of the one that is looked for
module = names.pop("__module__")
names[Key("__module__")], names["__module__"] = 1, module

def import_while(change):
    global armed
    a = np.ones(8, kind)
    tenon.asdlpack(a)
    kind.touched = 1  # what was looked up is looked up again
    armed = lambda: change(a)
    t = tenon.asdlpack(a)
    assert armed is None, "it was looked up"
    return a, t

a, t = import_while(lambda a: setattr(a, "dtype", np.uint32))
assert (t.dtype, t.shape) == (a.dtype, a.shape), (t, a.dtype)
a, t = import_while(lambda a: a.setflags(write=False))
assert t.readonly
"""


def test_an_array_that_changes_while_its_type_is_looked_at():
    run_isolated(CHANGED)
