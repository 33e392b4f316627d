# tests/python/test_real_torch_kinds.py: PyTorch's tensors without plain memory are refused in our words, and what PyTorch said stands behind them.
from __future__ import annotations

import importlib

import pytest
import tenon_probe
from isolation import table
from real_support import need

import tenon

torch = need("torch")
BINDERS = ("capi", "pybind11", "nanobind")


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(2, 3)


# What makes it, what the refusal says, and whether PyTorch has raised something itself.
KINDS = {
    "sparse COO": (lambda: torch.eye(3).to_sparse(), r"a sparse tensor.*\.to_dense\(\)", True),
    "sparse CSR": (lambda: torch.eye(3).to_sparse_csr(), r"a sparse tensor.*\.to_dense\(\)", True),
    "sparse BSR": (lambda: torch.eye(4).to_sparse_bsr((2, 2)), r"a sparse tensor.*\.to_dense\(\)", True),
    "sparse parameter": (lambda: torch.nn.Parameter(torch.eye(3).to_sparse()), r"a sparse tensor.*\.to_dense\(\)", True),
    "quantized": (
        lambda: torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8), r"a quantized tensor.*\.dequantize\(\)", True),
    "meta": (lambda: torch.empty(2, 3, device="meta"), "meta device.*no memory", True),
    "nested": (
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), r"a nested tensor.*to_padded_tensor", True),
    "jagged": (
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        r"a nested tensor.*to_padded_tensor", True),
    "FakeTensor": (fake, "a fake tensor.*no memory", False),
}  # fmt: skip
for bits in ("bits8", "bits16", "bcomplex32"):
    if hasattr(torch, bits):  # no kind of memory, but of elements; a bare RuntimeError with a backtrace from the table
        KINDS[bits] = (
            lambda bits=bits: torch.zeros(8, dtype=torch.uint8).view(getattr(torch, bits)), r"dlpack.*t\.view", True)
if torch.backends.mkldnn.is_available():
    KINDS["mkldnn"] = (lambda: torch.ones(3, 3).to_mkldnn(), r"an mkldnn tensor.*\.to_dense\(\)", True)


def inside(transform):
    """Looks at what a function sees that is transformed: `check` runs there."""

    def run(check):
        def look(v):
            check(v)
            return v.sum()

        transform(look)(torch.ones(2, 3))

    return run


TRANSFORMS = {
    "vmap": inside(torch.vmap),
    "grad": inside(torch.func.grad),
    "jvp": inside(lambda f: lambda x: torch.func.jvp(f, (x,), (x,))),
    "functionalize": inside(torch.func.functionalize),
}
IMPORTERS = {
    "asdlpack": tenon.asdlpack,
    "asdlpack, writable": lambda x: tenon.asdlpack(x, readonly=False),
    "asdlpack, copied": lambda x: tenon.asdlpack(x, copy=True),
    "asdlpack, moved": lambda x: tenon.asdlpack(x, device="cpu"),
    "from_python": tenon_probe.hold,
    "borrow": tenon_probe.borrow,
    "borrow, writable": lambda x: tenon_probe.borrow(x, writable=True),
}


def check_refusal(caught, raised):
    error = caught.value
    text = str(error)
    assert "Exception raised from" not in text and "frame #" not in text
    assert text.startswith("tenon: ")
    if raised:
        assert isinstance(error.__cause__, Exception) and not isinstance(error.__cause__, BufferError)
        assert error.__cause__ is error.__context__


def refuse_in_our_words(name, way):
    make, says, raised = KINDS[name]
    x = make()
    for _ in range(2):
        with pytest.raises(BufferError, match=says) as caught:
            IMPORTERS[way](x)
        check_refusal(caught, raised and "," not in way)


def refuse_inside_of_a_transform(name, way):
    seen = []

    def check(v):
        with pytest.raises(BufferError, match="stands for others.*outside") as caught:
            IMPORTERS[way](v)
        check_refusal(caught, False)
        seen.append(v)

    TRANSFORMS[name](check)
    assert seen


def refuse_as_argument(name, binder):
    if binder != "capi":
        pytest.importorskip(binder)
    bound = importlib.import_module(f"bound_{binder}")
    make, says, raised = KINDS[name]
    with pytest.raises(TypeError, match=says) as caught:
        bound.total_2d(make())
    assert "Exception raised from" not in str(caught.value)
    reason = caught.value.__cause__
    assert isinstance(reason, BufferError)
    if raised:
        assert isinstance(reason.__cause__, Exception)


def word(name: str) -> str:
    return name.replace(", ", "_").replace(" ", "_")


# In a process of their own: some kinds import parts of PyTorch that crash beside TensorFlow.
table(
    globals(),
    {f"test_{word(name)}_is_refused_in_our_words_by_{word(way)}": {"name": name, "way": way} for name in KINDS for way in IMPORTERS},
    refuse_in_our_words,
)
table(
    globals(),
    {f"test_inside_of_{name}_by_{word(way)}": {"name": name, "way": way} for name in TRANSFORMS for way in IMPORTERS},
    refuse_inside_of_a_transform,
)
table(
    globals(),
    {f"test_{word(name)}_is_no_argument_of_{binder}": {"name": name, "binder": binder} for name in KINDS for binder in BINDERS},
    refuse_as_argument,
)


def test_an_interruption_passes():
    class Interrupted(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise KeyboardInterrupt("now")

    x = torch.empty(3, device="meta").as_subclass(Interrupted)
    with pytest.raises(KeyboardInterrupt, match="now"):
        tenon.asdlpack(x)


def test_an_exception_of_a_subclass_passes_unchanged():
    class Raising(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise LookupError("not here")

    with pytest.raises(LookupError, match="not here") as caught:
        tenon.asdlpack(torch.ones(3).as_subclass(Raising))
    assert caught.value.__cause__ is None


def test_refused_for_another_reason_stays_as_it_is():
    with pytest.raises(BufferError, match="conjugate view"):
        tenon.asdlpack(torch.ones(3, dtype=torch.complex64).conj())
    with pytest.raises(BufferError, match="detach"):
        tenon.asdlpack(torch.ones(3, requires_grad=True), readonly=False)
    x = torch.ones(3)
    x.untyped_storage().resize_(0)
    with pytest.raises(BufferError, match="pointer is null"):
        tenon.asdlpack(x)
