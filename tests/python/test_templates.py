# tests/python/test_templates.py: pip installs each project template with the installed Tenon, and its tests pass.
from __future__ import annotations

import importlib.util
import re
import sys

import pytest
from building import ROOT, WARNINGS, assert_clean, copy_of, need_installed_package, pip_install, python_path, run
from quick import rest_is_slow

TEMPLATES = {"template_pybind11": ["pybind11"], "template_nanobind": ["nanobind"], "template_capi": []}
# In a third of the time: the sources of nanobind at once, and without the optimization pybind11 asks for.
QUICKLY = {
    "cmake.build-type": "Debug",
    "cmake.define.CMAKE_CXX_FLAGS_DEBUG": "-O0",
    "cmake.define.CMAKE_UNITY_BUILD": "ON",
    "cmake.define.CMAKE_UNITY_BUILD_BATCH_SIZE": "0",
    "cmake.define.CMAKE_INTERPROCEDURAL_OPTIMIZATION": "OFF",
}


def test_every_template_is_tested():
    assert sorted(TEMPLATES) == sorted(folder.name for folder in (ROOT / "examples").glob("template_*"))


@pytest.mark.parametrize("name", TEMPLATES)
def test_template_asks_pip_for_what_it_needs(name):
    """The build below is not isolated, so it would not notice."""
    project = (ROOT / "examples" / name / "pyproject.toml").read_text()
    (requires,) = re.findall(r"^requires = \[(.*)\]$", project, re.M)
    asked = [re.split("[<>=]", wanted)[0] for wanted in re.findall(r'"(.*?)"', requires)]
    assert asked == ["scikit-build-core", *TEMPLATES[name], "tenon-dlpack"]


@pytest.mark.parametrize("name", rest_is_slow(TEMPLATES, "template_capi"))
def test_template_installs_and_passes_its_tests(name, tmp_path):
    for needed in ("numpy", "scikit_build_core", *TEMPLATES[name]):
        if not importlib.util.find_spec(needed):
            pytest.skip(f"{needed} is not installed")
    package = need_installed_package()
    project = copy_of(ROOT / "examples" / name, tmp_path)
    settings = [f"--config-settings={key}={value}" for key, value in QUICKLY.items()]
    verbose = "--config-settings=build.verbose=true", "--config-settings=cmake.define.CMAKE_NO_SYSTEM_FROM_IMPORTED=ON"
    output = pip_install(project, tmp_path / "site", *settings, *verbose, CXXFLAGS=WARNINGS)
    assert f"{package}/include" in output and str(ROOT / "include") not in output
    assert_clean(output, project / "src" / "demo.cpp")
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", project]
    said = run(sys.executable, "-m", "pytest", *options, project / "tests", PYTHONPATH=python_path(tmp_path / "site"))
    assert re.search(r"^2 passed", said, re.M), said
