#!/usr/bin/env python3
"""tools/test_gpu.py: builds and runs everything that needs a CUDA device, with what this Python has: no network, nothing
installed.

    test_gpu.py [--sanitizers [TOOL ...]] [--build FOLDER] [pytest arguments]

Without a device it says so and exits with 0. With --sanitizers the CUDA tests run once under each of
compute-sanitizer's tools (memcheck, racecheck, initcheck, unless some are named), in fewer rounds, side by side; what
they print lies in FOLDER/sanitizers.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("memcheck", "racecheck", "initcheck")
# What checks the CUDA side: on the device itself, and its order of calls by a driver that writes them down.
ON_DEVICE = ("test_real_cuda.py", "test_bound_cuda.py", "test_gpu_order.py", "test_gpu_matrix.py", "test_example_cuda.py")
GUIDE = "test_docs.py::test_pages[docs/guides/gpu.md]"
BY_STAND_IN = ("test_producer_cuda.py", "test_interfaces.py", "test_interfaces_out.py", "test_arrow_in.py", "test_arrow_out.py",
               "test_exchange_table.py", "test_negotiation.py", "test_bound.py", "test_real_torch_swapped.py")


def device_count() -> int:
    """CUDA devices, asked of the driver; making no context."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def say(text: str) -> None:
    print(f"==> {text}", flush=True)


def run(*command: object, **options: object) -> int:
    return subprocess.run([str(part) for part in command], cwd=ROOT, **options).returncode  # type: ignore[call-overload]


def must(*command: object, **options: object) -> None:
    if status := run(*command, **options):
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {status}")


def build(folder: Path) -> dict[str, str]:
    """The package and every test, in `folder`; the environment to run them in."""
    say(f"building the package into {folder / 'site'}")
    shutil.rmtree(folder / "site", ignore_errors=True)
    must(sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index",
         "--disable-pip-version-check", "--target", folder / "site", f"--config-settings=build-dir={folder / 'wheel'}", ROOT)
    say("building the tests")
    must("cmake", "-S", ROOT, "-B", folder / "tests", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DTENON_BUILD_TESTS=ON",
         "-DTENON_BUILD_GPU_TESTS=ON", "-DTENON_WERROR=OFF", f"-DPython_EXECUTABLE={sys.executable}",
         stdout=subprocess.DEVNULL)
    must("cmake", "--build", folder / "tests")
    paths = [folder / "site", folder / "tests" / "tests" / "native", ROOT / "tests" / "python"]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONHASHSEED": "0",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def pytest(*names: str) -> list[object]:
    """The command that runs these files of Python tests."""
    files = (ROOT / "tests" / "python" / name for name in names)
    return [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *files]


def cuda_tests(folder: Path) -> Path:
    found = next((p for p in (folder / "tests").rglob("tenon_gpu_tests") if p.is_file()), None)
    if found is None:
        raise SystemExit("tenon_gpu_tests was not built: is there a CUDA compiler (nvcc)? See the output of CMake")
    return found


def run_all(folder: Path, env: dict[str, str], arguments: list[str]) -> int:
    say("running the C++ tests, on the host and on the device")
    failed = run("ctest", "--test-dir", folder / "tests", "--output-on-failure", "--no-tests=error", "-j", os.cpu_count() or 1,
                 "--progress", stdout=subprocess.DEVNULL if os.environ.get("CI") else None)
    say("running the Python tests on the device, and beside them those with a driver that writes every call down")
    with ThreadPoolExecutor(1) as beside, (folder / "by_stand_in.log").open("w+") as printed:
        stand_in = beside.submit(run, *pytest(*BY_STAND_IN), *arguments, env=env, stdout=printed, stderr=subprocess.STDOUT)
        failed |= run(*pytest(*ON_DEVICE, GUIDE), *arguments, env=env)
        failed |= stand_in.result()
        printed.seek(0)
        print(printed.read(), flush=True)
    return failed


def check(tool: str, tests: str, command: list[object], logs: Path, env: dict[str, str], tries: int = 3) -> bool:
    """Runs a command under one of the tools; whether it found nothing, which is what it must have said. A tool that has
    failed itself, by its own words, is run again."""
    log = logs / f"{tool}.{tests}.log"
    # To ask the driver for an address it does not know is no error of memory.
    quieter = ["--report-api-errors", "no"] if tool == "memcheck" else []
    with log.open("w") as out:
        status = run("compute-sanitizer", "--tool", tool, *quieter, "--error-exitcode", "99", "--target-processes",
                     "application-only", *command, env=env, stdout=out, stderr=subprocess.STDOUT)
    printed = log.read_text(errors="replace")
    if tries > 1 and "Internal Sanitizer Error" in printed:
        say(f"{tool}, {tests}: it failed itself, and is run again")
        return check(tool, tests, command, logs, env, tries - 1)
    summaries = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", printed)
    counted = re.findall(r"^.*\b\d+ passed.*|^\[  PASSED  \].*", printed, re.MULTILINE)
    good = status == 0 and len(summaries) == 1 and re.search(r"\b0 errors", summaries[0]) is not None
    say(f"{tool}, {tests}: {'; '.join(counted + summaries) or 'it said nothing'}" + ("" if good else f"; exit status {status}"))
    if not good:
        found = [line for line in printed.splitlines() if line.startswith("=====")]
        print("\n".join(found[:40]), printed[-3000:], sep="\n", flush=True)
    return good


def example(folder: Path) -> Path:
    """examples/cuda_saxpy for the device that is here, built: no compiler can run under a checker."""
    say("building examples/cuda_saxpy")
    must("cmake", "-S", ROOT / "examples" / "cuda_saxpy", "-B", folder / "example", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
         "-DCMAKE_CUDA_ARCHITECTURES=native", f"-DPython_EXECUTABLE={sys.executable}", stdout=subprocess.DEVNULL)
    must("cmake", "--build", folder / "example")
    return folder / "example"


def run_checked(tools: Sequence[str], folder: Path, env: dict[str, str], arguments: list[str]) -> int:
    if shutil.which("compute-sanitizer") is None:
        raise SystemExit("compute-sanitizer is not on PATH; it comes with the CUDA toolkit")
    logs = folder / "sanitizers"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    few = {**env, "TENON_GPU_ROUNDS": "2", "TENON_GPU_CELLS": "few", "TENON_GPU_EXAMPLE": str(example(folder))}
    commands = {"C++": [cuda_tests(folder)], **{name: [*pytest(name), *arguments] for name in ON_DEVICE}}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {
            (tool, tests): pool.submit(check, tool, tests, command, logs, {**few, "TENON_GPU_CHECKED": tool})
            for tests, command in commands.items()
            for tool in tools
        }
    failed = [f"{tool} ({tests})" for (tool, tests), done in runs.items() if not done.result()]
    say(f"errors found by: {', '.join(failed)}" if failed else f"no errors found by: {', '.join(tools)}")
    return len(failed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sanitizers", nargs="*", choices=TOOLS, metavar="TOOL")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "gpu-tests")
    options, arguments = parser.parse_known_args()
    if device_count() == 0:
        say("no CUDA device here: nothing was built and nothing was tested")
        return 0
    env = build(options.build.resolve())
    folder = options.build.resolve()
    if options.sanitizers is None:
        failed = run_all(folder, env, arguments)
    else:
        failed = run_checked(options.sanitizers or TOOLS, folder, env, arguments)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
