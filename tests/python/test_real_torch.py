# tests/python/test_real_torch.py: PyTorch tensors: every dtype and layout in place, views that hold other numbers refused, odd kinds never a crash.
from __future__ import annotations

import gc
import weakref

import pytest
from real_support import (
    COPIED,
    READ_ONLY,
    elsewhere,
    expect,
    has,
    keeps_alive,
    need,
    nothing_kept,
    poke,
    raw,
    references,
    script,
)

import tenon

torch = need("torch")

DTYPES = [
    name
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
        "float32", "float64", "complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e4m3fnuz",
        "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2",
    )
    if hasattr(torch, name)
]  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
NOT_IN_NUMPY = {n for n in DTYPES if n.startswith(("bfloat", "float8", "float4")) or n == "complex32"}


def bits(dtype, count=6):
    """A tensor with `count` elements of recognisable bytes."""
    size = torch.empty(0, dtype=dtype).element_size()
    some = torch.arange(count * size, dtype=torch.uint8)
    return (some & 1 if dtype == torch.bool else some).view(dtype)


def memory(x):
    """The bytes of the elements in row-major order, by PyTorch's own copying."""
    flat = torch.empty(x.numel(), dtype=x.dtype)
    flat.view(x.shape).copy_(x.detach())
    return bytes(flat.view(torch.uint8).tolist())


def agrees(t, x):
    expect(
        t,
        address=x.data_ptr(),
        shape=tuple(x.shape),
        strides=x.stride(),
        dtype=str(x.dtype).removeprefix("torch."),
        itemsize=x.element_size(),
        readonly=x.requires_grad,
    )
    assert raw(t) == memory(x)
    assert t.is_contiguous is x.is_contiguous()


# --- dtypes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DTYPES)
def test_dtype(name):
    x = bits(getattr(torch, name))
    t = tenon.asdlpack(x)
    agrees(t, x)
    assert t.version is not None
    assert t.version[0] == 1
    back = torch.from_dlpack(t)
    assert (back.data_ptr(), back.dtype, back.shape) == (x.data_ptr(), x.dtype, x.shape)


@pytest.mark.parametrize("name", [n for n in DTYPES if n not in NOT_IN_NUMPY])
def test_dtype_read_through_numpy(name):
    np = need("numpy")
    x = bits(getattr(torch, name))
    back = np.from_dlpack(tenon.asdlpack(x))
    assert back.ctypes.data == x.data_ptr()
    assert back.dtype.name == name
    assert back.tobytes() == memory(x)


@pytest.mark.parametrize("name", sorted(NOT_IN_NUMPY))
def test_dtype_numpy_has_no_word_for(name):
    np = need("numpy")
    x = bits(getattr(torch, name))
    t = tenon.asdlpack(x)
    with pytest.raises((RuntimeError, BufferError)):
        np.from_dlpack(t)
    assert raw(t) == memory(x)


@pytest.mark.parametrize("name", DTYPES)
def test_writes_are_seen_both_ways(name):
    x = bits(getattr(torch, name))
    t = tenon.asdlpack(x, readonly=False)
    size = x.element_size()
    poke(t, 2, b"\x01" * size)
    assert memory(x)[2 * size : 3 * size] == b"\x01" * size
    x.view(torch.uint8)[:size] = 1
    assert raw(t)[:size] == b"\x01" * size


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_dtype_of_this_release_is_read_or_refused():
    """New dtypes must not come out as something else of another size."""
    kinds = {d for d in vars(torch).values() if isinstance(d, torch.dtype)}
    assert len(kinds) > 20
    for dtype in kinds:
        try:
            x = torch.empty(4, dtype=dtype)
            t = tenon.asdlpack(x)
        except (RuntimeError, BufferError, TypeError, NotImplementedError):
            continue
        assert (t.data_ptr, t.shape, t.itemsize) == (x.data_ptr(), (4,), x.element_size()), dtype
        name = str(dtype).removeprefix("torch.")
        # PyTorch's integers of odd widths take a byte each, and its table says so.
        padded = name.rstrip("0123456789") in ("int", "uint", "bit") and t.dtype in ("int8", "uint8")
        assert t.dtype == name or padded, dtype


# --- layouts ----------------------------------------------------------------------------------------

BASE = torch.arange(120, dtype=torch.float32).reshape(4, 5, 6)
LAYOUTS = {
    "whole": BASE,
    "storage offset": BASE[1:],
    "odd storage offset": BASE.view(-1)[7:],
    "inner slice": BASE[:, 1:3, 2:],
    "stepped": BASE[::2, ::3, ::4],
    "transposed": BASE.transpose(0, 2),
    "permuted": BASE.permute(1, 2, 0),
    "t()": BASE[0].t(),
    "0-d": torch.tensor(7.0),
    "0-d of a view": BASE[1, 2, 3],
    "expanded": torch.arange(3.0).unsqueeze(1).expand(3, 4),
    "expanded scalar": torch.tensor(3.0).expand(2, 2),
    "empty": torch.empty(0),
    "empty, other extents": torch.empty(3, 0, 5),
    "empty slice": BASE[2:2],
    "one element": BASE[1:2, 1:2, 1:2],
    "extent 1 inside": BASE[:, :1],
    "unsqueezed": BASE.unsqueeze(1),
    "as_strided": BASE.as_strided((3, 3), (1, 1), 5),
    "unfold": BASE.view(-1).unfold(0, 4, 1),
    "channels last": torch.arange(48.0).reshape(1, 4, 3, 4).contiguous(memory_format=torch.channels_last),
    "diagonal": BASE[0].diagonal(),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout(name):
    x = LAYOUTS[name]
    t = tenon.asdlpack(x)
    agrees(t, x)
    back = torch.from_dlpack(t)
    assert (back.data_ptr(), back.shape) == (x.data_ptr(), x.shape)
    assert torch.equal(back, x)


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_read_through_numpy(name):
    np = need("numpy")
    x = LAYOUTS[name]
    back = np.from_dlpack(tenon.asdlpack(x))
    np.testing.assert_array_equal(back, x.numpy())
    if x.numel():
        assert back.ctypes.data == x.data_ptr()
        assert tuple(s // 4 for s in back.strides) == x.stride()


@pytest.mark.parametrize("name", ["expanded", "as_strided", "unfold"])
def test_elements_sharing_memory_are_not_given_out_for_writing(name):
    with pytest.raises(BufferError, match="share memory"):
        tenon.asdlpack(LAYOUTS[name], readonly=False)


@pytest.mark.parametrize("name", LAYOUTS)
def test_copy_is_other_memory(name):
    x = LAYOUTS[name]
    t = tenon.asdlpack(x, copy=True, readonly=False)
    assert (t.shape, t.flags, raw(t)) == (tuple(x.shape), COPIED, memory(x))
    if x.numel():
        poke(t, 0, b"\xff\xff\xff\xff")
        assert raw(t) != memory(x)


@pytest.mark.parametrize("keywords", [{"copy": False}, {"device": "cpu"}, {"device": (1, 0)}, {"stream": -1}], ids=repr)
def test_asking_for_what_is_so_already_changes_nothing(keywords):
    x = BASE[:, ::2]
    agrees(tenon.asdlpack(x, **keywords), x)


# --- autograd ---------------------------------------------------------------------------------------


def leaf():
    return torch.arange(6.0, requires_grad=True)


NEEDS_GRAD = {
    "leaf": leaf,
    "non-leaf": lambda: leaf() * 2,
    "view of a leaf": lambda: leaf()[1:],
    "Parameter": lambda: torch.nn.Parameter(torch.arange(6.0)),
    "weight of a module": lambda: torch.nn.Linear(3, 2).weight,
}


@pytest.mark.parametrize("name", NEEDS_GRAD)
def test_what_requires_grad_is_read_only(name):
    x = NEEDS_GRAD[name]()
    t = tenon.asdlpack(x)
    agrees(t, x)
    assert t.flags == READ_ONLY
    with nothing_kept(x):
        for _ in range(3):
            with pytest.raises(BufferError, match="detach"):
                tenon.asdlpack(x, readonly=False)
    assert not tenon.asdlpack(x.detach(), readonly=False).readonly


def test_frozen_parameter_is_writable():
    x = torch.nn.Parameter(torch.arange(3.0), requires_grad=False)
    t = tenon.asdlpack(x, readonly=False)
    poke(t, 0, raw(t)[8:])
    assert x.tolist() == [2, 1, 2]


def test_requires_grad_is_asked_each_time():
    x = torch.arange(3.0)
    assert not tenon.asdlpack(x).readonly
    x.requires_grad_()
    assert tenon.asdlpack(x).readonly
    x.requires_grad_(False)
    assert not tenon.asdlpack(x).readonly


def test_no_grad_does_not_make_a_leaf_writable():
    x = leaf()
    with torch.no_grad():
        assert tenon.asdlpack(x).readonly
        assert not tenon.asdlpack(x * 2).readonly


def test_inference_tensor():
    with torch.inference_mode():
        x = torch.arange(3.0)
        agrees(tenon.asdlpack(x), x)
    agrees(tenon.asdlpack(x, readonly=False), x)


def test_requires_grad_on_its_own_device_is_the_same_as_anywhere():
    x = leaf()
    t = tenon.asdlpack(x, device="cpu")
    assert (t.data_ptr, t.readonly) == (x.data_ptr(), True)


# --- views that hold other numbers than they show ---------------------------------------------------


def numbers():
    return torch.view_as_complex(torch.arange(1.0, 13.0).reshape(6, 2))


SIGNED_ELSEWHERE = {
    "conj": lambda: numbers().conj(),
    "conj of a slice": lambda: numbers()[1:3].conj(),
    "conj, 0-d": lambda: numbers().conj()[1],
    "conj transposed": lambda: numbers().reshape(2, 3).mH,
    "neg of conj": lambda: torch._neg_view(numbers().conj()),
    "imag": lambda: numbers().conj().imag,
    "imag, 0-d": lambda: numbers().conj().imag[1],
    "imag, first 0-d": lambda: numbers().conj().imag[0],
    "imag, one element": lambda: numbers().conj().imag[:1],
    "imag, as_strided packed": lambda: numbers().conj().imag.as_strided((4,), (1,), 2),
    "imag, as_strided 2-d": lambda: numbers().conj().imag.as_strided((2, 2), (2, 1), 0),
    "neg view": lambda: torch._neg_view(torch.arange(1.0, 7.0)),
    "neg view of two axes": lambda: torch._neg_view(torch.ones(4, 4)),
    "neg view of doubles": lambda: torch._neg_view(torch.ones(4, dtype=torch.float64)),
    "neg view of integers": lambda: torch._neg_view(torch.ones(4, dtype=torch.int32)),
}


@pytest.mark.parametrize("name", SIGNED_ELSEWHERE)
@pytest.mark.parametrize(
    "keywords", [{}, {"readonly": False}, {"copy": False}, {"device": "cpu"}, {"stream": -1}], ids=repr
)
def test_lazy_sign_is_refused(name, keywords):
    x = SIGNED_ELSEWHERE[name]()
    with nothing_kept(x), pytest.raises(BufferError):
        tenon.asdlpack(x, **keywords)


@pytest.mark.parametrize("name", SIGNED_ELSEWHERE)
def test_lazy_sign_resolved_is_taken(name):
    x = SIGNED_ELSEWHERE[name]()
    resolved = x.resolve_conj().resolve_neg()
    t = tenon.asdlpack(resolved, readonly=False)
    agrees(t, resolved)
    assert torch.from_dlpack(t).tolist() == x.tolist()


@pytest.mark.parametrize("name", SIGNED_ELSEWHERE)
def test_lazy_sign_copied_is_right_or_refused(name):
    x = SIGNED_ELSEWHERE[name]()
    try:
        t = tenon.asdlpack(x, copy=True)
    except BufferError:
        return
    assert torch.from_dlpack(t).tolist() == x.tolist()


@pytest.mark.parametrize("make", [lambda x: x.conj().real, lambda x: x.real, lambda x: x.imag, torch.conj_physical])
def test_views_that_hold_what_they_show(make):
    x = make(numbers())
    agrees(tenon.asdlpack(x), x)


# --- subclasses -------------------------------------------------------------------------------------


class Plain(torch.Tensor):
    pass


class Observing(torch.Tensor):
    seen: list[str] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


class Disabled(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl


class Raising(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise LookupError("not here")


class Overriding(torch.Tensor):
    calls = 0

    def __dlpack__(self, **keywords):
        type(self).calls += 1
        return torch.Tensor.__dlpack__(self.as_subclass(torch.Tensor) + 1, **keywords)


class BelowOverriding(Overriding):
    pass


@pytest.mark.parametrize("cls", [Plain, Observing, Disabled, torch.nn.Parameter])
def test_subclass(cls):
    x = torch.arange(6.0).reshape(2, 3)[:, 1:]
    s = cls(x, requires_grad=False) if cls is torch.nn.Parameter else x.as_subclass(cls)
    assert type(s) is cls
    t = tenon.asdlpack(s)
    assert (t.data_ptr, t.shape, t.strides, t.readonly) == (x.data_ptr(), (2, 2), (3, 1), False)
    assert raw(t) == memory(x)


@pytest.mark.parametrize("cls", [Plain, Observing, Disabled])
def test_subclass_is_guarded_too(cls):
    with pytest.raises(BufferError, match="conj"):
        tenon.asdlpack(numbers().conj().as_subclass(cls))
    with pytest.raises(BufferError, match="neg"):
        tenon.asdlpack(numbers().conj().imag.as_subclass(cls))
    with pytest.raises(BufferError, match="detach"):
        tenon.asdlpack(leaf().as_subclass(cls), readonly=False)
    assert tenon.asdlpack(leaf().as_subclass(cls)).readonly


@pytest.mark.parametrize("cls", [Overriding, BelowOverriding])
def test_subclass_that_overrides_dlpack_is_called(cls):
    x = torch.arange(3.0).as_subclass(cls)
    cls.calls = 0
    t = tenon.asdlpack(x)
    assert cls.calls == 1
    assert torch.from_dlpack(t).tolist() == [1, 2, 3]


def test_subclass_that_raises_is_heard():
    x = torch.arange(3.0).as_subclass(Raising)
    with nothing_kept(x), pytest.raises(LookupError, match="not here"):
        tenon.asdlpack(x)


# --- kinds that are no plain memory: each in another process, none may kill it ----------------------

SETUP = """
import sys, warnings
import torch, tenon
from torch._subclasses.fake_tensor import FakeTensorMode
A = tenon.asdlpack

class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError(str(func))

def fake(n=3):
    with FakeTensorMode():
        return torch.ones(n)

def freed():
    x = torch.ones(3)
    x.untyped_storage().resize_(0)
    return x

def too_short():
    x = torch.ones(100000)
    x.untyped_storage().resize_(4)
    return x

def inside(transform, *args):
    said = []
    def look(v):
        try:
            A(v)
        except Exception as e:
            said.append(e)
        return v.sum()
    transform(look)(*args)
    if said:
        raise said[0]
    return "accepted"
"""
KINDS = {
    "sparse COO": "A(torch.eye(3).to_sparse())",
    "sparse CSR": "A(torch.eye(3).to_sparse_csr())",
    "sparse CSC": "A(torch.eye(3).to_sparse_csc())",
    "sparse BSR": "A(torch.eye(4).to_sparse_bsr((2, 2)))",
    "empty sparse": "A(torch.sparse_coo_tensor(size=(0, 3)))",
    "meta": "A(torch.empty(3, device='meta'))",
    "meta, device asked": "A(torch.empty(3, device='meta'), device='cpu')",
    "FakeTensor": "A(fake())",
    "FakeTensor, writable": "A(fake(), readonly=False)",
    "FakeTensor, copy": "A(fake(), copy=True)",
    "FakeTensor, 0-d": "A(fake()[0])",
    "wrapper subclass": "A(Wrapper(torch.ones(3)))",
    "wrapper subclass, copy": "A(Wrapper(torch.ones(3)), copy=True)",
    "nested": "A(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))",
    "nested, jagged": "A(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged))",
    "quantized": "A(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8))",
    "quantized per channel":
        "A(torch.quantize_per_channel(torch.ones(3, 2), torch.ones(3), torch.zeros(3), 0, torch.quint8))",
    "storage resized to nothing": "A(freed())",
    "storage resized to nothing, copy": "A(freed(), copy=True)",
    "storage resized to nothing, device asked": "A(freed(), device='cpu')",
    "mkldnn": "A(torch.ones(3, 3).to_mkldnn()) if torch.backends.mkldnn.is_available() else 1 / 0",
    "vmap": "inside(torch.vmap, torch.ones(3, 2))",
    "grad": "inside(torch.func.grad, torch.ones(3))",
    "jvp": "inside(lambda f: lambda x: torch.func.jvp(f, (x,), (x,)), torch.ones(3))",
    "functionalize": "inside(torch.func.functionalize, torch.ones(3))",
    "storage, untyped": "A(torch.ones(3).untyped_storage())",
    "device": "A(torch.device('cpu'))",
    "dtype": "A(torch.float32)",
    "size": "A(torch.ones(3).size())",
    "class": "A(torch.Tensor)",
}  # fmt: skip


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    return elsewhere(SETUP, {**KINDS, **EITHER}, tmp_path_factory.mktemp("kinds") / "answers")


@pytest.mark.parametrize("name", KINDS)
def test_kind_is_an_exception(kinds, name):
    kinds[name].refused("Exception")
    assert "SystemError" not in kinds[name].raised
    assert kinds[name].message


# Nothing to read, or nothing that says more is claimed than there is: any answer but a dead process.
EITHER = {
    "FakeTensor, empty": "A(fake(0))",
    "wrapper subclass, empty": "A(Wrapper(torch.ones(0)))",
    "storage too short": "A(too_short()).shape",
    "copy on write": "A(torch._lazy_clone(torch.ones(3)))",
}


@pytest.mark.parametrize("name", EITHER)
def test_kind_never_kills_the_process(kinds, name):
    assert not kinds[name].crashed, kinds[name].crashed


@pytest.mark.skipif(not hasattr(torch, "_lazy_clone"), reason="this torch has no lazy clones")
def test_lazy_clone_is_written_to_alone():
    x = torch.ones(3)
    y = torch._lazy_clone(x)
    t = tenon.asdlpack(y, readonly=False)
    poke(t, 0, bytes(4))
    assert (x.tolist(), y.tolist()) == ([1, 1, 1], [0, 1, 1])
    z = torch._lazy_clone(x)
    t = tenon.asdlpack(x, readonly=False)
    poke(t, 0, bytes(4))
    assert (x.tolist(), z.tolist()) == ([0, 1, 1], [1, 1, 1])


# --- lifetime ---------------------------------------------------------------------------------------


def test_storage_lives_as_long_as_the_tensor():
    """PyTorch's table keeps the storage, not the Python object: a weak reference to the storage is the witness."""

    class Witness:
        def __init__(self, x):
            self.storage = torch.multiprocessing.reductions.StorageWeakRef(x.untyped_storage())

        def __call__(self):
            return None if self.storage.expired() else self

    keeps_alive(lambda: torch.arange(1000), Witness)
    keeps_alive(lambda: torch.arange(1000)[3:9], Witness)
    keeps_alive(leaf, Witness)


@pytest.mark.parametrize("use", ["tensor", "numpy", "torch", "again"])
def test_tensor_freed_while_held(use):
    x = torch.arange(100000.0)
    before = memory(x[-3:])
    t = tenon.asdlpack(x)
    if use == "numpy":
        held = need("numpy").from_dlpack(t)
    elif use == "torch":
        held = torch.from_dlpack(t)
    else:
        held = tenon.asdlpack(t) if use == "again" else t
    del x, t
    gc.collect()
    junk = [torch.full((100000,), 7.0) for _ in range(8)]
    if use in ("numpy", "torch"):
        held = tenon.asdlpack(held[-3:])
        assert raw(held) == before
    else:
        assert raw(held)[-12:] == before
    del junk


def test_python_object_is_not_kept_longer():
    x = torch.arange(3)
    watch = weakref.ref(x)
    t = tenon.asdlpack(x)
    before = references(x)
    u = tenon.asdlpack(x)
    assert references(x) - before in (0, 1)
    del u
    assert references(x) == before
    del t, x
    gc.collect()
    assert watch() is None


@pytest.mark.parametrize(
    "keywords", [{}, {"copy": True}, {"device": "cpu"}, {"readonly": False}, {"stream": -1}], ids=repr
)
def test_no_reference_is_lost_over_many_imports(keywords):
    x = torch.arange(10)
    with nothing_kept(x):
        for _ in range(300):
            tenon.asdlpack(x, **keywords)
    watch = torch.multiprocessing.reductions.StorageWeakRef(x.untyped_storage())
    del x
    gc.collect()
    assert watch.expired()


def replace_storage(x):
    x.set_(torch.arange(9.0))


def replace_data(x):
    x.data = torch.arange(9.0)


def swap_in_a_module(x):
    module = torch.nn.Module()
    module.weight = x
    module.half()
    assert module.weight is x


@pytest.mark.parametrize("change", [replace_storage, replace_data, swap_in_a_module, lambda x: x.resize_(2)])
@pytest.mark.parametrize("keywords", [{}, {"readonly": False}, {"device": "cpu"}], ids=repr)
def test_memory_survives_what_the_owner_does(change, keywords):
    """A tensor may be given other memory while it is held (`Module.to` does it): ours must stay ours."""
    x = torch.nn.Parameter(torch.arange(4.0), requires_grad=False)
    storage = torch.multiprocessing.reductions.StorageWeakRef(x.untyped_storage())
    t = tenon.asdlpack(x, **keywords)
    change(x)
    gc.collect()
    assert not storage.expired(), "the memory of a held Tensor was freed"
    assert raw(t) == memory(torch.arange(4.0))
    del t, x
    gc.collect()
    assert storage.expired()


def test_memory_of_a_subclass_made_elsewhere_survives_too():
    class Elsewhere(torch.Tensor):
        pass

    x = torch.arange(4.0).as_subclass(Elsewhere)
    storage = torch.multiprocessing.reductions.StorageWeakRef(x.untyped_storage())
    t = tenon.asdlpack(x)
    x.data = torch.arange(9.0).as_subclass(Elsewhere)
    gc.collect()
    assert not storage.expired(), "the memory of a held Tensor was freed"
    assert raw(t) == memory(torch.arange(4.0))


def test_growing_a_held_tensor_does_not_kill_the_process():
    """`resize_` to more moves the storage: the old address is the owner's to keep or not, reading metadata is safe."""
    printed = script("""
import torch, tenon
x = torch.arange(4)
t = tenon.asdlpack(x)
try:
    x.resize_(100000)
except RuntimeError:
    pass
print(t.shape, t.dtype, tenon.asdlpack(x).data_ptr == x.data_ptr())
del x, t
""")
    assert printed.strip() == "(4,) int64 True"


# --- other ways in ----------------------------------------------------------------------------------


def test_capsule_of_torch():
    from torch.utils.dlpack import to_dlpack

    x = torch.arange(6.0)
    t = tenon.asdlpack(to_dlpack(x))
    expect(t, address=x.data_ptr(), shape=(6,), dtype="float32", itemsize=4, readonly=True)  # legacy: cannot say
    assert not tenon.asdlpack(to_dlpack(x), trust_legacy=True).readonly
    capsule = x.__dlpack__(max_version=(1, 0))
    t = tenon.asdlpack(capsule)
    expect(t, address=x.data_ptr(), shape=(6,), dtype="float32", itemsize=4, readonly=False)
    with pytest.raises(BufferError, match="consumed"):
        tenon.asdlpack(capsule)


@pytest.mark.skipif(not has("numpy"), reason="numpy is not installed")
def test_torch_over_a_read_only_numpy_array():
    np = need("numpy")
    a = np.arange(3.0)
    a.flags.writeable = False
    t = tenon.asdlpack(a)
    assert t.readonly
    back = torch.from_dlpack(t)
    assert back.data_ptr() == a.ctypes.data
    assert back.tolist() == [0, 1, 2]


def test_pinned_memory_if_there_is_any():
    if not torch.cuda.is_available():
        pytest.skip("torch has no CUDA device to pin memory for")
    x = torch.arange(3.0).pin_memory()
    t = tenon.asdlpack(x)
    assert (t.data_ptr, raw(t)) == (x.data_ptr(), memory(x))
