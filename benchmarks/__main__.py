"""``python -m benchmarks [--quick] [--json] [ONLY]``."""

import argparse
import json

from benchmarks import run_all
from discreet.errors import UnknownNameError


def main() -> None:
    """Run the benchmarks and print them as a table or as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="part of a module's name")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    options = parser.parse_args()
    try:
        rows = run_all(options.quick, options.only)
    except UnknownNameError as wrong:
        parser.error(str(wrong))
    if options.json:
        print(json.dumps({"results": rows}, indent=2))
        return
    for row in rows:
        ours, peer = f"{row['ours']:.4g}", f"{row['peer']:.4g}"
        spread = f"{row['ratio']:>9.2f} x  ({row['low']:.2f} to {row['high']:.2f})"
        print(f"{row['task']:<58} {ours:>10} {peer:>10} {row['unit']:<18} {spread}")
        version = f" {row['peer_version']}" if row["peer_version"] else ""
        print(f"{'':<58} against {row['peer_name']}{version} ({row['peer_is']})")
        if row["note"]:
            print(f"{'':<58} {row['note']}")


if __name__ == "__main__":
    main()
