# tests/python/test_docs.py: every session shown in README, docs and docstrings is run, and prints what it says.
from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from real_support import need

import tenon

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = [name for _, name, _ in pkgutil.walk_packages(tenon.__path__, "tenon.") if not name.startswith("tenon.tests")]
FENCE = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUILT = "<!-- built by tests/python/test_guides.py"  # their sessions import what their C++ makes
NEEDS = re.compile(r"<!-- needs: ([\w ]+) -->")


def need_cuda() -> None:
    if not need("torch").cuda.is_available():
        pytest.skip("needs a CUDA device")


def sessions(page: Path) -> list[doctest.Example]:
    """All sessions of a page as one, with the line each example stands on."""
    text = page.read_text()
    found = []
    for block in FENCE.finditer(text):
        for example in doctest.DocTestParser().get_examples(block[1]):
            example.lineno += text[: block.start(1)].count("\n")
            found.append(example)
    return found


def run(examples: list[doctest.Example], name: str, where: str, told: list[str], names: dict[str, object]) -> int:
    test = doctest.DocTest(examples, names, name, where, 0, None)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=told.append)
    return runner.failures


PLAIN_PAGES = [p for p in PAGES if sessions(p) and BUILT not in p.read_text()]


@pytest.mark.parametrize("page", PLAIN_PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_pages(page, tmp_path, monkeypatch):
    for wanted in NEEDS.findall(page.read_text()):
        for library in wanted.split():
            need_cuda() if library == "cuda" else need(library)
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    assert run(sessions(page), page.name, str(page), told, {"__name__": "__main__"}) == 0, "".join(told)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name, tmp_path, monkeypatch):
    if name.endswith("__main__"):
        pytest.skip("a program, not a module to import")
    module = importlib.import_module(name)
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        assert run(test.examples, test.name, name, told, dict(test.globs)) == 0, "".join(told)


def test_a_session_that_lies_is_found_out():
    examples = doctest.DocTestParser().get_examples(">>> 1 + 1\n3\n")
    told: list[str] = []
    assert run(examples, "planted", "nowhere", told, {}) == 1 and "Got:\n    2" in "".join(told)


def test_readme_shows_the_four_questions():
    """The five-line example, `inspect`, `explain` and `open`: the first by test_readme.py, the others here."""
    shown = "".join(example.source for example in sessions(ROOT / "README.md"))
    assert all(f"tenon.{name}(" in shown for name in ("inspect", "explain", "open"))
    assert {page.stem for page in PAGES if sessions(page)} >= {"README", "explain", "files", "inspect", "libraries", "pickling"}
