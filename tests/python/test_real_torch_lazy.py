# tests/python/test_real_torch_lazy.py: PyTorch's conjugate and negative views are refused however they were made, by every binder, and cheaply.
from __future__ import annotations

import importlib

import pytest
import tenon_probe
from isolation import run_isolated
from quick import rest_is_slow
from real_support import need

import tenon

torch = need("torch")
BINDERS = ("capi", "pybind11", "nanobind")


def numbers():
    return torch.view_as_complex(torch.arange(1.0, 17.0).reshape(8, 2))


class Plain(torch.Tensor):
    pass


# None shows by its strides or its address that its memory has the other sign.
HIDDEN = {
    "as_strided": lambda: numbers().conj().imag.as_strided((2, 3), (3, 1), 2),
    "as_strided, from the beginning": lambda: numbers().conj().imag.as_strided((2, 3), (3, 1), 0),
    "_neg_view": lambda: torch._neg_view(torch.ones(2, 3)),
    "_neg_view, one step": lambda: torch._neg_view(torch.ones(1, 3)),
    "a view of it": lambda: torch._neg_view(torch.ones(4, 3))[2:],
    "a parameter": lambda: torch.nn.Parameter(torch._neg_view(torch.ones(2, 3)), requires_grad=False),
    "a subclass": lambda: torch._neg_view(torch.ones(2, 3)).as_subclass(Plain),
}


@pytest.fixture(scope="module", params=BINDERS)
def bound(request):
    if request.param != "capi":
        pytest.importorskip(request.param)
    return importlib.import_module(f"bound_{request.param}")


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_negative_view_is_no_argument(bound, name):
    x = HIDDEN[name]()
    assert x.is_neg()
    for _ in range(2):  # the first makes the plan, the second finds it
        with pytest.raises(TypeError, match="negative view.*resolve_neg"):
            bound.total_2d(x)
    assert bound.total_2d(x.resolve_neg()) == x.sum().item()


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("importer", [tenon_probe.borrow, tenon_probe.hold, tenon.asdlpack, tenon.inspect])
def test_hidden_negative_view_is_refused(importer, name):
    x = HIDDEN[name]()
    for _ in range(2):
        if importer is tenon.inspect:
            assert "negative view" in str(importer(x))
            continue
        with pytest.raises(BufferError, match="resolve_neg"):
            importer(x)


@pytest.mark.parametrize("writable", [False, True])
def test_lent_after_it_was_made_negative(writable):
    """Asked anew each time: the object stays, and what it shows changes."""
    x = torch.ones(2, 3)
    assert tenon_probe.borrow(x, writable=writable)["sum"] == 6
    x.data = torch._neg_view(torch.ones(2, 3))
    with pytest.raises(BufferError, match="negative view"):
        tenon_probe.borrow(x, writable=writable)
    x.data = torch.ones(2, 3)
    x.requires_grad_()
    if writable:
        with pytest.raises(BufferError, match="detach"):
            tenon_probe.borrow(x, writable=True)
    else:
        assert tenon_probe.borrow(x)["sum"] == 6


def test_conjugate_view_is_refused():
    for x in (numbers().conj(), numbers().conj().as_subclass(Plain), numbers().conj().as_strided((2,), (1,), 2)):
        for importer in (tenon_probe.borrow, tenon_probe.hold):
            with pytest.raises(BufferError, match="resolve_conj"):
                importer(x)


class Loud(torch.overrides.TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.heard = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.heard.append(func)
        return func(*args, **(kwargs or {}))


def test_asking_runs_nothing():
    """A mode of PyTorch's sees every method that is called; a borrow calls none."""
    x, strided, complex_ones = torch.ones(2, 3), torch.ones(8)[::2], numbers()
    for each in (x, strided, complex_ones):
        tenon_probe.borrow(each)
    with Loud() as mode:
        for each in (x, strided, complex_ones):
            tenon_probe.borrow(each, read=False)
            tenon_probe.borrow(each, read=False, writable=True)
    assert mode.heard == []


def test_a_subclass_that_says_so_itself_is_heard():
    """Its attributes are asked if they are its own, and PyTorch's word on the memory is asked besides."""

    class Shy(torch.Tensor):
        def is_neg(self):
            return True

    class Bold(torch.Tensor):
        def is_neg(self):
            return False

    for x in (torch.ones(3).as_subclass(Shy), torch._neg_view(torch.ones(3)).as_subclass(Bold)):
        for importer in (tenon_probe.borrow, tenon_probe.hold):
            with pytest.raises(BufferError, match="negative view"):
                importer(x)
    assert tenon_probe.borrow(torch.ones(3).as_subclass(Bold))["sum"] == 3


CHANGED = """
import torch, tenon_probe
x = torch.ones(2, 3)
for _ in range(3):
    assert tenon_probe.borrow(x)["sum"] == 6
torch.Tensor.is_neg = lambda self: True
for _ in range(2):
    try:
        tenon_probe.borrow(x)
        raise SystemExit("the class's new is_neg was not heard")
    except BufferError as e:
        assert "resolve_neg" in str(e), e
del torch.Tensor.is_neg
for _ in range(3):
    assert tenon_probe.borrow(x)["sum"] == 6
calls, method = [], torch.Tensor.__dlpack__
torch.Tensor.__dlpack__ = lambda self, **kwargs: (calls.append(1), method(self, **kwargs))[1]
torch.Tensor.__dlpack_c_exchange_api__ = None
for _ in range(2):
    assert tenon_probe.borrow(x)["sum"] == 6
assert len(calls) == 2, "the table was used that the class no longer has"
"""


has_table = pytest.mark.skipif(
    not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="this torch has no exchange table")


@has_table
def test_a_change_of_the_class_itself_is_seen():
    """What is known of torch.Tensor is kept apart from the plans of other types, and holds no longer than they do."""
    run_isolated(CHANGED)


WITHOUT_LENDING = """
import ctypes, torch, tenon_probe
from fakes_ctypes import new_capsule
from real_support import ExchangeTable, exchange_table
table = ExchangeTable.from_buffer_copy(exchange_table(torch.Tensor))
table.borrow = type(table.borrow)()
torch.Tensor.__dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api")
calls, method = [], torch.Tensor.__dlpack__
torch.Tensor.__dlpack__ = lambda self, **kwargs: (calls.append(1), method(self, **kwargs))[1]
x = torch.ones(2, 3)
for _ in range(4):
    assert tenon_probe.borrow(x)["sum"] == 6
assert calls == [], "the table was given up, which has its owning function yet"
"""


@has_table
def test_a_table_that_cannot_lend():
    """The borrowing function is the one that a table may lack: the owning one serves, however often."""
    run_isolated(WITHOUT_LENDING)


@pytest.mark.skipif(not hasattr(torch.utils.dlpack, "ReadOnlyTensorWrapper"), reason="this torch has no such class")
def test_read_only_wrapper_of_torch():
    """A subclass with a table of its own, which forbids every method."""
    x = torch.utils.dlpack.ReadOnlyTensorWrapper(torch.ones(3))
    assert tenon_probe.borrow(x)["sum"] == 3
    assert tenon.asdlpack(x).readonly
    with pytest.raises(BufferError, match="read-only"):
        tenon_probe.borrow(x, writable=True)


MODES = {
    "a mode that fails": "Refusing()",
    "fake tensors": "__import__('torch._subclasses.fake_tensor', fromlist='*').FakeTensorMode()",
    "another device": "torch.device('meta')",
    "inference": "torch.inference_mode()",
}


@pytest.mark.parametrize("name", rest_is_slow(MODES, "fake tensors"))
def test_the_functions_are_found_in_any_state(name):
    """The samples are plain tensors whatever mode is in force when the first tensor comes, and no mode sees them."""
    run_isolated(f"""
from test_real_torch_lazy import *
class Refusing(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise RuntimeError("no functions here")
x, strided = torch.ones(2, 3), torch.ones(8)[::2]
with {MODES[name]}:
    tenon_probe.borrow(x, read=False)
test_asking_runs_nothing()
""")


WITHOUT = """
import torch, tenon, tenon_probe
class Broken:
    def __enter__(self): raise RuntimeError("not now")
    def __exit__(self, *args): pass
torch._C._DisableTorchDispatch = Broken   # what the samples are made with
"""


def test_where_the_functions_cannot_be_tried_out_the_methods_are_asked():
    """PyTorch may change: then it is slower, and as right."""
    run_isolated(WITHOUT + """
from test_real_torch_lazy import HIDDEN, Loud, Plain, numbers
for round in range(12):
    for name, make in HIDDEN.items():
        for importer in (tenon_probe.borrow, tenon_probe.hold, tenon.asdlpack):
            try:
                importer(make())
            except BufferError as e:
                assert "resolve_neg" in str(e), e
            else:
                raise SystemExit(name + " was taken")
    assert tenon_probe.borrow(torch.ones(2, 3))["sum"] == 6
    t = tenon.asdlpack(torch.ones(2, 3))
    assert not t.readonly and t.owner.__class__ is torch.UntypedStorage, t.owner
    assert tenon.asdlpack(torch.ones(3, requires_grad=True)).readonly
with Loud() as mode:
    tenon_probe.borrow(torch.ones(2, 3))
assert {"is_neg", "is_conj"} <= {f.__name__ for f in mode.heard}
""")
