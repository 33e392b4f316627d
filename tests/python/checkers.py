# tests/python/checkers.py: mypy and pyright in strict mode, as the tests of types run them.
from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from isolation import LIMIT

ROOT = Path(__file__).parents[2]


def installed(module: str) -> None:
    """Or a skip that says so."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


def mypy(cache: Path, *files: Path, config: Path | str = "", path: Path | str = "") -> subprocess.CompletedProcess[str]:
    """With `path` for what is imported from there."""
    installed("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", f"--config-file={config}", "--no-error-summary",
               f"--cache-dir={cache}", f"--python-executable={sys.executable}", "--explicit-package-bases"]  # fmt: skip
    env = {**os.environ, "MYPYPATH": str(path)}
    return subprocess.run([*command, *map(str, files)], capture_output=True, text=True, timeout=LIMIT, cwd=ROOT, env=env)


def pyright(folder: Path, *files: Path, paths: Sequence[Path] = (), **but: Any) -> list[str]:
    """What it finds, by basedpyright, which brings its own Node.js; `but` is what its strict mode is told beside that."""
    installed("basedpyright")
    config = folder / "pyrightconfig.json"
    config.write_text(json.dumps({
        "include": [str(f) for f in files], "extraPaths": [str(p) for p in paths], "typeCheckingMode": "strict",
        "pythonVersion": "3.10", **but,
    }))  # fmt: skip
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=ROOT)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert told["summary"]["filesAnalyzed"] > 0
    return [
        f"{Path(d['file']).name}:{d['range']['start']['line'] + 1}: {d['message']} ({d.get('rule')})"
        for d in told["generalDiagnostics"]
        if d["severity"] in ("error", "warning")
    ]
