"""Halve the noise of every mechanism on every path; for each, a test must fail.

    python tests/mutants/half_noise.py                    the rooms where noise protects people
    python tests/mutants/half_noise.py tests/offline ...  some of them
    pytest -p half_noise ...                              all noise halved; needs this folder in
                                                          PYTHONPATH

A place is a door of a mechanism, an encoder or a device; they are found by watching who draws.
First all places are halved at once. A test that fails says something of the places that it draws
at; where it draws at several, it is run again with one of them halved.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from discreet.device.draws import ByteDraws
from discreet.privacy.sampling.samplers import SecureSampler, SimulationSampler

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = [
    f"tests/{name}" for name in ("privacy/mechanisms", "device", "offline", "test_one_draw.py")
]
DOORS = ("release", "simulate", "encode", "add", "block", "noise_block")
ROUNDING = ("rewards", "episode_counts")
"""Of rewards, which is no noise."""
ONLY, REPORT = "DISCREET_HALF_NOISE_AT", "DISCREET_HALF_NOISE_REPORT"
_drawn, _tests = set(), {}


def place():
    """Through which door a draw is asked for: a mechanism's, an encoder's or a device's, with its name."""
    frame, found = sys._getframe(2), ""
    while frame is not None:
        file = pathlib.PurePath(frame.f_code.co_filename)
        if "discreet" in file.parts and frame.f_code.co_name in DOORS:
            me = frame.f_locals.get("self")
            kind, noise = type(me).__name__, getattr(me, "noise", None)
            spec = getattr(getattr(me, "mechanism", me), "spec", None)
            owner = ""
            if spec is not None and str(spec.calibrator).startswith("."):
                owner = f"{spec.trust}/{spec.schedule}/{spec.name}"
            elif spec is None and kind.endswith(("Encoder", "Device")):
                owner = getattr(noise, "kind", "") or file.stem
            if owner:
                found = f"{owner} {kind}.{frame.f_code.co_name}"
        frame = frame.f_back
    return found


def _halved(kind, name, wanted):
    usual = getattr(kind, name)

    def draw(sampler, *asked):
        rounding = sys._getframe(1).f_code.co_name in ROUNDING
        where = "" if rounding else place()
        if where:
            _drawn.add(where)
        if rounding or wanted not in ("", where):
            return usual(sampler, *asked)
        first, *rest = asked
        if kind is ByteDraws:  # of the weight of noise cells, or of how often bits are false
            return (
                usual(sampler, first, rest[0] // 2, rest[1])
                if name == "noise"
                else usual(sampler, first // 2, *rest)
            )
        if "laplace" in name or "gaussian" in name:
            return usual(sampler, first / 2, *rest)
        if name in ("binomial", "scatter"):  # half of the noise bits, balls or false bits
            return usual(sampler, first, rest[0] / 2, *rest[1:])
        middle = (len(first) - 1) // 2 * (rest[0] if name == "table_sum" else 1)
        return middle + (usual(sampler, *asked) - middle) // 2

    setattr(kind, name, draw)


def pytest_configure(config):
    for name in ("noise", "bits"):
        _halved(ByteDraws, name, os.environ.get(ONLY, ""))
    for kind in (SimulationSampler, SecureSampler):
        for name in vars(kind):
            if name[0] != "_" and name not in ("secure", "permutation"):
                _halved(kind, name, os.environ.get(ONLY, ""))


def pytest_runtest_logreport(report):
    if report.when == "call" or report.failed:
        _tests[report.nodeid] = (sorted(_drawn), report.failed)
    if report.when == "teardown":
        _drawn.clear()


def pytest_sessionfinish():
    if REPORT in os.environ:
        pathlib.Path(os.environ[REPORT]).write_text(json.dumps(_tests))


def run(tests, only=""):
    """Test -> (the places at which it draws, whether it failed)."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        paths = os.pathsep.join([str(ROOT / "tests/mutants"), os.environ.get("PYTHONPATH", "")])
        own = {"PYTHONPATH": paths, ONLY: only, REPORT: str(report)}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "half_noise",
            "-p",
            "no:xdist",
            *tests,
        ]
        subprocess.run(
            [
                *command,
                "--tb=no",
                "--continue-on-collection-errors",
                "-p",
                "no:cacheprovider",
                *(["-x"] if only else []),
            ],
            cwd=ROOT,
            env=os.environ | own,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        return json.loads(report.read_text())


def main():
    """Print, for each place, a test that fails when its noise is halved; is there one for all?"""
    tests, failing = run(sys.argv[1:] or ROOMS), collections.defaultdict(list)
    for test, (places, failed) in tests.items():
        for where in places:
            failing[where] += [test] if failed else []
    missed = 0
    for where, candidates in sorted(failing.items()):
        alone = [test for test in candidates if tests[test][0] == [where]]
        if not alone and candidates:
            again = run(sorted(candidates, key=lambda test: len(tests[test][0]))[:20], where)
            alone = [test for test, (_, failed) in again.items() if failed]
        missed += not alone
        print(
            f"{where:<70} {alone[0].rpartition('::')[2] if alone else 'NOBODY NOTICES'}", flush=True
        )
    print(
        f"{len(failing)} places, {missed} of them unguarded; {sum(f for _, f in tests.values())} tests failed."
    )
    return 1 if missed or not failing else 0


if __name__ == "__main__":
    sys.exit(main())
