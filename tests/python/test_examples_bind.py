# tests/python/test_examples_bind.py: the examples that bind functions are built as one project, and do what they say.
from __future__ import annotations

import functools
import json
import sys
from pathlib import Path

import pytest
from bound import EXAMPLES, NEEDS, Built, build
from building import assert_clean, run
from test_examples import is_installed

# The libraries each example has a line for if they are installed.
SHOWN = dict.fromkeys(NEEDS, {"torch": "PyTorch  ", "jax": "JAX  "}) | {"mdspan": {"torch": "PyTorch  "}}

# One process for all of them: libraries take seconds to import.
DRIVER = """
import contextlib, io, json, pathlib, runpy, sys, traceback

told = {}
for name, script, folder in json.loads(sys.argv[1]):
    sys.argv[1:] = [folder]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            runpy.run_path(script, run_name="__main__")
        except BaseException:
            print("FAILED", traceback.format_exc())
    told[name] = out.getvalue()
pathlib.Path("told.json").write_text(json.dumps(told))
"""


@pytest.fixture
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.getbasetemp())


@functools.cache
def run_all(folder: Path) -> tuple[dict[str, str], str]:
    """What each example printed, and what the process said besides."""
    names = [name for name in NEEDS if (folder / "build" / name).exists()]
    jobs = [(name, str(folder / name / "run.py"), str(folder / "build" / name)) for name in names]
    driver = DRIVER.replace('"told.json"', repr(str(folder / "told.json")))
    said = run(sys.executable, "-c", driver, json.dumps(jobs))
    return json.loads((folder / "told.json").read_text()), said


def test_every_example_with_a_module_is_built_by_a_test():
    folders = {file.parent.name for file in EXAMPLES.glob("*/CMakeLists.txt")}
    elsewhere = {name for name in folders if name in ("own_class", "cuda_saxpy") or name.startswith("template_")}
    assert folders - elsewhere == set(NEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDS)
def test_compiles_without_warnings(built, name):
    built.of(name)
    sources = list((built.folder / name).glob("*.cpp"))
    assert sources
    assert_clean(built.output, *sources)


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDS)
def test_does_what_it_says(built, name):
    if not is_installed("numpy"):
        pytest.skip("the examples are about NumPy's arrays")
    built.of(name)
    told, said = run_all(built.folder)
    assert "FAILED" not in told[name], told[name]
    assert told[name].startswith("NumPy  ")
    for library, line in SHOWN[name].items():
        assert (f"\n{line}" in told[name]) == is_installed(library), told[name]
    assert "leaked" not in said  # nanobind's word


@pytest.mark.parametrize("name", NEEDS)
def test_is_short_enough_to_be_copied(name):
    headers = [*(EXAMPLES / name).glob("*.hpp")]
    for module in (EXAMPLES / name).glob("*.cpp"):
        lines = [line for file in (*headers, module) for line in file.read_text().splitlines() if line.strip()]
        assert len(lines) < (70 if name == "keep" else 45)  # what the collector needs to know comes on top
        assert max(map(len, lines)) <= 110
