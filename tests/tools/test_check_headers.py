"""tests/tools/test_check_headers.py: plants bad headers in a small tree and sees tools/check_headers fail."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_headers"
BANNER = "// tenon/value/x.hpp: one header.\n#pragma once\n"


def run(root, text, **more):
    """`more`: other files, `src_value_y_cpp` for src/value/y.cpp."""
    files = {"include/tenon/value/x.hpp": text}
    for name, written in more.items():
        *folders, suffix = name.split("_")
        files[f"{'/'.join(folders)}.{suffix}"] = written
    for name, written in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(written)
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
        (BANNER.replace("value/x", "value/y"), "banner"),
        ("#pragma once\n", "banner"),
        (BANNER + "\n" * 500, "more than 500"),
    ],
)
def test_bad_header_fails(tmp_path, text, said):
    done = run(tmp_path, text)
    assert done.returncode == 1
    assert said in done.stderr


GOOD = BANNER + "inline int f() { return 1; }\n"
INTERNAL = '// src/value/y.hpp: one of the engine.\n#pragma once\n#include <tenon/value/x.hpp>\n'
SOURCE = '// src/value/y.cpp: one of the engine.\n#include "y.hpp"\n'


def test_good_sources_pass(tmp_path):
    done = run(tmp_path, GOOD, src_value_y_hpp=INTERNAL + "inline int g() { return f(); }\n", src_value_y_cpp=SOURCE)
    assert done.returncode == 0, done.stderr
    assert "3 files, 2 headers" in done.stdout


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"src_value_y_hpp": INTERNAL + "inline std::size_t g() { return 1; }\n"}, "does not compile alone"),
        ({"src_value_y_hpp": INTERNAL.replace("src/", "")}, "banner"),
        ({"src_value_y_cpp": SOURCE.replace("y.cpp", "z.cpp")}, "banner"),
        ({"src_value_y_cpp": SOURCE + "\n" * 500}, "more than 500"),
        ({"src_value_y_hpp": INTERNAL.replace("<tenon/value/x.hpp>", "<Python.h>")}, "does not compile alone"),
        ({"python_src_y_cpp": SOURCE}, "banner"),
    ],
)
def test_bad_source_fails(tmp_path, files, said):
    done = run(tmp_path, GOOD, **files)
    assert done.returncode == 1
    assert said in done.stderr


def test_a_public_header_sees_no_sources(tmp_path):
    text = BANNER + '#include <value/y.hpp>\n'
    done = run(tmp_path, text, src_value_y_hpp="// src/value/y.hpp: one of the engine.\n#pragma once\n")
    assert done.returncode == 1
    assert "does not compile alone" in done.stderr
