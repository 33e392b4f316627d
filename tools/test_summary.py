#!/usr/bin/env python3
"""tools/test_summary.py: says in a few lines what a test run passed and what it skipped, and why.

    test_summary.py LIBRARY_RECORD JUNIT_FILE...
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path


def main() -> int:
    record, *reports = map(Path, sys.argv[1:])
    print("\nSummary")
    for report in reports:
        cases = list(ET.parse(report).getroot().iter("testcase"))
        skips = [skip for case in cases for skip in case.iter("skipped")]
        failed = sum(1 for case in cases if case.find("failure") is not None or case.find("error") is not None)
        print(f"  {report.stem}: {len(cases) - len(skips) - failed} passed, {len(skips)} skipped, {failed} failed")
        for reason, count in Counter(skip.get("message") or "no reason given" for skip in skips).most_common():
            print(f"    {count} skipped: {reason}")
    for line in record.read_text().splitlines():
        print(f"  library {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
