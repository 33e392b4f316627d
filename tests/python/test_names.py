# tests/python/test_names.py: each name on docs/reference/names.md is in the header that the page names, which is enough for it.
from __future__ import annotations

import re
import shutil
import sysconfig

import pytest
from building import ROOT, attempt

PAGE = ROOT / "docs" / "reference" / "names.md"


def listed() -> dict[str, list[str]]:
    """The names of the page, by header."""
    found: dict[str, list[str]] = {}
    for names, header in re.findall(r"^\| (`tenon::.*?`) \| .* \| `<(\S+)>` \|$", PAGE.read_text(), re.M):
        found.setdefault(header, []).extend(re.findall(r"`([\w:]+)`", names))
    return found


def compiled(header: str, names: list[str], folder):
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler on PATH")
    file = folder / "names.cpp"
    # One function for each: a name may be there twice, as tenon::empty_like and tenon::py::empty_like.
    uses = "".join(f"void use_{number}() {{ using {name}; }}\n" for number, name in enumerate(names))
    file.write_text(f"#include <{header}>\n{uses}")
    folders = [f"-I{ROOT / 'include'}"]
    if header.startswith(("tenon/py", "tenon/bind")):
        folders += ["-isystem", sysconfig.get_path("include")]
    return attempt(compiler, "-std=c++20", "-fsyntax-only", *folders, file)


def test_the_page_lists_names():
    names = [name for of_header in listed().values() for name in of_header]
    assert 40 <= len(names) <= 80 and len(names) == len(set(names))
    rows = re.findall(r"^\| `", PAGE.read_text(), re.M)
    assert len(rows) == len(re.findall(r"^\| (?:`tenon::[\w:]+`(?:, )?)+ \| [^|]+ \| `<\S+>` \|$", PAGE.read_text(), re.M))


@pytest.mark.parametrize("header", listed())
def test_names_are_in_their_header(header, tmp_path):
    done = compiled(header, listed()[header], tmp_path)
    assert done.returncode == 0, done.stdout


def test_a_name_that_is_not_there_is_seen(tmp_path):
    done = compiled("tenon/value/device.hpp", ["tenon::device", "tenon::devise"], tmp_path)
    assert done.returncode != 0 and "devise" in done.stdout
