# tests/python/test_typing.py: the types the package declares are true, and strict checkers find nothing in what uses them.
from __future__ import annotations

import inspect
import subprocess
import sys
import types
from pathlib import Path

import checkers
import pytest
from checkers import installed
from isolation import LIMIT

import tenon

ROOT = Path(__file__).parents[2]
# What a user writes, and what the package itself is: as sources, because checkers are lenient with what is installed.
SOURCES = ROOT / "python"
TYPED = ROOT / "tests" / "typing"
CHECKED = [TYPED / "public_api.py", TYPED / "array_types.py", ROOT / "examples" / "demo.py", SOURCES / "tenon"]
CHECKED_WITH = {"torch": TYPED / "torch_api.py"}  # what a library's own types are needed for
PLANTED = "import tenon\nt: int = tenon.asdlpack(b'x')\nt.no_such_thing()\ntenon.from_pointer('x', 1, 'int8')\n"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What mypy has read, a large library among it, is not read again."""
    return tmp_path_factory.mktemp("mypy")


def mypy(cache: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    return checkers.mypy(cache, *files, config=ROOT / "pyproject.toml", path=SOURCES)


def pyright(tmp_path: Path, *files: Path) -> list[str]:
    return checkers.pyright(
        tmp_path, *files, paths=[SOURCES],
        reportMissingImports=False, reportMissingModuleSource=False, reportMissingTypeStubs=False,
        # The array libraries' own holes: what they return is not known to any checker.
        reportUnknownMemberType=False, reportUnknownVariableType=False, reportUnknownArgumentType=False,
        reportUnknownParameterType=False, reportUnknownLambdaType=False,
        # The package's modules are each other's friends.
        reportPrivateUsage=False, reportPrivateImportUsage=False,
    )  # fmt: skip


def test_every_typed_program_is_checked():
    assert set(TYPED.glob("*.py")) <= {*CHECKED, *CHECKED_WITH.values()}


@pytest.mark.slow
def test_mypy_finds_nothing(cache):
    done = mypy(cache, *CHECKED)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_finds_nothing(tmp_path):
    assert pyright(tmp_path, *CHECKED) == []


@pytest.mark.slow
@pytest.mark.parametrize("library", CHECKED_WITH)
def test_both_know_the_types_of(library, cache, tmp_path):
    installed(library)
    done = mypy(cache, CHECKED_WITH[library])
    assert done.returncode == 0, done.stdout + done.stderr
    assert pyright(tmp_path, CHECKED_WITH[library]) == []


@pytest.mark.slow
def test_both_find_what_is_planted(tmp_path, cache):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(PLANTED)
    lines = {line for line in (2, 3, 4) if f"wrong.py:{line}:" in mypy(cache, wrong).stdout}
    assert lines == {2, 3, 4}
    found = pyright(tmp_path, wrong)
    assert {line for line in (2, 3, 4) if any(f"wrong.py:{line}:" in told for told in found)} == {2, 3, 4}


# --- the stub against the compiled module -----------------------------------------------------------


def stubtest(module: str) -> subprocess.CompletedProcess[str]:
    installed("mypy")
    return subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", module, "--concise", "--ignore-disjoint-bases",
         "--ignore-unused-allowlist", "--allowlist", str(TYPED / "stubtest.txt"),
         "--mypy-config-file", str(TYPED / "stubtest.ini")],
        capture_output=True, text=True, timeout=LIMIT, cwd=ROOT,
    )  # fmt: skip


def test_the_stub_and_the_compiled_module_say_the_same():
    done = stubtest("tenon._core")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_public_name_is_documented():
    for name in tenon.__all__:
        value = getattr(tenon, name)
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            assert inspect.getdoc(value), name
    for name, value in vars(tenon.Tensor).items():
        if not name.startswith("_"):
            assert inspect.getdoc(value), f"Tensor.{name}"
