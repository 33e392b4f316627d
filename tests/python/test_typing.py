# tests/python/test_typing.py: the types the package declares are true, and strict checkers find nothing in what uses them.
from __future__ import annotations

import importlib.util
import inspect
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import tenon

ROOT = Path(__file__).parents[2]
# What a user writes, and what the package itself is: as sources, because checkers are lenient with what is installed.
SOURCES = ROOT / "python"
CHECKED = [ROOT / "tests" / "typing", ROOT / "examples" / "demo.py", SOURCES / "tenon"]
PLANTED = "import tenon\nt: int = tenon.asdlpack(b'x')\nt.no_such_thing()\ntenon.from_pointer('x', 1, 'int8')\n"


def checker(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


def mypy(tmp_path: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    checker("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary",
               f"--cache-dir={tmp_path}", f"--python-executable={sys.executable}", "--explicit-package-bases"]  # fmt: skip
    env = {**os.environ, "MYPYPATH": str(SOURCES)}
    return subprocess.run([*command, *map(str, files)], capture_output=True, text=True, timeout=500, cwd=ROOT, env=env)


def pyright(tmp_path: Path, *files: Path) -> list[str]:
    checker("basedpyright")
    config = tmp_path / "pyrightconfig.json"
    config.write_text(json.dumps({
        "include": [str(f) for f in files], "extraPaths": [str(SOURCES)], "typeCheckingMode": "strict", "pythonVersion": "3.10",
        "reportMissingImports": False, "reportMissingModuleSource": False, "reportMissingTypeStubs": False,
        # The array libraries' own holes: what they return is not known to any checker.
        "reportUnknownMemberType": False, "reportUnknownVariableType": False, "reportUnknownArgumentType": False,
        "reportUnknownParameterType": False, "reportUnknownLambdaType": False,
        # The package's modules are each other's friends.
        "reportPrivateUsage": False,
        "reportPrivateImportUsage": False,
    }))  # fmt: skip
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=ROOT)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert told["summary"]["filesAnalyzed"] > 0
    return [
        f"{Path(d['file']).name}:{d['range']['start']['line'] + 1}: {d['message']} ({d.get('rule')})"
        for d in told["generalDiagnostics"]
        if d["severity"] in ("error", "warning")
    ]


def test_mypy_finds_nothing(tmp_path):
    done = mypy(tmp_path, *CHECKED)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_finds_nothing(tmp_path):
    assert pyright(tmp_path, *CHECKED) == []


def test_both_find_what_is_planted(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(PLANTED)
    lines = {line for line in (2, 3, 4) if f"wrong.py:{line}:" in mypy(tmp_path / "cache", wrong).stdout}
    assert lines == {2, 3, 4}
    found = pyright(tmp_path, wrong)
    assert {line for line in (2, 3, 4) if any(f"wrong.py:{line}:" in told for told in found)} == {2, 3, 4}


# --- the stub against the compiled module -----------------------------------------------------------


def stubtest(module: str) -> subprocess.CompletedProcess[str]:
    checker("mypy")
    return subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", module, "--concise", "--ignore-disjoint-bases",
         "--ignore-unused-allowlist", "--allowlist", str(ROOT / "tests" / "typing" / "stubtest.txt")],
        capture_output=True, text=True, timeout=500, cwd=ROOT,
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
