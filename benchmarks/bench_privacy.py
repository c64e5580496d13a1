"""The noise that a guarantee needs, noise per episode, and the projection onto valid rows."""

import numpy as np
from scipy.optimize import linprog

from benchmarks.measure import Peer, compare, package
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import gaussian_sigma
from discreet.privacy.mechanisms.registry import mechanisms
from discreet.privacy.projection.valid_counts import valid_rows
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.trust import Central, Local

EPSILON, DELTA = 1.0, 1e-6
EPISODES, BLOCK = 20_000, 100
ROWS, SOLVES = 20_000, 20


def run(quick: bool) -> list[dict]:
    """Rows: calibration where autodp is installed, noise by mechanism, projection by S."""
    repeats = 5 if quick else 15
    trusts = [Central(1, 1e-6, mechanism=name) for name in mechanisms("central", "continual")]
    trusts += [Local(1, mechanism=name) for name in ("laplace", "randomized-response", "one-step")]
    return [
        *_calibration(repeats),
        *(_release(trust, repeats) for trust in trusts),
        *(_projection(states, repeats) for states in (4, 20)),
    ]


def _calibration(repeats: int) -> list[dict]:
    """Both in closed form (Balle and Wang, 2018)."""
    try:
        from autodp.calibrator_zoo import ana_gaussian_calibrator
        from autodp.mechanism_zoo import ExactGaussianMechanism
    except ImportError:
        return []

    def peer() -> float:
        found = ana_gaussian_calibrator()(ExactGaussianMechanism, EPSILON, DELTA)
        return float(found.params["sigma"])

    ours = gaussian_sigma(1.0, EPSILON, DELTA)
    if abs(peer() / ours - 1) > 1e-2:
        raise RuntimeError(f"both must find the same noise, got {ours} and {peer()}")
    note = "ours also proves in decimal arithmetic that the double it returns keeps the guarantee"
    return [
        compare(
            f"Gaussian noise for epsilon={EPSILON:g}, delta={DELTA:g}",
            lambda: gaussian_sigma(1.0, EPSILON, DELTA),
            peer,
            package("autodp", "autodp, in closed form")._replace(note=note),
            "ms",
            repeats=repeats,
            per=(1e3, 1e3),
        )
    ]


def _release(trust, repeats: int) -> dict:
    """Noise of a continual release, per episode, at S=6, A=2, H=20 (1,920 counters), K=20,000.

    The reference is plain NumPy that draws every node of the current prefix anew at each episode,
    as simple code would (and which is wrong: redrawn noise averages out).
    """
    shape = Shape(states=6, actions=2, horizon=20)
    mechanism = trust.calibrate_stream(shape, episodes=EPISODES)
    release = [mechanism.open(SimulationSampler(np.random.default_rng(0)))]

    def block() -> None:
        if release[0].episode + BLOCK > EPISODES:
            release[0] = mechanism.open(SimulationSampler(np.random.default_rng(0)))
        release[0].block(BLOCK)

    def redrawn() -> None:
        rng = np.random.default_rng(0)
        for k in range(10_000, 10_010):
            rng.laplace(0.0, 1800.0, (bin(k).count("1"), 1920)).sum(axis=0)

    return compare(
        f"noise of one release, {trust.notion} {mechanism.name}",
        block,
        redrawn,
        Peer("numpy.random.laplace, every node of the prefix anew", kind="ours"),
        "us per episode",
        repeats=repeats,
        per=(1e6 / BLOCK, 1e6 / 10),
    )


def _projection(states: int, repeats: int) -> dict:
    """The closed-form valid distribution against `scipy.optimize.linprog`, per (h, s, a)."""
    rng = np.random.default_rng(states)
    counts = rng.normal(5.0, 25.0, size=(ROWS, states))
    totals = np.maximum(counts.sum(axis=1) + rng.normal(scale=25.0, size=ROWS), 0.0)
    errors, out = np.full(ROWS, 5.0), np.empty_like(counts)
    eye, ones, sums = np.eye(states), np.ones((states, 1)), np.ones((1, states))
    matrix = np.block([[eye, -ones], [-eye, -ones], [sums, 0], [-sums, 0]])
    cost = np.append(np.zeros(states), 1.0)

    def programs() -> None:
        for n, total in zip(counts[:SOLVES], totals[:SOLVES], strict=True):
            bounds = np.concatenate([n, -n, [total + 5.0, 5.0 - total]])
            linprog(cost, A_ub=matrix, b_ub=bounds, bounds=(0, None), method="highs")

    return compare(
        f"valid distribution, S={states}",
        lambda: valid_rows(counts, totals, errors, out),
        programs,
        package("scipy", "scipy.optimize.linprog (HiGHS)"),
        "us per projection",
        repeats=repeats,
        per=(1e6 / ROWS, 1e6 / SOLVES),
    )
