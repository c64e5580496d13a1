"""Digests of small runs of every learner under every trust model: does a change change results?

Usage: ``python tools/record_results.py record FILE.json`` before and after a change, then
``python tools/record_results.py compare BEFORE.json AFTER.json``. A digest is of the exact bytes of
the recorded episodes, the regret and the last policy; one bit that differs is a difference. The
comparison lists the runs that differ and exits with 1 if there are any.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet import Central, Local, NoPrivacy, Shuffle, learn
from discreet._seeds import RunSeeds
from discreet.learners.registry import get_learner, learner_names
from discreet.mdp import RandomMDP, RiverSwim
from discreet.mdp.policies import MixturePolicy, Policy
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.trust import TrustModel

SEED = 20
EPISODES = {"batch": 3000, "stream": 1500, "adversarial": 120}
TRUSTS: dict[str, list[TrustModel]] = {
    "none": [NoPrivacy()],
    "central": [Central(2, 1e-6), Central(2)],
    "local": [Local(2)],
    "shuffle": [Shuffle(2, 1e-6), Shuffle(2, 1e-6, honest=0.5)],
}
TREES = ("tree-gaussian", "tree-honaker", "tree-laplace", "tree-iid")
REPORTS = ("gaussian", "randomized-response", "bounded", "one-step")


def central(*names: str) -> list[TrustModel]:
    """The trusted learner with each of these mechanisms."""
    return [Central(2, 1e-6, mechanism=name) for name in names]


def local(*names: str) -> list[TrustModel]:
    """Local reports by each of these mechanisms."""
    return [Local(2, 1e-6, mechanism=name) for name in names]


MECHANISMS: dict[str, dict[str, list[TrustModel]]] = {
    "flow-ucb": {"central": central("laplace"), "local": local("laplace", *REPORTS[:-1])},
    "dp-ucbvi": {"central": central(*TREES), "local": local(*REPORTS)},
    "ldp-obi": {"local": local(*REPORTS)},
    "private-ucb-po": {"local": local("randomized-response", "one-step")},
}
"""More than the default mechanism, for one learner of each kind of kernel."""
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "dp-ucbvi": [{"constants": "theory"}, {"stationary": True, "clip": True}],
    "flow-ucb": [{"stationary": True}, {"confidence": 0.1, "shrink": 0.7}],
    "ldp-obi": [{"constants": "theory"}, {"stationary": False}],
    "ldp-psrl": [{"stationary": False}],
    "pe": [{"fine": "mixture"}, {"structure": "paper"}, {"play": "mixture", "forgetting": True}],
    "private-uc-o-reps": [{"constants": "practical", "losses": "switching"}],
    "private-ucb-po": [{"stationary": True}],
    "private-ucb-vi": [{"stationary": True}],
    "private-uob-lbps": [
        {"constants": "practical", "losses": "drifting"},
        {"loss_estimator": "paper", "public_losses": True},
    ],
    "psrl": [{"stationary": True}],
    "pucb": [{"stationary": True}, {"constants": "theory"}],
    "sdp-pe": [{"fine": "mixture"}],
    "ucbvi": [{"bonus": "hoeffding"}, {"constants": "theory"}, {"stationary": True}],
}
"""Settings beside the default ones, tried with the default mechanisms."""
LOCKSTEP = [
    NoPrivacy(),
    *(
        Local(2, 1e-6, mechanism=name)
        for name in ("laplace", "gaussian", "randomized-response", "bounded", "one-step")
    ),
]


class Case(NamedTuple):
    """One run to record."""

    learner: str
    trust: TrustModel
    settings: dict[str, Any]
    lockstep: bool = False

    @property
    def name(self) -> str:
        """Its key in the file."""
        settings = ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
        return " | ".join([self.learner, repr(self.trust), settings] + ["lockstep"] * self.lockstep)


def cases(learners: list[str]) -> Iterator[Case]:
    """Everything that is recorded."""
    for learner in learners:
        spec = get_learner(learner)
        for trust in spec.trusts:
            for model in TRUSTS[trust]:
                for settings in [{}, *SETTINGS.get(learner, [])]:
                    yield Case(learner, model, settings)
            for model in MECHANISMS.get(learner, {}).get(trust, []):
                yield Case(learner, model, {})
                if spec.rhythm == "stream":
                    yield Case(learner, model, {"stationary": True})
        if spec.run_lockstep is not None:
            yield from (Case(learner, model, {}, lockstep=True) for model in LOCKSTEP)


def problem(case: Case) -> TabularMDP:
    """Small, and small enough to list all policies where that is done."""
    if case.lockstep or case.settings.get("structure") == "paper":
        return RandomMDP(states=2, actions=2, horizon=2, seed=3)
    return RiverSwim(states=3, horizon=4)


def digest(case: Case) -> str:
    """Run a case; the digest of what came out."""
    mdp, spec = problem(case), get_learner(case.learner)
    episodes = EPISODES[spec.rhythm]
    if case.lockstep:
        seeds = [RunSeeds(SEED, run) for run in range(3)]
        if spec.run_lockstep is None:
            raise SystemExit(f"{case.learner} has no lockstep runs")
        results = spec.run_lockstep([mdp] * 3, case.trust, episodes, seeds, **case.settings)
    else:
        results = [
            learn(
                mdp,
                learner=case.learner,
                trust=case.trust,
                episodes=episodes,
                seed=SEED,
                **case.settings,
            )
        ]
    hashed = hashlib.blake2b(digest_size=16)
    for result in results:
        for array in (result.regret.episodes, result.regret.values):
            hashed.update(np.ascontiguousarray(array).tobytes())
        hashed.update(policy_bytes(result.policy, mdp))
    return hashed.hexdigest()


def policy_bytes(policy: Policy, mdp: TabularMDP) -> bytes:
    """The exact numbers of a policy."""
    if isinstance(policy, MixturePolicy):
        parts = [policy_bytes(component, mdp) for component in policy.components]
        return np.asarray(policy.weights).tobytes() + b"".join(parts)
    if hasattr(policy, "probabilities"):
        return np.ascontiguousarray(policy.probabilities).tobytes()
    return np.ascontiguousarray(policy.distribution(mdp.shape)).tobytes()


def record(file: Path, learners: list[str]) -> None:
    """Run all cases; an error is recorded by its message."""
    began, found = time.process_time(), {}
    for case in cases(learners):
        try:
            found[case.name] = digest(case)
        except Exception as error:
            found[case.name] = f"{type(error).__name__}: {error}"
    file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    refused = sum(":" in value for value in found.values())
    print(
        f"{len(found)} runs, of which {refused} were refused, "
        f"in {time.process_time() - began:.0f} s of processor time"
    )


def compare(before: Path, after: Path) -> int:
    """Print what differs between two files; the number of differences."""
    old, new = (json.loads(file.read_text()) for file in (before, after))
    different = 0
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            different += 1
            print(f"{name}\n    {old.get(name)} -> {new.get(name)}")
    print(f"{different} of {len({*old, *new})} runs differ")
    return different


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--learners", nargs="*", default=learner_names())
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "record":
        record(arguments.file, arguments.learners)
    else:
        sys.exit(1 if compare(arguments.before, arguments.after) else 0)


if __name__ == "__main__":
    main()
