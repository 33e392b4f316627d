# tests/python/test_library_table.py: one table of libraries, which C++ and Python read, and no code that reads our own sentences.
from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from real_support import has

import tenon
from tenon import _core, _limits
from tenon._libraries import LIBRARIES

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "src" / "py" / "library" / "table.hpp"
PACKAGE = Path(tenon.__file__).parent
#: What a library is as a place for tensors, and what becomes of its objects, is code: of these two.
CODE_OF_LIBRARIES = {"_libraries.py", "_remedies.py"}
NAMES = set(_core.LIBRARIES)


def test_a_row_is_a_library_and_a_library_is_a_row():
    assert {row["name"] for row in _core.LIBRARIES.values()} == set(LIBRARIES)
    for name, library in LIBRARIES.items():
        row = _core.LIBRARIES[name]
        assert (library.name, library.module, library.distribution) == (name, name, row["distribution"])
        for field in ("forgets_readonly", "forgets_readonly_on_gpu", "donates_on_gpu"):
            assert getattr(library, field) is row[field], (name, field)
    assert _core.LIBRARIES["jaxlib"] is _core.LIBRARIES["jax"]


@pytest.mark.skipif(not TABLE.exists(), reason="the sources are not here")
def test_the_rows_are_those_of_the_source():
    text = TABLE.read_text()
    written = re.findall(r'\.(?:name|alias) = "([^"]+)"', text)
    assert sorted(written) == sorted(NAMES)
    others = [path for path in (ROOT / "src").rglob("*.[hc]pp") if path != TABLE and "library_row{" in path.read_text()]
    assert others == [], "there is one table"


def test_nobody_can_change_it():
    with pytest.raises(TypeError):
        _core.LIBRARIES["numpy"] = {}
    with pytest.raises(TypeError):
        _core.LIBRARIES["numpy"]["devices"] = ""


def test_words_are_those_of_the_other_tables():
    types = {name for name, *_ in _core.DTYPES}
    for name, row in _core.LIBRARIES.items():
        assert set(row["more_types"].split()) <= types - _limits.PLAIN, name
        assert set(row["fewer_types"].split()) <= _limits.PLAIN, name
        kinds = {*row["devices"].split(), *(pair.split("=")[1] for pair in row["device_names"].split())}
        assert all(tenon.device(kind).kind == kind for kind in kinds), name
        assert {pair.split("=")[1] for pair in row["type_names"].split()} <= types, name


def strings_in(path: Path) -> list[str]:
    return [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


@pytest.mark.parametrize("path", sorted(set(PACKAGE.rglob("*.py")) - set((PACKAGE / "tests").rglob("*"))), ids=lambda p: p.name)
def test_no_other_list_of_libraries(path):
    if path.name in CODE_OF_LIBRARIES:
        return
    # One library may be needed for what it does, as NumPy is; two are a list.
    assert len(NAMES & set(strings_in(path))) < 2, sorted(NAMES & set(strings_in(path)))


# --- what the ladder's exception carries ---------------------------------------------------------------


def parts_of(obj: object, kind: type[Exception]) -> tuple[str, tuple[tuple[str, str | None], ...], str]:
    with pytest.raises(kind) as caught:
        tenon.asdlpack(obj)
    return caught.value.reason, caught.value.tried, str(caught.value)


def test_what_speaks_no_protocol():
    reason, tried, text = parts_of(object(), TypeError)
    assert reason == (
        "cannot take a tensor from 'object' object: it speaks no tensor protocol; pass an array, a DLPack capsule or a buffer"
    )
    assert [why for _, why in tried] == [None] * len(tried) and "__dlpack__" in dict(tried)
    assert text.startswith(f"tenon: {reason}. Tried:\n") and tenon.explain(object(), "numpy").reason == reason


def test_what_refuses_says_why():
    class Odd:
        __array_interface__ = {"shape": (2,), "typestr": "<f4", "data": (8, False), "version": 99}

    reason, tried, text = parts_of(Odd(), (BufferError, ValueError))
    told = dict(tried)
    why = told.pop("__array_interface__")
    assert why and set(told.values()) == {None} and f"__array_interface__: {why}" in text
    assert reason == "cannot take a tensor from 'Odd' object" and tenon.explain(Odd(), "numpy").reason == why
    assert [name for name, _ in tried] == re.findall(r"^  ([^:]+):", text, re.MULTILINE)


@pytest.mark.skipif(not has("pyarrow"), reason="pyarrow is not installed")
def test_what_is_raised_before_is_told_there():
    import pyarrow

    values = pyarrow.array([[1, None]], pyarrow.list_(pyarrow.int32(), 2))
    _, tried, _ = parts_of(values, Exception)
    told = dict(tried)
    assert told["__dlpack__"] is None and told["Arrow"]


def test_an_inspection_has_the_first_sentence_too():
    seen = tenon.inspect(object())
    assert seen.headline.startswith("TypeError: tenon: cannot take") and seen.headline.endswith("or a buffer.")
    assert seen.problem.startswith(seen.headline) and "Tried" not in repr(seen) and "Tried" in seen.problem


@pytest.mark.parametrize("tried", [5, ((),), (("a", 3),), "text", None], ids=repr)
def test_what_others_call_tried_is_theirs(tried):
    class Raises:
        def __dlpack__(self, **_):
            error = BufferError("mine")
            error.reason, error.tried = "theirs", tried
            raise error

        def __dlpack_device__(self):
            return 1, 0

    assert tenon.explain(Raises(), "numpy").reason in ("mine", "theirs")
