# tests/python/test_numpy_dtype.py: NumPy and JAX take a Tensor wherever they ask an object for its element type.
from __future__ import annotations

import pytest
from isolation import WITHOUT_PACKAGE, run_isolated
from real_support import has, need
from test_values import over

import tenon
from tenon import _core

np = need("numpy")
NUMPY = tuple(map(int, np.__version__.split(".")[:2]))
KINDS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
         "complex64", "complex128"]  # fmt: skip
NOT_OF_NUMPY = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]
# Before 2.4 NumPy knew nothing of `__numpy_dtype__`; it took the name, and warned.
quietly = pytest.mark.filterwarnings("ignore:in the future the .\\.dtype. attribute:DeprecationWarning")


@quietly
@pytest.mark.parametrize("kind", KINDS)
def test_numpy_finds_the_element_type(kind):
    t = tenon.asdlpack(np.zeros(3, kind))
    assert np.dtype(t) == np.result_type(t) == t.__numpy_dtype__ == np.dtype(kind)
    assert np.result_type(t, np.int8) == np.result_type(np.dtype(kind), np.int8)
    assert np.promote_types(t, "int8") == np.promote_types(kind, "int8")
    assert np.can_cast(t, np.complex128) and np.zeros(2, t).dtype == np.dtype(kind)


@quietly
@pytest.mark.skipif(not has("ml_dtypes"), reason="ml_dtypes is not installed")
@pytest.mark.parametrize("kind", NOT_OF_NUMPY)
def test_numpy_finds_those_of_ml_dtypes(kind):
    ml_dtypes = need("ml_dtypes")
    t = tenon.asdlpack(np.zeros(3, getattr(ml_dtypes, kind)))
    assert np.dtype(t) == np.result_type(t) == t.__numpy_dtype__ == np.dtype(getattr(ml_dtypes, kind))


@pytest.mark.parametrize("triple", [(3, 64, 1), (0, 16, 3), (42, 8, 1), (0, 4, 1)])
def test_what_numpy_has_not_is_a_type_error(triple):
    t = over(bytes(16), (2,), triple)
    with pytest.raises(TypeError, match="NumPy has no such element type"):
        t.__numpy_dtype__  # noqa: B018
    for ask in (np.dtype, np.result_type) if NUMPY >= (2, 4) else ():
        with pytest.raises(TypeError, match="NumPy has no such element type"):
            ask(t)


@pytest.mark.skipif(NUMPY < (2, 4), reason="this NumPy takes the name, and warns")
def test_what_stands_in_for_the_package_names_its_type():
    run_isolated(WITHOUT_PACKAGE + """
import numpy as np
t = tenon_exports.produce(tenon_exports.Counter(), shape=(2,))
assert type(t).__module__ == "tenon_stand_in" and np.dtype(t) == np.float32
""")


@quietly
@pytest.mark.skipif(not has("jax"), reason="jax is not installed")
@pytest.mark.parametrize("kind", ["bool", "int32", "uint8", "float32", "complex64", "bfloat16"])
def test_jax_takes_it(kind):
    need("jax")
    import jax.numpy as jnp

    a = np.arange(6).reshape(2, 3).astype(jnp.dtype(kind))
    t = tenon.asdlpack(a)
    for take in (jnp.asarray, jnp.array):
        got = take(t)
        assert (got.shape, got.dtype) == (a.shape, a.dtype) and (np.asarray(got) == a).all()


def test_every_type_of_the_table_answers():
    for _, triple, *_ in _core.DTYPES:
        t = over(bytes(16), (), triple)
        try:
            assert isinstance(t.__numpy_dtype__, np.dtype)
        except TypeError as e:
            assert "NumPy has no such element type" in str(e)
