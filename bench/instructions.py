# bench/instructions.py: how many instructions it takes to borrow an argument, where times are too noisy to decide.
"""Count the instructions of one borrowed argument with callgrind: Tenon's own, and those of the libraries it asks.

Two runs of different lengths are compared, so that what happens once (the imports, the first look at a type) cancels out."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

MODULE, FUNCTION = "bench_tenon", "take_borrowed"
#: producer -> what makes one
PRODUCERS = {
    "numpy": "import numpy; x = numpy.zeros((4, 3), numpy.float32)",
    "torch": "import torch; x = torch.zeros(4, 3)",
    # By name only, for it needs the module that bench-quick builds: an object that speaks __dlpack__ alone.
    "dlpack": "import bench_nanobind; x = bench_nanobind.to_producer(0)",
}
FEW, MANY = 1000, 3000


def count(producer: str, calls: int) -> Counter[str]:
    """Instructions within the function, by the file of the library or module they are in."""
    program = f"{PRODUCERS[producer]}\nfrom {MODULE} import {FUNCTION}\nfor _ in range({calls}): {FUNCTION}(x)"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--toggle-collect=*{FUNCTION}*",
             f"--callgrind-out-file={out}", sys.executable, "-c", program],
            check=True, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"})
        return read_profile(out.read_text())


def read_profile(text: str) -> Counter[str]:
    """The self costs of a profile, by object file; what a call costs stands on the line after it, and is counted there."""
    names: dict[str, str] = {}
    costs: Counter[str] = Counter()
    here, is_call = "", False
    for line in text.splitlines():
        if named := re.match(r"(c?)ob=(\(\d+\))(?: (.*))?", line):
            if named[3]:
                names[named[2]] = Path(named[3]).name
            if not named[1]:
                here = names[named[2]]
        elif line.startswith("calls="):
            is_call = True
        elif cost := re.match(r"[-+*\d]\S* (\d+)$", line):
            if not is_call:
                costs[here] += int(cost[1])
            is_call = False
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("producers", nargs="*", metavar="PRODUCER", help=f"of: {', '.join(PRODUCERS)}")
    chosen = parser.parse_args().producers or [p for p in PRODUCERS if importlib.util.find_spec(p)]
    if unknown := set(chosen) - set(PRODUCERS):
        parser.error(f"no producer of these: {', '.join(sorted(unknown))}; there are {', '.join(PRODUCERS)}")
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not on PATH: install the package of that name")
    for producer in chosen:
        few, many = count(producer, FEW), count(producer, MANY)
        each = {name: round((many[name] - few[name]) / (MANY - FEW)) for name in many}
        ours = next((cost for name, cost in each.items() if name.startswith(MODULE)), 0)
        if ours == 0:
            raise SystemExit(f"instructions.py: callgrind saw no call of {FUNCTION}; is {MODULE} built with symbols?")
        others = ", ".join(f"{name} {cost}" for name, cost in sorted(each.items()) if cost and not name.startswith(MODULE))
        print(f"{producer}: {ours} instructions of ours, {sum(each.values())} in all" + (f" ({others})" if others else ""))


if __name__ == "__main__":
    main()
