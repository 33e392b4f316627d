# tests/python/test_guides.py: the C++ shown by the guides of the binders is built as it stands, and its sessions are run.
from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import sys
import sysconfig
import types

import pytest
import test_docs
from bound import PAGES, Built, Page, build
from building import assert_clean, run
from real_support import need

BINDERS = [page for page in PAGES if page.name not in ("arrays", "loops")]
OUR_WORD = "<!-- built by tests/python/test_guides.py"


@pytest.fixture
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.getbasetemp())


def load(name: str, folder) -> types.ModuleType:
    """One of the modules of the one file."""
    path = str(folder / f"demo{sysconfig.get_config_var('EXT_SUFFIX')}")
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def demo_of(page: Page, built: Built) -> types.ModuleType:
    """The module of a page: its first block, and the functions of all the others."""
    folder = built.of(page.target)
    guide = load("guide", folder)
    demo = load("demo", folder) if page in BINDERS else types.ModuleType("demo")
    vars(demo).update({name: value for name, value in vars(guide).items() if not name.startswith("_")})
    return demo


def test_the_pages_that_are_built_are_these():
    assert {page.path for page in PAGES} == {path for path in test_docs.PAGES if OUR_WORD in path.read_text()}
    assert OUR_WORD == test_docs.BUILT


@pytest.mark.parametrize("page", BINDERS, ids=lambda page: page.name)
def test_a_tensor_in_and_a_tensor_out_takes_ten_lines(page):
    lines = page.blocks[0].splitlines()
    assert lines[0].startswith("#include") and "demo" in page.blocks[0]
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 100


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_compiles_without_warnings(page, built):
    built.of(page.target)
    assert_clean(built.output, built.folder / page.target / f"{page.target}.cpp")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sessions(page, built, monkeypatch):
    for wanted in test_docs.NEEDS.findall(page.path.read_text()):
        for library in wanted.split():
            need(library)
    monkeypatch.setitem(sys.modules, "demo", demo_of(page, built))
    told: list[str] = []
    shown = test_docs.sessions(page.path)
    assert shown
    assert test_docs.run(shown, page.name, str(page.path), told, {"__name__": "__main__"}) == 0, "".join(told)


@pytest.mark.slow
def test_the_stub_is_as_shown(built):
    (page,) = (page for page in PAGES if page.name == "nanobind")
    folder = built.of(page.target)
    (shown,) = re.findall(r"^```python\n(.*?)^```$", page.path.read_text(), re.M | re.S)
    stub = run(sys.executable, "-m", "nanobind.stubgen", "-m", "demo", "-i", folder, "-O", folder)
    written = (folder / "demo.pyi").read_text()
    assert shown.strip() in written, stub + written


@pytest.mark.parametrize("page", BINDERS, ids=lambda page: page.name)
def test_says_what_a_page_of_a_binder_must(page):
    text = page.path.read_text()
    for link in ("building.md", "arrays.md", "../../BENCHMARKS.md"):
        assert f"({link}" in text
    for word in ("target_link_libraries(demo", "optional", "variant", "vector", "tuple", "map", "empty_like", "own"):
        assert word in text
    assert "pybind11" not in text if page.name == "nanobind" else "nanobind::" not in text
