"""What `make coverage` prints: for each room, which part of its lines some test runs.

Compiled kernels count where a test runs them in Python; what other processes run does not count.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path


def rooms(files: dict[str, dict[str, dict[str, int]]]) -> dict[str, tuple[int, int]]:
    """Room -> lines that ran, lines in all; files beside the rooms are one, too."""
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for name, file in files.items():
        inner = Path(name).parts[2:]
        room = inner[0] if len(inner) > 1 else "discreet"
        ran, lines = found[room]
        summary = file["summary"]
        found[room] = ran + summary["covered_lines"], lines + summary["num_statements"]
    return dict(sorted(found.items()))


def main() -> None:
    """A line for each room."""
    report = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    for room, (ran, lines) in rooms(report["files"]).items():
        print(f"  {room:<12} {100 * ran / max(lines, 1):5.1f}% of {lines:,} lines")


if __name__ == "__main__":
    main()
