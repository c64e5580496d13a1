"""Certify every golden value of the project: python -m tools.certify_golden [--quick] [PATTERN].

Prints law, bound/delta, seconds of processor time (bound, check) and the peak of memory so far, and
the refutations: one noise bit less, and layered noise as one Gaussian.
"""

import argparse
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import DiscreetError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle
from discreet.privacy.adversarial import LayeredSize, calibrate_layered
from discreet.privacy.certificates.laws import BinomialBits, LayeredGaussian
from discreet.privacy.certificates.layered import layered_refutation
from discreet.privacy.certificates.plans import Claim, Plan, claim_of
from discreet.privacy.certificates.refute import binomial_refutation
from discreet.privacy.certificates.run import certify_claim
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.trust import TrustModel

DELTAS = (1e-6, 1e-9)
GOLDEN = ((2, 0.1), (2, 1.0), (6, 0.1), (6, 0.5), (6, 1.0), (6, 2.0), (20, 1.0))
"""(H, epsilon) of the table in the specification."""
TWO = ("transitions", "rewards")


@dataclass(frozen=True)
class Case:
    """One row."""

    label: str
    plan: Callable[[], Plan]
    users: int | None = None
    quick: bool = False


def _shape(horizon: int) -> Shape:
    return Shape(states=4, actions=2, horizon=horizon)


def _batch(
    trust: TrustModel,
    horizon: int,
    *,
    statistics: tuple[str, ...] = STATISTICS,
    last_transitions: bool = True,
) -> Callable[[], Plan]:
    shape = _shape(horizon)
    return lambda: trust.calibrate(shape, statistics=statistics, last_transitions=last_transitions)


def _stream(
    trust: TrustModel, horizon: int, episodes: int, *, stationary: bool = False
) -> Callable[[], Plan]:
    return lambda: trust.calibrate(
        _shape(horizon), rhythm="stream", episodes=episodes, stationary=stationary
    )


def _layered(horizon: int, epsilon: float, delta: float) -> Callable[[], Plan]:
    size = LayeredSize((1, *[2] * (horizon - 1), 1), 2)
    trust = Local(epsilon=epsilon, delta=delta, mechanism="gaussian")
    return lambda: calibrate_layered(trust, size, 1000, feedback="bandit")


def cases() -> Iterator[Case]:
    """Everything, the cheap ones first."""
    for delta in DELTAS:
        for horizon, epsilon in GOLDEN:
            name = f"H={horizon} eps={epsilon:g} delta={delta:g}"
            central = Central(epsilon=epsilon, delta=delta, mechanism="gaussian")
            yield Case(f"one-shot Gaussian {name}", _batch(central, horizon), quick=horizon == 6)
            yield Case(
                f"one-shot Gaussian, two statistics {name}",
                _batch(central, horizon, statistics=TWO),
            )
            classes = Shuffle(epsilon=epsilon, delta=delta)
            batch = _batch(classes, horizon, statistics=TWO, last_transitions=False)
            if epsilon >= 0.5:  # millions of atoms below it: minutes
                yield Case(f"classes n=20,000 {name}", batch, 20_000)
            yield Case(f"classes in their limit {name}", batch, quick=horizon == 6)
            shuffle = Shuffle(epsilon=epsilon, delta=delta, mechanism="bits")
            for users in (500, 20_000, 1_000_000):
                yield Case(f"shuffle n={users:,} {name}", _batch(shuffle, horizon), users)
        name = f"H=6 eps=1 delta={delta:g}"
        honest = Shuffle(epsilon=1.0, delta=delta, honest=0.8, mechanism="bits")
        yield Case(f"shuffle n=20,000 honest=0.8 {name}", _batch(honest, 6), 20_000)
        for episodes in (20_000, 1_000_000):
            for mechanism in ("tree-gaussian", "tree-honaker", "tree-iid", "toeplitz"):
                trust = Central(epsilon=1.0, delta=delta, mechanism=mechanism)
                label = f"{mechanism} K={episodes:,} {name}"
                yield Case(label, _stream(trust, 6, episodes), quick=episodes < 10**5)
                yield Case(
                    f"{mechanism} stationary K={episodes:,} {name}",
                    _stream(trust, 6, episodes, stationary=True),
                )
        for mechanism in ("gaussian", "bounded"):
            local = Local(epsilon=1.0, delta=delta, mechanism=mechanism)
            yield Case(f"local {mechanism} {name}", _batch(local, 6))
            yield Case(
                f"local {mechanism} stationary {name}", _stream(local, 6, 1000, stationary=True)
            )
        for epsilon in (1.0, 5.0, 10.0):
            yield Case(
                f"layered bandit H=6 eps={epsilon:g} delta={delta:g}", _layered(6, epsilon, delta)
            )
    for horizon in (2, 6):  # one user adds all bits: fair ones, as few as there can be
        least = Shuffle(epsilon=1.0, delta=1e-6, mechanism="bits")
        yield Case(f"least fair bits H={horizon} eps=1 delta=1e-06", _batch(least, horizon), 1)
    for mechanism in ("laplace", "randomized-response", "one-step", "split"):
        local = Local(epsilon=1.0, mechanism=mechanism)
        yield Case(f"local {mechanism} H=6 eps=1", _batch(local, 6), quick=True)
    yield Case("one-shot Laplace H=6 eps=1", _batch(Central(epsilon=1.0), 6), quick=True)
    tree = Central(epsilon=1.0, mechanism="tree-laplace")
    yield Case("tree-laplace K=1,000,000 H=6 eps=1", _stream(tree, 6, 1_000_000))
    for horizon, epsilon, delta in ((1, 40.0, 1e-6), (2, 40.0, 1e-6), (1, 20.0, 1e-3)):
        yield Case(
            f"layered bandit H={horizon} eps={epsilon:g} delta={delta:g}",
            _layered(horizon, epsilon, delta),
        )


def _row(label: str, *cells: str) -> None:
    print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


def _memory() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}"


def _certify(case: Case) -> Claim | None:
    """Print one row; returns the claim."""
    try:
        claim = claim_of(case.plan(), users=case.users)
        certificate = certify_claim(claim)
    except DiscreetError as error:
        _row(case.label, "-", str(error), "", "", _memory())
        return None
    verdict = "holds" if certificate.holds else "NOT CERTIFIED"
    first, second = certificate.seconds
    ratio = f"{certificate.ratio:.9f}"
    _row(case.label, claim.law.name, ratio, verdict, f"{first:.2f}, {second:.2f}", _memory())
    return claim


def _refute(label: str, claim: Claim) -> None:
    """One fair bit less must break the promise; layered noise may be refuted as it is."""
    start, law, low = time.process_time(), claim.law, Fraction(0)
    if isinstance(law, BinomialBits) and law.probability == Fraction(1, 2) and law.trials < 3000:
        label = f"{label}: {law.trials - 1:,} bits"
        low = binomial_refutation(
            law.trials - 1, law.ups, law.downs, claim.epsilon, fineness=16_000
        )
    elif isinstance(law, LayeredGaussian):
        low = layered_refutation(law, claim.epsilon)
    else:
        return
    verdict = "REFUTED" if low > claim.delta else "not refuted"
    seconds = f"{time.process_time() - start:.2f}"
    _row(
        f"{label} (from below)",
        law.name,
        f"{float(low / claim.delta):.9f}",
        verdict,
        seconds,
        _memory(),
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="only rows that contain this")
    parser.add_argument("--quick", action="store_true", help="a few rows of every kind")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    _row("what", "law", "bound / delta", "verdict", "seconds (bound, check)", "MB so far")
    print("|---|---|---|---|---|---|")
    for case in cases():
        if chosen.pattern in case.label and (case.quick or not chosen.quick):
            claim = _certify(case)
            if claim is not None:
                _refute(case.label, claim)
    return 0


if __name__ == "__main__":
    sys.exit(main())
