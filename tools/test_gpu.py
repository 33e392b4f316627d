#!/usr/bin/env python3
"""tools/test_gpu.py: builds and runs everything that needs a CUDA device, with what this Python has: no network, nothing
installed.

    test_gpu.py [--sanitizers [TOOL ...]] [--build FOLDER] [pytest arguments]

Without a device it says so and exits with 0. With --sanitizers the CUDA tests run once under each of
compute-sanitizer's tools (memcheck, racecheck, initcheck, unless some are named), in fewer rounds.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("memcheck", "racecheck", "initcheck")
# What checks the CUDA side: on the device itself, and its order of calls by a driver that writes them down.
ON_DEVICE = ("test_real_cuda.py", "test_bound_cuda.py", "test_gpu_order.py", "test_gpu_matrix.py", "test_example_cuda.py")
BY_STAND_IN = ("test_producer_cuda.py", "test_interfaces.py", "test_interfaces_out.py", "test_arrow_in.py", "test_arrow_out.py",
               "test_exchange_table.py", "test_negotiation.py", "test_bound.py")


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


def pytest(env: dict[str, str], files: tuple[str, ...], *arguments: str, before: tuple[object, ...] = ()) -> int:
    there = [path for name in files if (path := ROOT / "tests" / "python" / name).exists()]
    return run(*before, sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *there, *arguments, env=env)


def cuda_tests(folder: Path) -> Path:
    found = next((p for p in (folder / "tests").rglob("tenon_gpu_tests") if p.is_file()), None)
    if found is None:
        raise SystemExit("tenon_gpu_tests was not built: is there a CUDA compiler (nvcc)? See the output of CMake")
    return found


def run_all(folder: Path, env: dict[str, str], arguments: list[str]) -> int:
    say("running the C++ tests, on the host and on the device")
    failed = run("ctest", "--test-dir", folder / "tests", "--output-on-failure", "--no-tests=error", "-j", os.cpu_count() or 1,
                 "--progress", stdout=subprocess.DEVNULL if os.environ.get("CI") else None)
    say("running the Python tests on the device")
    failed |= pytest(env, ON_DEVICE, *arguments)
    say("running the Python tests with a driver that writes every call down")
    failed |= pytest(env, BY_STAND_IN, *arguments)
    return failed


def run_checked(tool: str, folder: Path, env: dict[str, str], arguments: list[str]) -> int:
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        raise SystemExit("compute-sanitizer is not on PATH; it comes with the CUDA toolkit")
    before: tuple[object, ...] = (sanitizer, "--tool", tool, "--error-exitcode", "99", "--target-processes", "application-only")
    if tool == "memcheck":  # to ask the driver for an address it does not know is no error of memory
        before += ("--report-api-errors", "no")
    say(f"{tool}: the C++ tests on the device")
    failed = run(*before, cuda_tests(folder), "--gtest_brief=1")
    say(f"{tool}: the Python tests on the device")
    few = {**env, "TENON_GPU_ROUNDS": "2", "TENON_GPU_CELLS": "few", "TENON_GPU_CHECKED": tool}
    for name in ON_DEVICE:
        failed |= pytest(few, (name,), *arguments, before=before)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sanitizers", nargs="*", choices=TOOLS, metavar="TOOL")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "gpu-tests")
    options, arguments = parser.parse_known_args()
    if device_count() == 0:
        say("no CUDA device here: nothing was built and nothing was tested")
        return 0
    env = build(options.build.resolve())
    if options.sanitizers is None:
        return 1 if run_all(options.build.resolve(), env, arguments) else 0
    failed = [tool for tool in options.sanitizers or TOOLS if run_checked(tool, options.build.resolve(), env, arguments)]
    say(f"errors found by: {', '.join(failed)}" if failed else "no errors found by: " + ", ".join(options.sanitizers or TOOLS))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
