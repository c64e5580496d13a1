"""Noise of the mechanisms, for docs/understand/mechanisms and its neighbours.

Everywhere delta = 1e-6 where the mechanism has one, and standard deviations of the noise on one
counter. ``TWO`` statistics are what learners ask for.
"""

import math

import numpy as np

import discreet
from discreet.mdp import Shape
from discreet.privacy.accounting.closed_forms import gaussian_sigma
from discreet.privacy.accounting.shuffle_curves import batch_epsilon, batch_trials
from discreet.privacy.costs import calibrate
from discreet.privacy.statistics import one_action

DELTA = 1e-6
TWO, THREE = ("transitions", "rewards"), ("transitions", "visits", "rewards")


def shape_of(horizon, states=4, actions=2):
    return Shape(states=states, actions=actions, horizon=horizon)


def short(value, digits=5):
    return float(f"{value:.{digits}g}")


def central_std(name, horizon, epsilon, statistics=TWO):
    trust = discreet.Central(epsilon, DELTA, mechanism=name)
    mechanism = trust.calibrate(
        shape_of(horizon), statistics=statistics, last_transitions=statistics == THREE
    )
    return math.sqrt(mechanism.noise_variance(1)["transitions"])


def central():
    """Both central batch mechanisms, the continuous optimum and the textbook's Gaussian."""
    yield ["horizon", "epsilon", "statistics", "gaussian", "laplace", "analytic", "classical"]
    for statistics in (TWO, THREE):
        for horizon, epsilon in ((2, 1), (2, 10), (6, 1), (6, 10), (20, 1)):
            moves = len(statistics) * horizon - (statistics == TWO)
            l2 = math.sqrt(2 * moves)
            found = [central_std(name, horizon, epsilon, statistics) for name in NOISES]
            found.append(gaussian_sigma(l2, epsilon, DELTA))
            # Dwork and Roth (2014), Theorem A.1, which holds for epsilon < 1 (here: up to 1).
            found.append(l2 * math.sqrt(2 * math.log(1.25 / DELTA)) / epsilon)
            shown = [short(value) for value in found[: 4 if epsilon <= 1 else 3]]
            yield [horizon, epsilon, len(statistics), *shown, *[""] * (4 - len(shown))]


NOISES = ("gaussian", "laplace")
STREAMS = ("tree-signed", "tree-laplace", "toeplitz")


def stream(name, users, delta=DELTA):
    trust = discreet.Central(1, delta, mechanism=name)
    return calibrate(trust, shape_of(6), users=users, schedule="continual")


def streams():
    """Noise at the worst time of a stream, three statistics, H = 6, epsilon = 1."""
    yield ["users", *STREAMS, "printed", "printed epsilon"]
    for users in (100, 1_000, 20_000, 1_000_000):
        reports = [stream(name, users) for name in STREAMS]
        found = [short(report.noise_std["visits"]) for report in reports]
        printed = short(reports[1].paper_noise_std["visits"])
        yield [users, *found, printed, short(reports[1].delivered_by_paper["epsilon"])]


def factors():
    """Noise at the worst time, as a multiple of that of one release."""
    yield ["users", "square root", "toeplitz", "toeplitz, last", "lower bound"]
    for users in (20_000, 1_000_000):
        trust = discreet.Central(1, DELTA, mechanism="toeplitz")
        mechanism = trust.calibrate_stream(shape_of(6), episodes=users)
        one = central_std("gaussian", 6, 1, THREE)
        worst = mechanism.worst_time(users)
        found = [math.sqrt(mechanism.noise_variance(t)["visits"]) / one for t in (worst, users)]
        t = np.arange(1, users)
        root = 1 + np.sum(np.cumprod(((2 * t - 1) / (2 * t)) ** 2))
        # The least maximal error is at least the mean singular value of the prefix sums.
        angles = np.pi * (2 * np.arange(1, users + 1) - 1) / (4 * users + 2)
        least = np.mean(1 / (2 * np.sin(angles)))
        yield [users, *(short(float(value)) for value in (root, *found, least))]


def streams_returning():
    """The same for one person with 4 episodes, so many episodes apart or more."""
    yield ["mechanism", "participations", "separation", "noise", "times"]
    for name in ("toeplitz", "tree-signed"):
        one = stream(name, 20_000).noise_std["visits"]
        for separation in (1, 1_000, 5_000):
            trust = discreet.Central(
                1, DELTA, mechanism=name, participations=4, separation=separation
            )
            found = calibrate(trust, shape_of(6), users=20_000, schedule="continual")
            noise = found.noise_std["visits"]
            yield [name, 4, separation, short(noise), short(noise / one)]


def histogram(horizon, epsilon, users=20_000, states=4, actions=2):
    trust = discreet.Shuffle(epsilon, DELTA)
    return calibrate(trust, shape_of(horizon, states, actions), users=users)


def bits(horizon, epsilon, users=20_000, states=4, actions=2):
    trust = discreet.Shuffle(epsilon, DELTA, mechanism="bits")
    return calibrate(trust, shape_of(horizon, states, actions), users=users, statistics=TWO)


def histogram_sizes():
    """What the histogram and single bits cost, for deterministic policies."""
    yield [
        *("states", "actions", "horizon", "users", "lambda", "transition", "reward", "messages"),
        *("bytes", "bits noise", "bits messages", "bits bytes", "papers noise"),
    ]
    for states, actions, horizon, users in (
        (4, 2, 6, 20_000),
        (12, 2, 5, 5_000),
        (50, 2, 20, 1_000_000),
        (716, 25, 20, 100_000_000),
    ):
        one = histogram(horizon, 1, users, states, actions)
        other = bits(horizon, 1, users, states, actions)
        found = [one.noise_cells["mean_per_cell"], *(one.noise_std[name] for name in TWO)]
        yield [
            *(states, actions, horizon, users, *(short(value, 6) for value in found)),
            *(one.messages_per_user, one.bytes_per_user, short(other.noise_std["transitions"])),
            *(other.messages_per_user, other.bytes_per_user),
            short(other.paper_noise_std["transitions"]),
        ]


def histogram_batches():
    """Messages of each user by the size of the batch: S = 4, H = 6, epsilon = 1."""
    yield ["users", "messages", "bytes", "noise cells per group at most"]
    for users in (50, 100, 200, 500, 1_000, 5_000, 20_000):
        one = histogram(6, 1, users)
        cells = max(kind["per_user"] for kind in one.noise_cells["of"].values())
        yield [users, one.messages_per_user, one.bytes_per_user, cells]


def shuffle_epsilon():
    """Noise on a transition after 20,000 users, transitions and rewards."""
    yield ["horizon", "epsilon", "histogram", "bits", "gaussian", "laplace"]
    for horizon, epsilon in ((2, 3), (2, 10), (6, 1), (6, 10)):
        one = histogram(horizon, epsilon).noise_std["transitions"]
        other = bits(horizon, epsilon).noise_std["transitions"]
        both = [central_std(name, horizon, epsilon) for name in NOISES]
        yield [horizon, epsilon, *map(short, (one, other, *both))]


def bits_limit():
    """One step, three statistics as plain counts: jumps are not tried where noise is large."""
    yield ["horizon", "epsilon", "bits", "laplace"]
    trust = discreet.Shuffle(0.4, DELTA, mechanism="bits")
    found = calibrate(trust, shape_of(1), users=20_000, statistics=THREE).noise_std["visits"]
    yield [1, 0.4, short(found), short(central_std("laplace", 1, 0.4, THREE))]


def histogram_early():
    """The epsilon of a batch of the first row of `histogram_sizes`, released with fewer users."""
    yield ["share", "epsilon"]
    trust = discreet.Shuffle(1, DELTA)
    mechanism = trust.calibrate(shape_of(6), statistics=TWO, last_transitions=False)
    groups = mechanism.groups(20_000, one_action(mechanism.shape))
    for share in (0.9, 0.75, 0.5):
        trials = batch_trials(groups, int(20_000 * share))
        yield [share, short(batch_epsilon(trials, DELTA))]


LOCALS = ("split", "one-step", "randomized-response", "gaussian", "laplace", "bounded")


def local():
    """Noise of one report and after 20,000 users: S = 4, A = 2, H = 6, epsilon = 1."""
    yield [
        *("mechanism", "delta", "transition of a report", "reward of a report"),
        *("transition of 20000 users", "reward of 20000 users"),
    ]
    for name in LOCALS:
        delta = DELTA if name in ("gaussian", "bounded") else 0
        trust = discreet.Local(1, delta, mechanism=name)
        if name == "split":
            mechanism = trust.calibrate(shape_of(6), statistics=TWO, last_transitions=False)
        else:
            mechanism = trust.calibrate_stream(shape_of(6), episodes=20_000, statistics=TWO)
        found = [mechanism.noise_variance(users) for users in (1, 20_000)]
        yield [name, delta, *(short(math.sqrt(one[s])) for one in found for s in TWO)]


def local_others():
    """Settings beside those of `local`: other horizons, deltas, the printed noise."""
    yield ["mechanism", "horizon", "delta", "transition", "visit", "printed", "printed epsilon"]
    for name, horizon, delta in (
        ("one-step", 20, 0),
        ("laplace", 20, 0),
        ("laplace", 6, 0),
        ("gaussian", 6, 1e-6),
        ("gaussian", 6, 0.1),
        ("bounded", 6, 0.1),
    ):
        trust = discreet.Local(1, delta, mechanism=name)
        report = calibrate(trust, shape_of(horizon), users=1, schedule="continual")
        printed = report.delivered_by_paper["epsilon"]
        found = [report.noise_std[which] for which in ("transitions", "visits")]
        found.append(report.paper_noise_std["visits"])
        yield [name, horizon, delta, *map(short, found), short(printed)]


def concentrated():
    """What a budget rho of zero-concentrated privacy is worth."""
    yield ["rho", "delta", "epsilon", "epsilon of every mechanism"]
    for rho in (0.01, 0.1, 1):
        trust = discreet.Central(rho=rho)
        every = rho + 2 * math.sqrt(rho * math.log(1 / trust.delta))
        yield [rho, trust.delta, short(trust.epsilon), short(every)]


TABLES = {
    "mechanism_central.csv": central,
    "mechanism_streams.csv": streams,
    "mechanism_streams_returning.csv": streams_returning,
    "mechanism_factors.csv": factors,
    "histogram_sizes.csv": histogram_sizes,
    "histogram_batches.csv": histogram_batches,
    "histogram_early.csv": histogram_early,
    "shuffle_epsilon.csv": shuffle_epsilon,
    "bits_limit.csv": bits_limit,
    "mechanism_local.csv": local,
    "mechanism_local_others.csv": local_others,
    "calibration_rho.csv": concentrated,
}
