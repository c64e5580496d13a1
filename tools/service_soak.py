"""The service under strain: a study through roles that are killed again and again.

python tools/service_soak.py [--users 600] [--kills 30] [--folder FOLDER]
"""

import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

from helpers.service_soak import killed_study


def main() -> None:
    """One study; exits with an error if somebody was lost or counted twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=600)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "service"
        found = killed_study(folder, users=chosen.users, kills=chosen.kills, seed=chosen.seed)
    for what, value in found.items():
        print(f"{what:20} {value}", flush=True)
    if sum(value for what, value in found.items() if what.startswith("kills")) < chosen.kills:
        sys.exit("The study ended before all kills were spent; ask for more users.")


if __name__ == "__main__":
    main()
