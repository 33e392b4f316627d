# tests/tools/test_ci_run.py: .ci/run asks for Clang where it may, and goes on where it cannot have it.
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def ci(tmp_path):
    """Runs .ci/run with these programs and no others: what they were asked, what was said, the exit status."""

    def program(name, does=""):
        file = tmp_path / name
        file.write_text(f'#!{shutil.which("bash")}\necho "{name} $*" >> {tmp_path}/asked\n{does}\n')
        file.chmod(0o755)

    def run(**programs):
        for name in ("bash", "dirname", "timeout"):
            (tmp_path / name).symlink_to(shutil.which(name))
        program("make")
        for name, does in programs.items():
            program(name.replace("_", "-").replace("xx", "++"), does)
        done = subprocess.run([ROOT / ".ci" / "run"], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
        asked = (tmp_path / "asked").read_text().splitlines()
        return [line for line in asked if not line.startswith("id ")], done.stdout, done.returncode

    return run


INSTALL = ["apt-get -qq update", "apt-get -qq -y install --no-install-recommends clang"]
STEPS = [f"make {step}" for step in ("test", "test-rest", "check-format", "check-python", "check-tidy", "test-asan-cpp")]


def test_with_clang_nothing_is_installed(ci):
    asked, said, status = ci(clangxx="", apt_get="", id="echo 0")
    assert (asked, status) == (STEPS, 0)
    assert "clang" not in said and "everything passed" in said


def test_without_clang_root_installs_it(ci):
    asked, said, status = ci(apt_get="", id="echo 0")
    assert asked == [*INSTALL, *STEPS] and status == 0
    assert "clang" in said and "skipped" not in said


def test_what_cannot_be_installed_is_skipped(ci):
    asked, said, status = ci(apt_get="echo no network >&2; exit 100", id="echo 0")
    assert asked == [INSTALL[0], *STEPS] and status == 0
    assert "skipped" in said


def test_nobody_but_root_installs(ci):
    assert ci(apt_get="", id="echo 1000")[::2] == (STEPS, 0)


def test_without_apt_nothing_is_installed(ci):
    assert ci(id="echo 0")[::2] == (STEPS, 0)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_is_the_result_and_the_others_are_run(ci, step):
    asked, said, status = ci(clangxx="", make=f'[ "make $*" != "{step}" ]')
    assert (asked, status) == (STEPS, 1)
    assert "everything passed" not in said
