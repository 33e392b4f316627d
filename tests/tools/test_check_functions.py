"""tests/tools/test_check_functions.py: plants long functions in a small tree and sees tools/check_functions fail."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_functions"


def run(root, text):
    path = root / "src" / "value" / "x.cpp"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True, check=False)


def lines(count):
    return "    step();\n" * count


SHORT = "void f() {\n" + lines(58) + "}\n"
FINE = {
    "sixty lines": SHORT,
    "two of them in a row": SHORT + SHORT,
    "a class that is longer": "class many {\npublic:\n" + "    int one() { return 1; }\n" * 70 + "};\n",
    "a class for functions": "template <class R>\nclass many<R (*)()> {\n" + "    int one() { return 1; }\n" * 70 + "};\n",
    "a table": "void f() {}\nconst row table[] = {\n" + "    {1, 2},\n" * 70 + "};\n",
    "braces in texts": 'void f() {\n    say("{", \'{\');  // {\n}\n#define OPEN {\n' + SHORT,
    "a namespace": "namespace a::b {\n" + "int one() { return 1; }\n" * 70 + "}\n",
}
LONG = {
    "a function": "void f() {\n" + lines(59) + "}\n",
    "its declaration counts": "void f(int a,\n       int b) {\n" + lines(58) + "}\n",
    "a member": "class c {\n    int g() const noexcept {\n" + lines(60) + "    }\n};\n",
    "in a namespace": "namespace a {\nvoid f() {\n" + lines(60) + "}\n}\n",
    "a template": "template <class T>\n    requires(sizeof(T) > 1)\nvoid f(T x) noexcept {\n" + lines(60) + "}\n",
    "a constructor": "class c {\n    c(int x) : a_{x}, b_{2} {\n" + lines(60) + "    }\n};\n",
    "a lambda of many lines in it": "void f() {\n    g([&] {\n" + lines(60) + "    });\n}\n",
    "with what it catches": "void f() try {\n" + lines(40) + "} catch (...) {\n" + lines(40) + "}\n",
    "an operator": "bool operator==(const c& a, const c& b) {\n" + lines(60) + "}\n",
}


@pytest.mark.parametrize("name", FINE)
def test_fine(tmp_path, name):
    done = run(tmp_path, FINE[name])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", LONG)
def test_long(tmp_path, name):
    done = run(tmp_path, LONG[name])
    assert done.returncode == 1, done.stdout
    assert "src/value/x.cpp:" in done.stderr and "more than 60" in done.stderr


def test_a_tree_without_functions_is_no_success(tmp_path):
    assert run(tmp_path, "// nothing\n").returncode == 1


def test_this_tree():
    done = subprocess.run([sys.executable, TOOL], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
