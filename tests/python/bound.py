# tests/python/bound.py: the examples and guide pages that bind functions, built together as one project.
from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from building import ROOT, WARNINGS, configure, copy_of, install_to, run

EXAMPLES = ROOT / "examples"
GUIDES = ROOT / "docs" / "guides"

# Each example with what it needs beside Tenon.
NEEDS = {
    "image_filter": "pybind11",
    "three_arrays": "pybind11",
    "nearest": "nanobind",
    "model": "nanobind",
    "one_of": "nanobind",
    "out": "nanobind",  # and pybind11, where that is installed, too
    "keep": "nanobind",  # likewise
    "vectorize": "nanobind",
    "in_place": None,
    "mdspan": "mdspan",
}


@dataclass(frozen=True)
class Page:
    """A page whose C++ is built: by the project of an example, with what it leaves out around it."""

    name: str
    like: str  # the example
    head: str  # before its first block, if that is not a whole module
    frame: str  # around what stands in a module's body

    @property
    def path(self) -> Path:
        return GUIDES / f"{self.name}.md"

    @property
    def target(self) -> str:
        return "guide_" + self.name.replace("-", "_")

    @property
    def blocks(self) -> list[str]:
        return re.findall(r"^```cpp\n(.*?)^```$", self.path.read_text(), re.M | re.S)

    @property
    def source(self) -> str:
        """The first block as it stands is the module `demo`; the others are the module `guide`."""
        body = [block for block in self.blocks if IN_BODY.match(block)]
        around = [block for block in self.blocks if not IN_BODY.match(block)]
        return "\n".join([self.head, *around, self.frame % "\n".join(body)])


IN_BODY = re.compile(r"(m\.|py::|nb::|tenon::)")
NANOBIND_HEAD = (
    "#include <nanobind/nanobind.h>\n#include <tenon/bind/nanobind.hpp>\n"
    "namespace nb = nanobind;\nusing namespace nb::literals;\n"
)
NANOBIND_FRAME = "NB_MODULE(guide, m) {\n%s\n}\n"
PAGES = [
    Page("pybind11", "image_filter", "", "PYBIND11_MODULE(guide, m) {\n%s\n}\n"),
    Page("nanobind", "nearest", "", NANOBIND_FRAME),
    Page(
        "c-api",
        "in_place",
        "",
        "static PyMethodDef guide_methods[] = {\n%s\n{}};\n"
        'static PyModuleDef guide_definition = {PyModuleDef_HEAD_INIT, "guide", {}, 0, guide_methods, {}, {}, {}, {}};\n'
        "PyMODINIT_FUNC PyInit_guide() { return PyModuleDef_Init(&guide_definition); }\n",
    ),
    Page(
        "arrays",
        "nearest",
        "#include <nanobind/stl/vector.h>\n" + NANOBIND_HEAD
        + "inline void launch_add(const float*, const float*, float*, std::int64_t, void*) {}\n",
        NANOBIND_FRAME,
    ),
    Page(
        "element_types",
        "nearest",
        "#include <algorithm>\n#include <nanobind/nanobind.h>\n#include <tenon/bind/nanobind.hpp>\n"
        "namespace nb = nanobind;\nusing namespace nb::literals;\n",
        NANOBIND_FRAME,
    ),
    Page("results", "nearest", "#include <nanobind/stl/tuple.h>\n" + NANOBIND_HEAD, NANOBIND_FRAME),
    Page("loops", "nearest", NANOBIND_HEAD, NANOBIND_FRAME),
    Page("keeping", "nearest", "#include <thread>\n" + NANOBIND_HEAD, NANOBIND_FRAME),
    Page("threads", "nearest", "#include <tenon/tensor/for_each.hpp>\n" + NANOBIND_HEAD, NANOBIND_FRAME),
    Page("from_nanobind", "nearest", "#include <memory>\n#include <vector>\n" + NANOBIND_HEAD, NANOBIND_FRAME),
]


def has_mdspan() -> bool:
    """In the standard library, or among NVIDIA's packages."""
    compiler = shutil.which("c++")
    probe = [str(compiler), "-std=c++23", "-fsyntax-only", "-include", "mdspan", "-x", "c++", os.devnull]
    if compiler and subprocess.run(probe, capture_output=True).returncode == 0:
        return True
    packages = importlib.util.find_spec("nvidia")
    folders = (packages.submodule_search_locations or []) if packages else []
    return any(list(Path(folder).glob("*/include/**/cuda/std/mdspan")) for folder in folders)


@functools.cache
def has_needs_of(example: str) -> bool:
    need = NEEDS[example]
    if need == "mdspan":
        return has_mdspan()
    return need is None or importlib.util.find_spec(need) is not None


@dataclass(frozen=True)
class Built:
    folder: Path  # with a copy of each example, and the sources of the pages
    output: str  # of the compiler

    def of(self, name: str) -> Path:
        """The folder that a project's module lies in."""
        folder = self.folder / "build" / name
        if not folder.exists():
            pytest.skip(f"{name} needs what is not installed: {', '.join(sorted(filter(None, NEEDS.values())))}")
        return folder


@functools.cache
def build(session_folder: Path) -> Built:
    """Once in a session: all that has what it needs, with Tenon as `cmake --install` leaves it."""
    folder = session_folder / "bound"
    if folder.exists():
        pytest.fail("the build failed: the first test that needed it shows how")
    folder.mkdir()
    prefix = install_to(folder / "prefix", folder / "tenon")
    projects = []
    for example in filter(has_needs_of, NEEDS):
        copy_of(EXAMPLES / example, folder)
        projects.append(example)
    for page in PAGES:
        if not has_needs_of(page.like):
            continue
        project = folder / page.target
        project.mkdir()
        recipe = (EXAMPLES / page.like / "CMakeLists.txt").read_text().replace(page.like, page.target)
        (project / "CMakeLists.txt").write_text(f"{recipe}set_target_properties({page.target} PROPERTIES OUTPUT_NAME demo)\n")
        (project / f"{page.target}.cpp").write_text(page.source)
        projects.append(page.target)
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.23...4.0)\nproject(bound LANGUAGES CXX)\n"
        + "".join(f"add_subdirectory({name})\n" for name in projects)
    )
    configure(
        folder,
        folder / "build",
        f"-Dtenon_ROOT={prefix}",
        f"-DCMAKE_CXX_FLAGS={WARNINGS} -O0",
        "-DCMAKE_NO_SYSTEM_FROM_IMPORTED=ON",  # or there would be no warnings from headers
        # In half the time: the sources of nanobind at once, and without the optimization pybind11 asks for.
        "-DCMAKE_UNITY_BUILD=ON",
        "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0",
        "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF",
    )
    return Built(folder, run("cmake", "--build", folder / "build", "--verbose"))
