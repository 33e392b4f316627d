# tests/python/test_dtype.py: tenon.dtype is made from, and equal to, every library's word for an element type.
from __future__ import annotations

import array
import copy
import json
import pickle

import pytest
from real_support import has, need, script, steady_repr

import tenon
from tenon import _core

NAMES = [name for name, *_ in _core.DTYPES]
PLAIN = [name for name, _, typestr, *_ in _core.DTYPES if typestr]
WORDS_FOR_NOTHING = [None, 3, 3.5, "", "float", "float31", "f4", ">f4", b"float32", (), (2,), (2, 32, 1, 0), (2.0, 32, 1),
                     (2, 0, 1), (2, 300, 1), (-1, 32, 1), (True, 32, 1), [2, 32, 1], {}, object(), object, str, list]  # fmt: skip


def are_one(word: object, name: str) -> bool:
    """Whether a library's word and our name mean the same, whichever is asked."""
    return tenon.dtype(word) == name and tenon.dtype(name) == word and word == tenon.dtype(name)


@pytest.mark.parametrize("name", NAMES)
def test_names_and_triples_are_two_words_for_one(name):
    d = tenon.dtype(name)
    assert d == name and name == d and str(d) == d.name == name and not d != name
    assert d == d.triple and d.triple == d and tenon.dtype(d.triple) == d and tenon.dtype(d) is d
    assert (d.code, d.bits, d.lanes) == d.triple and d.itemsize == -(-d.bits * d.lanes // 8)
    assert repr(d) == f"tenon.dtype('{name}')" and eval(repr(d)) == d
    assert [other for other in NAMES if d == other] == [name]
    assert {name: 1}[d] == {d: 1}[name] == 1
    for twin in (copy.copy(d), copy.deepcopy(d), *(pickle.loads(pickle.dumps(d, p)) for p in range(6))):
        assert type(twin) is tenon.dtype and twin == d and twin.triple == d.triple


def test_is_a_string_for_whoever_wants_one():
    d = tenon.dtype("float32")
    assert isinstance(d, str) and f"{d}" == "float32" and json.dumps([d]) == '["float32"]' and sorted([d, "a"]) == ["a", d]
    assert type(str(d)) is str and type(d.name) is str


def test_a_pair_has_one_lane_and_unknown_codes_survive():
    assert tenon.dtype((2, 32)) == "float32"
    odd = tenon.dtype((42, 8, 3))
    assert odd.triple == (42, 8, 3) and "42" in odd and odd != "uint8" and odd.itemsize == 3
    assert odd == (42, 8, 3) != tenon.dtype((42, 8, 1)) and pickle.loads(pickle.dumps(odd)) == odd


@pytest.mark.parametrize("python, name", [(bool, "bool"), (int, "int64"), (float, "float64"), (complex, "complex128")])
def test_pythons_own_types(python, name):
    assert are_one(python, name)


@pytest.mark.parametrize("name", PLAIN)
def test_typestr_in_this_machines_order(name):
    typestr = {n: t for n, _, t, *_ in _core.DTYPES}[name]
    assert tenon.dtype("<" + typestr) == name == tenon.dtype("=" + typestr)
    if typestr[1:] == "1":
        assert tenon.dtype("|" + typestr) == tenon.dtype(">" + typestr) == name
    else:
        for other in (">" + typestr, "|" + typestr, typestr):
            with pytest.raises(TypeError, match="is no element type"):
                tenon.dtype(other)


@pytest.mark.parametrize("nothing", WORDS_FOR_NOTHING, ids=steady_repr)
def test_what_is_no_element_type(nothing):
    assert tenon.dtype("float32") != nothing and nothing != tenon.dtype("float32")
    with pytest.raises(TypeError, match=r"is no element type; expected a name like 'float32'"):
        tenon.dtype(nothing)


def test_objects_that_lie_are_unequal_and_nothing_else():
    class Liar:
        @property
        def dtype(self):
            raise KeyError("dtype")

        @property
        def name(self):
            return 42

        def __repr__(self):
            return "Liar()"

    Liar.__module__ = "tensorflow.python"
    assert tenon.dtype("int8") != Liar()
    Liar.__module__ = "torch"
    assert tenon.dtype("int8") != Liar()


def pretending(to_be: type) -> object:
    return type("Pretender", (), {"__class__": to_be})()


class Unhashable(str):
    def __hash__(self):
        raise KeyError("hash")


class Endless(tuple):
    def __iter__(self):
        raise KeyError("iter")


STRANGE = [f"dtype(code={'1' * 5000}, bits=8, lanes=1)", "dtype(", "dtype(0, 8, 1)", "\ud800", pretending(str), pretending(tuple),
           pretending(tenon.dtype), (pretending(int), 8, 1)]  # fmt: skip


@pytest.mark.parametrize("strange", STRANGE, ids=lambda s: f"{type(s).__name__}{str(s)[:12]!a}")
def test_comparing_never_raises(strange):
    assert tenon.dtype("int8") != strange
    with pytest.raises(TypeError, match="is no element type"):
        tenon.dtype(strange)


def test_what_is_derived_from_str_and_tuple_is_what_it_holds():
    assert tenon.dtype("int8") == Unhashable("int8") and tenon.dtype("int8") != Unhashable("uint8")
    assert tenon.dtype("int8") == Endless((0, 8, 1)) and tenon.dtype("int8") != Endless((1, 8, 1))
    two_faced = type("TwoFaced", (str,), {"__str__": lambda self: "int8"})("float32")
    assert tenon.dtype(two_faced).name == "float32" and tenon.dtype(two_faced).triple == (2, 32, 1)
    number = type("Number", (int,), {"__int__": lambda self: 99999, "__index__": lambda self: 99999})(2)
    assert tenon.dtype((number, 32, 1)).triple == (2, 32, 1)
    assert [type(n) for n in tenon.dtype((number, 32, 1)).triple] == [int, int, int]


def test_a_class_derived_from_it_makes_its_own():
    derived = type("Derived", (tenon.dtype,), {})
    d = derived(tenon.dtype("int8"))
    assert type(d) is derived and d == "int8" and derived(d) is d and type(tenon.dtype(d)) is tenon.dtype


def test_only_names_find_it_in_a_dictionary():
    d = tenon.dtype("uint8")
    assert {"uint8": 1}.get(d) == {d: 1}.get("uint8") == 1 and {(1, 8, 1): 1}.get(d) is None


# --- the libraries' words ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAIN)
def test_numpy(name):
    np = need("numpy")
    d = tenon.dtype(name)
    for word in (np.dtype(name), np.dtype(name).type, np.zeros(1, name).dtype):
        assert d == word and word == d and tenon.dtype(word) == d
    assert np.zeros(2, d).dtype == name == tenon.asdlpack(np.zeros(2, d)).dtype
    assert tenon.dtype(tuple(map(np.uint16, d.triple))).triple == d.triple
    swapped = np.dtype(name).newbyteorder()
    assert (d == swapped) is (d.itemsize == 1)


@pytest.mark.parametrize("word", ["S3", "U2", "M8[s]", "m8[s]", "V4", "O", [("x", "f4")]], ids=repr)
def test_numpy_what_has_no_dlpack_type(word):
    np = need("numpy")
    with pytest.raises(TypeError, match="is no element type"):
        tenon.dtype(np.dtype(word))
    assert all(tenon.dtype(name) != np.dtype(word) for name in NAMES)


def test_numpy_platform_names_are_the_same_type():
    np = need("numpy")
    assert tenon.dtype(np.intp) == "int64" and tenon.dtype(np.longlong) == "int64" and tenon.dtype(np.double) == "float64"


def test_ml_dtypes():
    np, ml = need("numpy"), need("ml_dtypes")
    checked = 0
    for name in NAMES:
        if not hasattr(ml, name):
            continue
        for word in (getattr(ml, name), np.dtype(getattr(ml, name))):
            assert are_one(word, name)
        checked += 1
    assert checked >= 15


def test_torch():
    torch = need("torch")
    checked = 0
    for name in NAMES:
        word = getattr(torch, name, None)
        if isinstance(word, torch.dtype):
            assert are_one(word, name)
            checked += 1
    assert checked >= 20
    assert tenon.dtype(torch.float) == "float32" and tenon.dtype(torch.cfloat) == "complex64"
    assert tenon.dtype("float32") != torch.device("cpu") and tenon.dtype("float32") != torch.strided


def test_jax():
    jnp = need("jax").numpy
    for name in ("float32", "bfloat16", "int8", "complex64", "float8_e4m3fn"):
        word = getattr(jnp, name)
        assert are_one(word, name) and are_one(jnp.dtype(word), name)
    assert tenon.dtype(jnp.bool_) == "bool"


@pytest.mark.slow
def test_tensorflow():
    if not has("tensorflow"):
        pytest.skip("tensorflow is not installed")
    code = """
import tensorflow as tf, tenon
for name in ("float32", "bfloat16", "int64", "bool", "complex128"):
    word = getattr(tf, name)
    assert tenon.dtype(word) == name and tenon.dtype(name) == word, name
    assert tf.as_dtype(tenon.dtype(name)) == word
for word in (tf.string, tf.resource, tf.variant):
    assert tenon.dtype("float32") != word
print("checked")
"""
    assert "checked" in script(code)


@pytest.mark.slow
def test_paddle():
    if not has("paddle"):
        pytest.skip("paddle is not installed")
    code = """
import paddle, tenon
for name in ("float32", "bfloat16", "int64", "bool", "complex128"):
    word = getattr(paddle, name)
    assert tenon.dtype(word) == name and tenon.dtype(name) == word, name
print("checked")
"""
    assert "checked" in script(code)


def test_pyarrow():
    pa = need("pyarrow")
    words = {pa.float16(): "float16", pa.float32(): "float32", pa.float64(): "float64", pa.int8(): "int8",
             pa.uint64(): "uint64", pa.bool_(): "bool"}  # fmt: skip
    for word, name in words.items():
        assert are_one(word, name)
    for word in (pa.string(), pa.date32(), pa.list_(pa.int8()), pa.decimal128(5)):
        assert tenon.dtype("float32") != word


def test_tensor_says_it_with_one():
    t = tenon.asdlpack(array.array("f", [1, 2]))
    assert type(t.dtype) is tenon.dtype and t.dtype == "float32" == t.dtype and t.dtype.bits == 32
