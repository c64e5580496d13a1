"""Shuffle by classes beside single bits: the law of the noise, and regret in paired runs.

Usage: python -m tools.compare_shuffle noise|regret [--quick] [--seed 0] [--runs 20]
                 [--names RiverSwim ...] [--learners flow-ucb ...] [--sizes 20000 ...]

``noise``: chi-square tests of the noise on one transition counter against the exact binomial law of
bits with the same lambda, for both mechanisms at count level and for the messages of real devices.
``regret``: exact regret of the same runs (seed, environment, relabelled actions) under both
mechanisms, as the ratio of the means with a 95% interval (bootstrap over pairs). Prints Markdown;
eps = 1, delta = 1e-6 unless a row says otherwise.
"""

import argparse
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy import stats

import discreet
from discreet import Shuffle, device
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.mdp import Counts, Shape, TabularMDP, sample_counts, uniform_policy
from discreet.mdp.planning import RegretMeter
from discreet.privacy import SimulationSampler
from discreet.privacy.mechanisms.classes import ClassesBatch, deterministic
from discreet.privacy.mechanisms.shuffle import ShuffleBatch

ENVIRONMENTS: dict[str, dict[str, int]] = {
    "RiverSwim": {"states": 4, "horizon": 6},
    "DoubleChain": {},
    "Treatment": {},
}
LEARNERS = ("flow-ucb", "sdp-pe")
SIZES = (20_000, 200_000, 2_000_000)
STATISTICS = ("transitions", "rewards")
RESAMPLES = 20_000


class Case(NamedTuple):
    """A batch whose noise is tested; both mechanisms release transitions of all H steps."""

    shape: Shape
    users: int
    epsilon: float
    delta: float
    batches: int
    devices: bool = False

    @property
    def played(self) -> BoolArray:
        """One action per state."""
        return deterministic(self.shape)

    def plans(self) -> tuple[ClassesBatch, ShuffleBatch]:
        """Classes and bits, each calibrated for itself."""
        trust, wanted = Shuffle(self.epsilon, self.delta), STATISTICS
        classes = ClassesBatch.calibrate(trust, self.shape, statistics=wanted)
        return classes, ShuffleBatch.calibrate(trust, self.shape, statistics=wanted)

    def counts(self, rng: np.random.Generator) -> Counts:
        """What users of some MDP did."""
        size = {"states": self.shape.states, "horizon": self.shape.horizon}
        mdp = discreet.make("RiverSwim", **size)
        policy = discreet.mdp.DeterministicPolicy(np.zeros(self.shape.visits[:2], np.int64))
        return sample_counts(mdp, policy, self.users, rng)


CASES = (
    Case(Shape(states=4, actions=2, horizon=6), 20_000, 1.0, 1e-6, 4000),
    Case(Shape(states=4, actions=2, horizon=6), 2_000_000, 1.0, 1e-6, 4000),
    Case(Shape(states=2, actions=2, horizon=6), 300, 4.0, 1e-3, 1000, devices=True),
)


def noise_of_release(
    case: Case, plan: ClassesBatch | ShuffleBatch, mean: float, seed: int
) -> IntArray:
    """Noise on one transition counter per step and batch, drawn at count level."""
    rng = np.random.default_rng([seed, case.users])
    counts, sampler = case.counts(rng), SimulationSampler(rng)
    cell, found = _one_per_step(case), []
    true = counts.transitions[case.played][cell]
    for _ in range(case.batches):
        seen = plan.release(counts, sampler=sampler, played=case.played).row_transitions
        found.append(np.rint(seen[cell] + mean - true).astype(int))
    return np.concatenate(found)


def noise_of_devices(case: Case, plan: ClassesBatch, seed: int) -> IntArray:
    """The same from messages: devices encode, all messages of a class are counted."""
    rng = np.random.default_rng([seed, case.users])
    encoder = plan.encoder(case.users, played=case.played)
    phone = device.load(encoder.to_dict())
    horizon, cell, found = case.shape.horizon, _one_per_step(case), []
    for _ in range(case.batches):
        life = rng.integers(0, case.shape.states, horizon + 1).tolist()
        episode = {"states": life, "actions": [0] * horizon, "rewards": [0.5] * horizon}
        messages = [encoder.rows(phone.encode(episode)) for _ in range(case.users)]
        counters, _ = plan.add_up(np.concatenate(messages), case.users, case.played)
        true = np.zeros((horizon, case.shape.states, case.shape.states), int)
        true[np.arange(horizon), life[:-1], life[1:]] = case.users
        found.append((counters["transitions"] - true.reshape(counters["transitions"].shape))[cell])
    return np.concatenate(found)


def _one_per_step(case: Case) -> tuple[IntArray, int]:
    """Cells of one class repel each other a little: one of each class is a sample."""
    return np.arange(case.shape.horizon) * case.shape.states, 0


def fit(noise: IntArray, law: stats.rv_discrete) -> float:
    """The p-value of the chi-square test, in bins of about equal probability."""
    edges = np.unique(law.ppf(np.linspace(0, 1, 31)[1:-1]))
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * noise.size
    observed = np.bincount(np.searchsorted(edges, noise), minlength=expected.size)
    return float(stats.chisquare(observed, expected).pvalue)


def print_noise(seed: int, quick: bool) -> None:
    """One row per case."""
    print(
        "| S, H, users | lambda | draws | classes | bits | devices | variance, each calibrated |\n"
        "|---|---|---|---|---|---|---|"
    )
    for case in CASES:
        chosen = case._replace(batches=case.batches // 10) if quick else case
        print(_noise_row(chosen, seed), flush=True)


def _noise_row(case: Case, seed: int) -> str:
    classes, bits = case.plans()
    each, users = bits.bits(case.users), case.users
    own = classes.noise_variance(users)["transitions"] / bits.noise_variance(users)["transitions"]
    # The law of bits is Binomial(n, p) here; classes are given the same mean n·p per cell.
    if each.bits != 1 or each.weights:
        raise SystemExit(f"Expected one independent noise bit per user, got {each}.")
    alike = replace(classes, mean=Fraction(users * each.probability))
    if {one.noise for one in alike.classes(users, case.played)} != {1}:
        raise SystemExit("Expected one noise cell per user and class.")
    law, mean = stats.binom(users, each.probability), users * each.probability
    tests = [noise_of_release(case, plan, mean, seed) for plan in (alike, bits)]
    tests += [noise_of_devices(case, alike, seed)] if case.devices else []
    values = [f"{fit(noise, law):.3f}" for noise in tests] + ["-"] * (not case.devices)
    size = f"{case.shape.states}, {case.shape.horizon}, {users:,}"
    draws = f"{case.batches * case.shape.horizon:,}"
    return f"| {size} | {mean:.1f} | {draws} | {' | '.join(values)} | {own:.4f} |"


def problem(name: str, run: int) -> TabularMDP:
    """Actions renamed, differently in every run."""
    return discreet.make(name, relabel=run, **ENVIRONMENTS[name])


def regrets(
    name: str, learner: str, mechanism: str, episodes: int, seed: int, runs: int
) -> FloatArray:
    """Final regret of each run, as a share of the uniform policy's."""
    trust, found = Shuffle(1, 1e-6, mechanism=mechanism), []
    for run in range(runs):
        mdp = problem(name, run)
        uniform = RegretMeter(mdp).regret(uniform_policy(mdp.shape)) * episodes
        result = discreet.learn(
            mdp, learner=learner, trust=trust, episodes=episodes, seed=seed, run=run
        )
        found.append(result.final_regret / uniform)
    return np.array(found)


def interval(classes: FloatArray, bits: FloatArray, seed: int) -> tuple[float, float]:
    """95% of the ratio of means, resampling pairs of runs."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, classes.size, (RESAMPLES, classes.size))
    ratios = classes[chosen].mean(axis=1) / bits[chosen].mean(axis=1)
    return tuple(np.quantile(ratios, [0.025, 0.975]))


def print_regret(options: argparse.Namespace) -> None:
    """One row per environment, learner and number of users."""
    print("| environment | learner | users | classes | bits | ratio | 95% |\n" + "|---" * 7 + "|")
    for name in options.names:
        for learner in options.learners:
            for episodes in options.sizes:
                both = [
                    regrets(name, learner, mechanism, episodes, options.seed, options.runs)
                    for mechanism in ("classes", "bits")
                ]
                low, high = interval(both[0], both[1], options.seed)
                means = [values.mean() for values in both]
                print(
                    f"| {name} | {learner} | {episodes:,} | {means[0]:.2%} | {means[1]:.2%} | "
                    f"{means[0] / means[1]:.3f} | {low:.3f} to {high:.3f} |",
                    flush=True,
                )


def main() -> None:
    """Print what is asked for; ``--quick`` takes a minute for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["noise", "regret"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--names", nargs="*", default=list(ENVIRONMENTS), choices=ENVIRONMENTS)
    parser.add_argument("--learners", nargs="*", default=list(LEARNERS), choices=LEARNERS)
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    options = parser.parse_args()
    if options.quick:
        options.runs, options.sizes = 4, options.sizes[:1]
    if options.part == "noise":
        print_noise(options.seed, options.quick)
    else:
        print_regret(options)


if __name__ == "__main__":
    main()
