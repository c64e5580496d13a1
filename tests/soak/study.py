"""Studies under strain, in full: 200 kills, a minute of two processes, ten million users.

python -m tests.soak.study [--kills 200] [--races 900] [--users 10000000]
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import discreet
from helpers.soaking import KINDS, check_close, check_kills, check_returning, crowd, race, steady
from helpers.strain import strain

_RATIO = 1.5


def main() -> None:
    """All three parts; exits with an error if one of them fails."""
    with strain(__doc__, kills=200, races=900, users=10_000_000) as (chosen, folder):
        kills(folder, chosen.kills)
        races(folder, chosen.races)
        crowds(folder, chosen.users)


def kills(folder: pathlib.Path, number: int) -> None:
    """So many SIGKILLs of `tell`, shared among all kinds of studies; all of `close` besides."""
    for kind in KINDS:
        place = folder / kind
        place.mkdir()
        print(check_kills(place, kind, -(-number // len(KINDS))), flush=True)
        (place / "killed.db").unlink()
        print(check_close(place, kind), flush=True)
    place = folder / "attack"
    place.mkdir()
    print(check_returning(place, number), flush=True)


def races(folder: pathlib.Path, batches: int) -> None:
    """Two processes tell one study."""
    path = folder / "race.db"
    told = race(path, "central", batches)
    study = discreet.open_study(path)
    study.verify()
    print({"race": "central", "told": told, "counted": study.batches})
    if min(told) < batches or sum(told) != study.users:
        raise SystemExit("One of the processes made no progress, or something was lost.")


def crowds(folder: pathlib.Path, users: int) -> None:
    """Ten million users in a hundred batches."""
    path = folder / "crowd.db"
    size = max(1, users // 100)
    with steady(size):
        study, sizes, seconds = crowd(path, users)
        begun = time.process_time()
        discreet.open_study(path, study.head)
        resumed = time.process_time() - begun
    ratio = sum(seconds[-5:]) / sum(seconds[1:6])
    print(
        {
            "users": study.users,
            "batches": study.batches,
            "seconds of the first five batches after the first": sum(seconds[1:6]),
            "of the last five": sum(seconds[-5:]),
            "ratio": ratio,
            "bytes per user": sizes[-1] / study.users,
            "seconds to resume": resumed,
        }
    )
    if ratio >= _RATIO:
        raise SystemExit(f"Expected a ratio below {_RATIO}, got {ratio:.2f}.")


if __name__ == "__main__":
    main()
