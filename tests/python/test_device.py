# tests/python/test_device.py: tenon.device is made from, and equal to, every library's word for a place.
from __future__ import annotations

import copy
import pickle

import pytest
from real_support import has, need, script, steady_repr

import tenon

KINDS = {"cpu": 1, "cuda": 2, "cuda_host": 3, "opencl": 4, "vulkan": 7, "metal": 8, "vpi": 9, "rocm": 10, "rocm_host": 11,
         "ext_dev": 12, "cuda_managed": 13, "oneapi": 14, "webgpu": 15, "hexagon": 16, "maia": 17, "trn": 18}  # fmt: skip
WORDS_FOR_NOTHING = [None, 2, "", "moon", "cuda:", "cuda:x", "cuda:-1", "gpu", "cpu:0:1", "cpu\0", "cuda:1\0x", (1,), (1, 0, 0), (1.0, 0),
                     (True, 0), (2**40, 0), [1, 0], {}, object(), b"cpu"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [0, 3])
def test_names_and_pairs_are_two_words_for_one(kind, number):
    name = f"{kind}:{number}"
    d = tenon.device(name)
    assert d.pair == (d.type, d.id) == (KINDS[kind], number) and d.kind == kind
    assert d == name and name == d and d == d.pair and d.pair == d and tenon.device(d.pair) == d
    assert tenon.device(d) is d and eval(repr(d)) == d and not d != name and not d != d.pair and d != "cpu:9"
    assert (d == kind) is (number == 0)
    assert [k for k in KINDS if d == f"{k}:{number}"] == [kind]
    for twin in (copy.copy(d), copy.deepcopy(d), *(pickle.loads(pickle.dumps(d, p)) for p in range(6))):
        assert type(twin) is tenon.device and twin == d and twin.pair == d.pair


def test_is_a_string_and_is_found_by_it():
    assert {"cpu": 1}[tenon.device("cpu:0")] == {tenon.device((1, 0)): 1}["cpu"] == 1
    assert str(tenon.device("cuda")) == "cuda:0" and repr(tenon.device("cuda")) == "tenon.device('cuda:0')"


def test_a_kind_nobody_knows_survives():
    d = tenon.device((99, 4))
    assert d.pair == (99, 4) and "99" in d and d == (99, 4) and pickle.loads(pickle.dumps(d)) == d


@pytest.mark.parametrize("kind", KINDS)
def test_host_memory_is_what_plain_code_reads(kind):
    assert tenon.device(kind).is_host is (kind in ("cpu", "cuda_host", "rocm_host", "cuda_managed"))


@pytest.mark.parametrize("nothing", WORDS_FOR_NOTHING, ids=steady_repr)
def test_what_is_no_device(nothing):
    assert tenon.device("cpu") != nothing and nothing != tenon.device("cpu")
    with pytest.raises(TypeError, match=r"is no device; expected a name like 'cpu' or 'cuda:0'"):
        tenon.device(nothing)
    if nothing is not None:
        with pytest.raises(TypeError):
            tenon.asdlpack(b"x", device=nothing)


def raising(*_: object) -> object:
    raise KeyError("asked")


def made_in(module: object, **members: object) -> object:
    """An instance of a class that says it is from that module."""
    return type("Strange", (), {"__module__": module, **members})()


class Untold(type):
    __module__ = property(raising)  # type: ignore[assignment]


STRANGE = {
    "its module is no text": made_in(5),
    "its module raises": Untold("Strange", (), {})(),
    "it cannot be shown": made_in("here", __repr__=raising),
    "half a character": "\ud800",
    "a pair that raises": (made_in("here", __index__=raising), 0),
    "it pretends to be text": made_in("here", __class__=str),
    "it pretends to be a device": made_in("here", __class__=tenon.device),
    "it pretends to be torch's": made_in("torch", type=property(raising)),
}


@pytest.mark.parametrize("what", STRANGE)
def test_comparing_never_raises(what):
    assert tenon.device("cpu") != STRANGE[what]


def test_comparing_does_not_write_down_what_it_compares():
    written = []
    listed = type("Listed", (list,), {"__repr__": lambda self: written.append(1) or ""})([1, 0])
    assert tenon.device("cpu") != listed and not written


def test_a_class_derived_from_it_makes_its_own():
    derived = type("Derived", (tenon.device,), {})
    d = derived(tenon.device("cpu"))
    assert type(d) is derived and d == "cpu" and derived(d) is d and type(tenon.device(d)) is tenon.device


def test_only_names_find_it_in_a_dictionary():
    d = tenon.device("cuda:1")
    assert {"cuda:1": 1}.get(d) == {d: 1}.get("cuda:1") == 1 and {(2, 1): 1}.get(d) is None


def test_torch():
    torch = need("torch")
    words = {"cpu": (1, 0), "cuda": (2, 0), "cuda:2": (2, 2), "mps": (8, 0), "hip:1": (10, 1), "xpu:1": (14, 1)}
    for word, pair in words.items():
        assert tenon.device(torch.device(word)) == pair and tenon.device(pair) == torch.device(word)
    assert tenon.device("cpu") != torch.device("meta") and tenon.device("cpu") != torch.float32
    t = tenon.asdlpack(torch.zeros(2))
    assert t.device == torch.device("cpu") and torch.zeros(2, device=t.device).device == t.device


def test_jax():
    jax = need("jax")
    cpu = jax.devices("cpu")[0]
    assert tenon.device(cpu) == "cpu" and tenon.device("cpu") == cpu and tenon.device("cuda") != cpu


@pytest.mark.slow
def test_tensorflow():
    if not has("tensorflow"):
        pytest.skip("tensorflow is not installed")
    code = """
import tensorflow as tf, tenon
assert tenon.device(tf.DeviceSpec(device_type="GPU", device_index=1)) == "cuda:1"
assert tenon.device(tf.DeviceSpec(device_type="CPU", device_index=0)) == "cpu"
print("checked")
"""
    assert "checked" in script(code)


@pytest.mark.slow
def test_paddle():
    if not has("paddle"):
        pytest.skip("paddle is not installed")
    code = """
import paddle, tenon
assert tenon.device(paddle.CPUPlace()) == "cpu" == tenon.device(paddle.zeros([1]).place)
print("checked")
"""
    assert "checked" in script(code)


def test_every_word_is_taken_where_a_device_is_asked_for():
    words = ["cpu", "cpu:0", (1, 0), tenon.device("cpu")]
    if has("torch"):
        words.append(need("torch").device("cpu"))
    if has("jax"):
        words.append(need("jax").devices("cpu")[0])
    for word in words:
        t = tenon.asdlpack(b"abc", device=word)
        assert type(t.device) is tenon.device and t.device == word
        assert tenon.from_pointer(t.data_ptr, 3, "uint8", device=word, owner=t, readonly=True).device == "cpu"
    with pytest.raises(BufferError, match="device"):
        tenon.asdlpack(b"abc", device="cuda", copy=False)
