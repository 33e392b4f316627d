"""tests/tools/test_check_headers.py: plants bad headers in a small tree and sees tools/check_headers fail."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_headers"
BANNER = "// tenon/core/x.hpp: one header.\n#pragma once\n"


def run(root, text):
    path = root / "include" / "tenon" / "core" / "x.hpp"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True, check=False)


def test_good_header_passes(tmp_path):
    done = run(tmp_path, BANNER + "inline int f() { return 1; }\n")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BANNER + "inline std::size_t f() { return 1; }\n", "does not compile alone"),
        (BANNER + "inline int f(long x) { return x; }\n", "conversion"),
        (BANNER.replace("#pragma once", "") + "struct s {};\n", "redefinition"),
        (BANNER.replace("core/x", "core/y"), "banner"),
        ("#pragma once\n", "banner"),
        (BANNER + "\n" * 500, "more than 500"),
    ],
)
def test_bad_header_fails(tmp_path, text, said):
    done = run(tmp_path, text)
    assert done.returncode == 1
    assert said in done.stderr
