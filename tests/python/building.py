# tests/python/building.py: what the tests share that build projects outside this tree, as a user builds them.
from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from isolation import LIMIT, SANITIZED

import tenon

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent  # cmake and ninja lie beside the interpreter
WARNINGS = "-Wall -Wextra"
# The files of src/, in a checkout or wherever they were unpacked; installed ones lie among the headers.
ENGINE = [r"/src/(?:core|python|tenon)\.cpp", r"/src/(?:value|tensor|memory|gpu|arrow|py|bind)/\S+"]


def environment(**more: object) -> dict[str, str]:
    """Without what the sanitizer run preloads: compilers leak, and the projects are built as a user builds them."""
    kept = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PYTHONMALLOC")}
    path = os.pathsep.join([str(TOOLS), os.environ.get("PATH", os.defpath)])
    return kept | {"PATH": path, "JAX_PLATFORMS": "cpu"} | {name: str(value) for name, value in more.items()}


def attempt(*command: object, **more: object) -> subprocess.CompletedProcess[str]:
    """A command's exit status and output; `more` goes into its environment."""
    return subprocess.run(
        [str(part) for part in command],
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
    )


def run(*command: object, **more: object) -> str:
    """The output of a command that succeeds."""
    done = attempt(*command, **more)
    assert done.returncode == 0, done.stdout
    return done.stdout


def configure(source: Path, build: Path, *options: object) -> str:
    return run("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}", *options)


def install_to(prefix: Path, build: Path) -> Path:
    """Tenon as `cmake --install` leaves it."""
    configure(ROOT, build, "-DTENON_BUILD_TESTS=OFF", "-DTENON_BUILD_PYTHON=OFF")
    run("cmake", "--install", build, "--prefix", prefix)
    return prefix


def pip_install(project: Path, site: Path, *options: object, **more: object) -> str:
    """Builds a project with what is installed here, and installs it into a folder of its own."""
    install = "-m pip install -v --no-index --no-deps --no-build-isolation --target".split()
    return run(sys.executable, *install, site, *options, project, **more)


def python_path(*folders: Path) -> str:
    """A PYTHONPATH with these folders ahead of what is on it."""
    return os.pathsep.join(filter(None, [*map(str, folders), os.environ.get("PYTHONPATH")]))


def copy_of(folder: Path, into: Path) -> Path:
    """A copy with nothing of this tree around it."""
    built = shutil.ignore_patterns("build", "__pycache__", "*.egg-info")
    return Path(shutil.copytree(folder, into / folder.name, ignore=built))


def assert_clean(output: str, *files: object) -> None:
    """No warning from Tenon's headers, its engine or the project's own files; those of binders are their authors' business."""
    assert WARNINGS in output, "the flags did not reach the compiler"
    ours = [re.escape(str(file)) for file in files] + [r"include/tenon/\S+", *ENGINE]
    found = re.findall(rf"^.*(?:{'|'.join(ours)}):\d+:\d+: warning: .*$", output, re.M)
    assert not found, "\n".join(found)


def need_installed_package() -> Path:
    """The folder of the installed package, with its C++ files; skips where `tenon` is imported from elsewhere."""
    if SANITIZED:
        pytest.skip("the package with sanitizers is imported by no process that does not preload them")
    folder = Path(tenon.__file__).parent
    for found in importlib.metadata.distributions(name="tenon-dlpack"):
        if Path(str(found.locate_file("tenon"))).resolve() == folder.resolve():
            return folder
    pytest.skip(f"{folder} is not the package as pip installs it")
