# tests/python/test_bound_docs.py: what help() and stubs say of bound functions.
from __future__ import annotations

import ast
import importlib
import inspect
import pydoc
import re
import subprocess
import sys

import numpy
import pytest
from isolation import LIMIT

RESULT = "typing.Annotated[typing.Any, '{}']"
NUMBER = {"capi": "float", "nanobind": "float", "pybind11": "typing.SupportsFloat | typing.SupportsIndex"}


def array(phrase: str, element: str | None = None) -> str:
    """An array parameter; its element type is the first word with a digit, if nothing else is said."""
    element = element or "numpy." + re.search(r"[a-z]+\d+", phrase)[0]
    return f"tenon.typing.Array[{element}, typing.Literal['{phrase}']]"


VECTOR = array("float32[*]")

#: The first line of a function's documentation; `{number}` is what the binder calls a number.
SIGNATURES = {
    "total": f"total(x: {array('float64[*]')}) -> float",
    "threes": f"threes(x: {array('float32[*, 3]')}) -> int",
    "exactly": f"exactly(x: {array('float32[2, 3]')}) -> float",
    "scalar": f"scalar(x: {array('float64[]')}) -> float",
    "last_c": f"last_c(x: {array('C-contiguous float32[*, *]')}) -> float",
    "last_f": f"last_f(x: {array('F-contiguous float32[*, *]')}) -> float",
    "length_aligned": f"length_aligned(x: {array('float32[*], aligned to 64 bytes')}) -> int",
    "fill": f"fill(x: {array('writable float32[*]')}, value: {{number}}) -> None",
    "total_any": f"total_any(x: {array('any[...]', 'typing.Any')}) -> float",
    "on_rocm": f"on_rocm(x: {array('writable float32[*] on rocm')})"
               " -> tuple[str, list[int], list[int], str, int, int]",
    "anywhere": f"anywhere(x: {array('any[...] on any device', 'typing.Any')})"
                " -> tuple[str, list[int], list[int], str, int, int]",
    "maybe": f"maybe(x: {VECTOR} | None = None) -> int",
    "either": f"either(x: {VECTOR} | {array('float64[*]')}) -> int",
    "total_of": f"total_of(xs: collections.abc.Sequence[{array('float64[*]')}]) -> float",
    "mixed": f"mixed(xs: tuple[{VECTOR}, {array('float64[*]')}]) -> float",
    "first_converted": f"first_converted(x: {array('float32[*], or convertible with narrowing', 'typing.Any')}) -> float",
    "total_either": f"total_either(x: {array('float32|float64[*]', 'numpy.float32 | numpy.float64')}) -> float",
    "twice": f"twice(x: {array('float32|float64|int32[*]', 'numpy.float32 | numpy.float64 | numpy.int32')}) -> {RESULT.format('float32|float64|int32[*]')}",
    "halves": f"halves(x: {array('float32|float64|int32[*]', 'numpy.float32 | numpy.float64 | numpy.int32')}) -> {RESULT.format('float32|float64[*]')}",
    "empty_either": f"empty_either(x: {array('float32|float64[*]', 'numpy.float32 | numpy.float64')}) -> {RESULT.format('float32|float64[*]')}",
    "last_in_memory": f"last_in_memory(x: {array('contiguous float32[*, *]')}) -> float",
    "strides_untyped": f"strides_untyped(x: {array('C-contiguous any[*, *], or convertible', 'typing.Any')}) -> list[int]",
    "total_cuda_managed": f"total_cuda_managed(x: {array('float32[*, *] on cuda_managed')}) -> float",
    "scale": f"scale(x: {VECTOR}, s: {{number}} = 2.0) -> {RESULT.format('float32[*]')}",
    "pair_of": f"pair_of(x: {VECTOR}) -> tuple[{RESULT.format('float32[*]')}, {RESULT.format('float32[*]')}]",
    "both": f"both(x: {VECTOR}) -> list[{RESULT.format('float32[*]')}]",
    "named": f"named(x: {VECTOR}) -> dict[str, {RESULT.format('float32[*]')}]",
    "keep": f"keep(t: {array('any[...] on any device', 'typing.Any')}) -> tenon.Tensor",
}


@pytest.fixture(scope="module", params=("capi", "pybind11", "nanobind"))
def binder(request):
    if request.param != "capi":
        pytest.importorskip(request.param)
    return request.param


@pytest.mark.parametrize("function", SIGNATURES)
def test_signature(binder, function):
    documented = getattr(importlib.import_module(f"bound_{binder}"), function).__doc__
    assert documented.splitlines()[0] == SIGNATURES[function].format(number=NUMBER[binder])


def test_the_words_of_the_author_follow(binder):
    scale = importlib.import_module(f"bound_{binder}").scale
    assert scale.__doc__.rstrip().splitlines()[1:] == ["", "Multiplies every element."]
    shown = pydoc.plain(pydoc.render_doc(scale))
    assert "scale(" in shown and "float32[*]" in shown and "Multiplies every element." in shown


def test_inspect_sees_the_parameters_of_a_hand_written_module():
    bound = importlib.import_module("bound_capi")
    assert str(inspect.signature(bound.scale)) == "(x, s=2.0)"
    assert str(inspect.signature(bound.maybe)) == "(x=None)"
    assert str(inspect.signature(bound.tell)) == "()"


def test_a_hand_written_module_may_have_types_of_its_own():
    sum_of_metres = importlib.import_module("bound_capi").sum_of_metres
    assert sum_of_metres("1 m", ["2 m", "0.5 m"]) == 3.5
    for wrong in [("1 s", []), ("1 m", ["2 s"]), (1, [])]:
        with pytest.raises(TypeError, match="Metres"):
            sum_of_metres(*wrong)


def test_texts_of_a_definition_are_copied():
    greeting = importlib.import_module("bound_capi").greeting
    assert greeting() == "hello all of you who have come here today"
    assert greeting(whom="you", times=2) == "hello you again"
    assert str(inspect.signature(greeting)) == "(whom='all of you who have come here today', times=None)"


def test_a_dict_may_be_a_map_of_any_kind():
    unordered = importlib.import_module("bound_capi").unordered
    assert unordered({"a": numpy.ones(2), "b": numpy.ones(3)}) == {"a": 2.0, "b": 3.0}
    assert "dict[str, " in unordered.__doc__
    with pytest.raises(TypeError, match="xs"):
        unordered([numpy.ones(2)])


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    """The stub that nanobind writes of its module."""
    pytest.importorskip("nanobind")
    importlib.import_module("bound_nanobind")
    out = tmp_path_factory.mktemp("stubs") / "bound_nanobind.pyi"
    done = subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-m", "bound_nanobind", "-o", str(out)],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return out


def test_the_stub_is_python(stub):
    text = stub.read_text()
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert set(SIGNATURES) <= set(functions)
    x = functions["fill"].args.args[0]
    assert ast.unparse(x.annotation) == "tenon.typing.Array[numpy.float32, Literal['writable float32[*]']]"
    made = functions["scale"].returns
    assert made is not None and ast.unparse(made) == "Annotated[Any, 'float32[*]']"
    for noise in ("tenon::", "std::", "@", "array<", "direct<"):
        assert noise not in text.replace("@overload", "").replace("@staticmethod", ""), noise
