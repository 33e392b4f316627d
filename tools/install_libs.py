#!/usr/bin/env python3
"""tools/install_libs.py: installs array libraries from wheels, all together or else one by one.

    install_libs.py RECORD LIBRARY...

RECORD gets one line per library asked for: what was installed, or why it was not. Libraries of an
earlier record that are no longer asked for are removed, so the environment holds what the record says.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

UV = [sys.executable, "-m", "uv", "pip"]
HERE = ["-p", sys.executable]


def base_name(requirement: str) -> str:
    return re.split(r"[\s\[<>=!~;@]", requirement, maxsplit=1)[0]


# Wheels only: building one of these takes hours.
INSTALL = [*UV, "install", *HERE, "--only-binary", ":all:"]


def install_one(library: str) -> str | None:
    """Returns why it failed, or None."""
    done = subprocess.run([*INSTALL, "--quiet", library], stderr=subprocess.PIPE, text=True, check=False)
    return " ".join(done.stderr.split()) if done.returncode else None


def main() -> int:
    record, wanted = Path(sys.argv[1]), sys.argv[2:]
    earlier = {line.split()[0] for line in record.read_text().splitlines()} if record.exists() else set()
    dropped = sorted(earlier - {base_name(library) for library in wanted})
    if dropped:
        print(f"removing {' '.join(dropped)}: no longer asked for", flush=True)
        subprocess.run([*UV, "uninstall", *HERE, *dropped], check=False)

    skipped: dict[str, str] = {}
    # Not captured: six gigabytes want a progress bar.
    if subprocess.run([*INSTALL, *wanted], check=False).returncode:
        print("not to be had together; trying one by one", flush=True)
        for library in wanted:
            if reason := install_one(library):
                skipped[library] = reason

    lines = []
    for library in wanted:
        name = base_name(library)
        if library in skipped:
            lines.append(f"{name} skipped: {skipped[library]}")
            print(f"    {lines[-1]}", flush=True)
        else:
            lines.append(f"{name} {importlib.metadata.version(name)}")
    record.write_text("".join(line + "\n" for line in lines))
    if wanted and len(skipped) == len(wanted):
        print("none of the libraries could be installed", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
