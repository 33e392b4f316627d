#!/usr/bin/env python3
"""tools/check_leaks.py: judges the sanitizer logs of a Python test run, subprocesses included.

CPython and the array libraries leak at exit, and that is not ours to mend; so leaks do not fail the run
itself. Here a leak counts when its stack shows one of our frames: a file or module under one of the
--ours folders, or a symbol in namespace tenon.

A run that looked for no leaks would pass such a check, so every run imports tools/asan/tenon_leak_canary,
which leaks one block, and its record must be in the logs. Any other sanitizer report fails as well.

    check_leaks.py --ours FOLDER [--ours FOLDER...] LOG_FOLDER
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

CANARY = "tenon_leak_canary"
RECORD = re.compile(r"^(Direct|Indirect) leak of .*?(?=^\s*$|\Z)", re.MULTILINE | re.DOTALL)
FRAME = re.compile(r"^\s+#\d+ .*$", re.MULTILINE)
ERROR = re.compile(r"^.*(ERROR: AddressSanitizer|runtime error:|LeakSanitizer has encountered a fatal error).*$", re.MULTILINE)


def is_ours(record: str, folders: list[str]) -> bool:
    frames = FRAME.findall(record)
    return any("tenon::" in frame or any(folder in frame for folder in folders) for frame in frames)


def judge(logs: dict[str, str], folders: list[str]) -> tuple[list[str], int, int]:
    """What fails the run, the number of leak records seen, and the number of canaries among them."""
    problems: list[str] = []
    records = canaries = 0
    for name, text in logs.items():
        for match in ERROR.finditer(text):
            problems.append(f"{name}: {match[0].strip()}\n{text.rstrip()}")
            break
        for match in RECORD.finditer(text):
            records += 1
            if CANARY in match[0]:
                canaries += 1
            elif is_ours(match[0], folders):
                problems.append(f"{name}: a leak of ours\n{match[0].rstrip()}")
    if not canaries:
        problems.append("no log shows the canary's leak: leaks were not looked for")
    return problems, records, canaries


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", action="append", required=True, metavar="FOLDER")
    parser.add_argument("logs", type=Path, metavar="LOG_FOLDER")
    options = parser.parse_args()
    folders = [str(Path(folder).resolve()) + "/" for folder in options.ours]
    logs = {path.name: path.read_text(errors="replace") for path in sorted(options.logs.glob("*")) if path.is_file()}
    problems, records, canaries = judge(logs, folders)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    print(
        f"check_leaks: {len(logs)} logs, {records} leaks, none of them ours "
        f"but the {canaries} planted to show that leaks were looked for"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
