"""What epsilon means for people, what an attack can prove, how large the service's batches are."""

import csv
import math
from pathlib import Path

import numpy as np
from scipy.stats import beta, norm

from discreet import Central, Shuffle
from discreet.mdp import Shape
from discreet.privacy import calibrate
from discreet.privacy.guarantee import rounded_up

DATA = Path(__file__).parents[2] / "docs" / "data"
EPSILONS = (0.1, 0.5, 1, 2, 3, 5)
PROBLEMS = (Shape(states=4, actions=2, horizon=6), Shape(states=20, actions=4, horizon=10))
USERS = (10**4, 10**6, 10**8, 10**9)
HEADER, ENVELOPE = 65, 52
"""Bytes of a report besides its envelopes, and of an envelope."""


def odds():
    """The most that a guess, a suspicion of 10 in 100 and a harm to 1 in 100 can become.

    Of a study with delta = 0, rounded up; as in `discreet.study.dossier.page.in_numbers`.
    """
    yield ("epsilon", "right guesses in 100", "suspicion in 100", "harmed in 100")
    for epsilon in EPSILONS:
        factor = math.exp(epsilon)
        guess, suspicion = factor / (1 + factor), factor / (factor + 9)
        harm = min(factor, 100 - 99 / factor)  # the second: what stays away from 99 in 100
        yield (epsilon, *(rounded_up(x, 3) for x in (100 * guess, 100 * suspicion, harm)))


def sizes():
    """Envelopes, bytes and hours of opening, from the measured constants."""
    with (DATA / "service-constants.csv").open(encoding="utf-8", newline="") as file:
        measured = {row["what"]: float(row["value"]) for row in csv.DictReader(file)}
    opening = measured["open one envelope"] * 1e-6 / 3600
    memory = measured["memory of the analyser for each user of a batch"]
    yield (
        *("users", "states", "actions", "horizon", "epsilon", "delta", "envelopes_of_a_report"),
        *("report_bytes", "batch_gigabytes", "opening_core_hours", "analyser_memory_gigabytes"),
    )
    for shape in PROBLEMS:
        for users in USERS:
            found = calibrate(Shuffle(epsilon=1, delta=1e-6), shape, users=users)
            each = found.messages_per_user
            size, hours = HEADER + ENVELOPE * each, users * each * opening
            yield (
                *(users, shape.states, shape.actions, shape.horizon, 1, 1e-6, each, size),
                *(f"{x:.3g}" for x in (users * size / 1e9, hours, users * memory / 1e9)),
            )


def power():
    """The largest epsilon that an attack proves of Gaussian noise for (1, 1e-6), H = 6.

    With the thresholds of `discreet.auditing.attack` and the expected numbers of hits, half of the
    runs counted; with all of the noise, and with a half of it.
    """
    mechanism = Central(epsilon=1, delta=1e-6, mechanism="gaussian").calibrate(PROBLEMS[0])
    sigma = math.sqrt(mechanism.noise_variance(1)["visits"])
    cuts = np.linspace(-2, 6, 801)
    tail = 1e-6 / 4
    yield ("noise", "runs", "proven_epsilon")
    for noise in (1.0, 0.5):
        shift = 6 / (sigma * noise)  # 36 counters move by one
        for runs in (600, 10**4, 10**6, 10**8):
            half = runs // 2
            hits, misses = half * norm.sf(cuts - shift), half * norm.sf(cuts)
            low = beta.ppf(tail, np.maximum(hits, 1e-9), half - hits + 1)
            high = beta.isf(tail, misses + 1, half - misses)
            proven = np.log(np.maximum(low - 1e-6, 1e-300) / high)
            yield (noise, runs, f"{max(0.0, proven.max()):.2f}")


TABLES = {
    "audit-power.csv": power,
    "epsilon-for-people.csv": odds,
    "service-sizes.csv": sizes,
}
