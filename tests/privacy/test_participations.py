"""People who return: one guarantee for all episodes of a person, whoever chooses the later ones."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.auditing.neighbours import Episode
from discreet.auditing.probes import ScriptedSampler, outcomes
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle
from discreet.privacy.accounting.lattice import discrete_laplace_delta
from discreet.privacy.accounting.search import response_epsilon
from discreet.privacy.accounting.shuffle_curves import batch_epsilon
from discreet.privacy.costs import calibrate, usual_batch
from discreet.privacy.mechanisms.noise import Bounded, Gaussian
from discreet.privacy.mechanisms.registry import MechanismSpec, everything
from discreet.privacy.mechanisms.toeplitz import factors
from discreet.privacy.mechanisms.tree import signed_shape
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.vectors import calibrate_vectors
from helpers.calibrating import calibrated

SHAPE = Shape(states=4, actions=2, horizon=6)
ONE = Shape(states=1, actions=2, horizon=1)
EPISODES = [
    Episode(np.zeros(2, np.int64), np.array([action]), np.array([reward]))
    for action, reward in itertools.product((0, 1), (0.0, 1.0))
]


def noise(trust, users=20_000):
    return max(usual_batch(trust, SHAPE).worst_noise(users).values())


@pytest.mark.parametrize("model", [Central, Shuffle])
def test_four_participations_cost_twice_the_noise(model):
    once, four = (noise(model(1, 1e-6, participations=m)) for m in (1, 4))
    assert noise(model(1, 1e-6)) == once
    assert 1.99 <= four / once <= 2.02


def test_shuffled_messages_grow_with_the_square_of_the_noise():
    once, four = (calibrate(Shuffle(1, 1e-6, participations=m), SHAPE, users=2000) for m in (1, 4))
    assert 2.5 < four.bytes_per_user / once.bytes_per_user <= 4.01


@pytest.mark.parametrize("name", ["split"])
def test_a_pure_local_epsilon_is_shared_and_a_delta_helps(name):
    pure = Local(1, 0.0, name, participations=4).calibrate(SHAPE)
    close = Local(1, 1e-6, name, participations=4).calibrate(SHAPE)
    assert (pure.guarantee.delta, close.guarantee.delta) == (0.0, 1e-6)
    assert max(close.worst_noise(100).values()) < max(pure.worst_noise(100).values())
    quarter = Local(0.25, 0.0, name).calibrate(SHAPE)
    assert pure.worst_noise(100) == quarter.worst_noise(100)


def test_laplace_takes_the_whole_factor_unless_a_delta_composes():
    once, four = (noise(Central(1, 0.0, "laplace", participations=m)) for m in (1, 4))
    assert four / once == pytest.approx(4, rel=1e-3)
    assert noise(Central(1, 1e-6, "laplace", participations=4)) < four / 2


@pytest.mark.parametrize(("name", "responses"), [("randomized-response", 18), ("one-step", 1)])
def test_a_stream_of_answers_covers_all_of_a_person(name, responses):
    """Two changed bits of three statistics at each of three steps, or one category, three times."""
    for stationary in (False, True):
        trust = Local(1.0, 0.0, name, participations=3)
        stream = trust.calibrate_stream(Shape(2, 2, 3), episodes=20, stationary=stationary)
        each = math.log((1 - stream.flip) / stream.flip)
        assert 0.999 < 3 * responses * each <= 1


def test_responses_compose_exactly():
    for responses, delta in ((2, 1e-3), (5, 1e-6), (144, 1e-6)):
        each = response_epsilon(responses, 1.0, delta)
        assert each >= 1 / responses
        assert discrete_laplace_delta(1 / each, responses, 1.0) <= delta
        assert discrete_laplace_delta(1 / (each * 1.001), responses, 1.0) > delta


# --- whole adaptive views, by brute force ---------------------------------------------------------


def adaptive_delta(first, curves, epsilon):
    """Delta of two releases, the second pair chosen by what the first one showed.

    ``first``: (probability, privacy loss) of all outcomes; ``curves``: delta(epsilon) of each pair
    that may come second.
    """
    return sum(
        mass * max(curve(epsilon - loss) for curve in curves) for mass, loss in first if mass > 0
    )


def curve_of(pair):
    """delta(epsilon), also at negative ones, of a list of (probability, privacy loss)."""
    masses, losses = np.array(pair).T

    def curve(epsilon):
        gain = -np.expm1(np.minimum(epsilon - losses, 0.0))
        return float(masses @ np.where(losses > epsilon, gain, 0.0))

    return curve


def pair_of(p, q):
    """Outcomes of two distributions given as dictionaries."""
    losses = {o: math.log(p[o] / q[o]) if q.get(o, 0) else math.inf for o in p}
    return [(p[o], losses[o]) for o in p]


def shifted(masses, first, *shifts):
    """The pair of independent counters whose noise has these masses and moves by ``shifts``."""
    found = [(1.0, 0.0)]
    for shift in shifts:
        one = {first + i: mass for i, mass in enumerate(masses)}
        moved = {x + shift: mass for x, mass in one.items()}
        merged = Counter()  # by loss: which outcome it was does not matter
        for (a, x), (b, y) in itertools.product(found, pair_of(one, moved)):
            merged[round(x + y, 9)] += a * b
        found = [(mass, loss) for loss, mass in merged.items() if mass > 1e-18]
    return found


def additive_masses(distribution):
    if isinstance(distribution, Bounded):
        return distribution.weights / distribution.weights.sum(), -distribution.largest
    wide = 10 if isinstance(distribution, Gaussian) else 24
    reach = math.ceil(wide * math.sqrt(distribution.variance)) + 3
    values = np.arange(-reach, reach + 1)
    if isinstance(distribution, Gaussian):
        weights = np.exp(-(values**2) / (2 * distribution.sigma**2))
    else:
        weights = np.exp(-np.abs(values) / distribution.scale)
    return weights / weights.sum(), -reach


def noise_on_visits(trust):
    """Of a curator's batch, or of every person's report over time."""
    if isinstance(trust, Central):
        return trust.calibrate(ONE, statistics=("visits",)).noise
    stream = trust.calibrate_stream(ONE, statistics=("visits",), episodes=4)
    assert stream.summed_noise()[1] == 1
    return stream.summed_noise()[0]


@pytest.mark.parametrize(
    ("model", "name", "epsilon", "delta"),
    [
        (Central, "gaussian", 2.0, 1e-2),
        (Central, "laplace", 2.0, 1e-2),
        (Central, "laplace", 2.0, 0.0),
        (Local, "gaussian", 2.0, 1e-2),
        (Local, "laplace", 2.0, 1e-2),
        (Local, "bounded", 3.0, 3e-2),
    ],
)
def test_added_noise_covers_two_batches_of_which_the_second_is_chosen(model, name, epsilon, delta):
    """Visits of one step: a unit moves, or leaves, or nothing does."""
    masses, first = additive_masses(noise_on_visits(model(epsilon, delta, name, participations=2)))
    options = [(1, -1), (-1, 1), (1,), (-1,), (0,)]
    curves = [curve_of(shifted(masses, first, *move)) for move in options]
    worst = adaptive_delta(shifted(masses, first, 1, -1), curves, epsilon)
    assert worst <= delta * (1 + 1e-9) + 1e-12
    assert worst >= 0.6 * delta  # and not much more noise than that
    masses, first = additive_masses(noise_on_visits(model(epsilon, delta, name)))
    pair = shifted(masses, first, 1, -1)
    assert adaptive_delta(pair, [curve_of(pair)], epsilon) > 1.5 * delta  # one is not enough


@pytest.mark.parametrize("delta", [0.0, 1e-2])
@pytest.mark.parametrize("name", ["split"])
def test_reports_cover_two_of_which_the_second_is_chosen(name, delta):
    mechanism = Local(2, delta, name, participations=2).calibrate(ONE, statistics=("rewards",))
    encoder = mechanism.encoder()

    def report(user):
        def run(sampler):
            return np.asarray(
                encoder.encode(user.states, user.actions, user.rewards, sampler)
            ).tobytes()

        return outcomes(run, start=lambda script: ScriptedSampler(script, secure=True))

    listed = [report(user) for user in EPISODES]
    pairs = [pair_of(p, q) for p, q in itertools.product(listed, listed)]
    curves = [curve_of(pair) for pair in pairs]
    worst = max(adaptive_delta(pair, curves, 2.0) for pair in pairs)
    assert worst <= delta * (1 + 1e-9) + 1e-12
    assert delta == 0 or worst >= 0.2 * delta


def test_shuffled_histograms_cover_two_batches_of_which_the_second_is_chosen():
    """Batches of two and of three users: one unit moves between two cells, or does not."""
    epsilon, delta = 2.0, 1e-2
    mechanism = Shuffle(epsilon, delta, participations=2).calibrate(
        ONE, statistics=("rewards",), last_transitions=False
    )
    once = Shuffle(epsilon, delta).calibrate(ONE, statistics=("rewards",), last_transitions=False)

    def pair(of, users):
        [part] = of.trials(users)
        n, p = part.trials, float(part.probability)
        total = stats.binom.pmf(np.arange(n + 1), n, 2 * p)
        found = []
        for seen in np.flatnonzero(total > 1e-13):
            for heads, mass in enumerate(stats.binom.pmf(np.arange(seen + 1), seen, 0.5)):
                here, there = heads + 1, seen - heads  # e_a + N against e_b + N
                loss = math.log(here / there) if there else math.inf
                found.append((total[seen] * mass, loss))
        return found

    for sizes in itertools.product((2, 3), repeat=2):
        first, second = (pair(mechanism, users) for users in sizes)
        worst = adaptive_delta(first, [curve_of(second), curve_of([(1.0, 0.0)])], epsilon)
        assert 0.6 * delta <= worst <= delta * (1 + 1e-9)
        thin = pair(once, 2)
        assert adaptive_delta(thin, [curve_of(thin)], epsilon) > 2 * delta


@pytest.mark.parametrize("episodes", [40, 300, 3000])
@pytest.mark.parametrize(("times", "apart"), [(2, 1), (4, 9), (8, 3)])
def test_a_tree_counts_no_move_of_a_returning_person_that_cannot_be(episodes, times, apart):
    """As many users as may return lie in L nodes each that are used: m·L moves are reached."""
    shape = signed_shape(episodes)
    trust = Central(1, 0.0, participations=times, separation=apart)
    noise = trust.calibrate_stream(ONE, episodes=episodes).noise
    assert noise.distribution.scale == pytest.approx(times * shape.levels * 6, rel=1e-12)
    full, last = 0, -apart  # of the children of a node, number `above` is never used
    for user in range(episodes - shape.base ** (shape.levels - 1)):
        digits = [user // shape.base**level % shape.base for level in range(shape.levels - 1)]
        if user - last >= apart and all(digit != shape.above for digit in digits):
            full, last = full + 1, user
    assert full >= times


def test_a_square_root_covers_a_second_episode_that_is_chosen():
    """Two releases of one counter pair, by integration over the first."""
    epsilon, delta = 1.0, 1e-3
    mechanism = Central(epsilon, delta, "toeplitz", participations=2).calibrate_stream(
        ONE, statistics=("visits",), episodes=2
    )
    made, sigma = mechanism.noise.factors, mechanism.noise.sigma
    c = np.ldexp(made.encoder.astype(float), -made.grid.encoder)
    d = np.ldexp(made.columns.astype(float), -made.grid.column)
    ratio = math.sqrt(2) * d[0] * c[0] / sigma
    x = np.linspace(-9, 9, 20_001)
    masses, losses = stats.norm.pdf(x) * (x[1] - x[0]), ratio * x + ratio**2 / 2

    def curve(second):
        r = math.sqrt(2) * abs(d[0] * c[1] + second * d[1] * c[0]) / sigma
        return lambda e: stats.norm.cdf(r / 2 - e / r) - np.exp(e) * stats.norm.cdf(-r / 2 - e / r)

    left = epsilon - losses
    best = np.max([curve(second)(left) for second in (-1.0, 0.0, 1.0)], axis=0)
    assert 0.95 * delta <= float(masses @ best) <= delta * (1 + 1e-6)


# --- continual releases: b apart -----------------------------------------------------------------


def patterns(episodes, times, apart):
    for places in itertools.combinations(range(episodes), times):
        if all(b - a >= apart for a, b in itertools.pairwise(places)):
            yield places


@pytest.mark.parametrize(("times", "apart"), [(1, 1), (2, 1), (2, 5), (3, 3), (3, 7), (4, 2)])
def test_no_sum_of_columns_is_longer_than_said(times, apart):
    made = factors(16)
    c, d = made.encoder.tolist(), made.columns.tolist()
    columns = np.array(
        [[d[i] * c[t - i] if t >= i else 0 for i in range(16)] for t in range(16)], dtype=float
    )
    columns = np.ldexp(columns, -made.grid.bits)
    worst = max(
        float(np.sum(columns[:, list(p)].sum(axis=1) ** 2)) for p in patterns(16, times, apart)
    )
    said = made.returning(times, apart)
    assert worst <= said * (1 + 1e-12)
    assert said <= 1.25 * worst


def test_less_noise_for_people_who_return_later():
    noises = [
        max(
            Central(1, 1e-6, "toeplitz", participations=3, separation=b)
            .calibrate_stream(ONE, episodes=1000)
            .worst_noise(1000)
            .values()
        )
        for b in (1, 10, 100, 400)
    ]
    assert noises == sorted(noises, reverse=True)
    assert noises[-1] < 0.75 * noises[0]


# --- what is said, certified and refused ---


def test_the_guarantee_names_the_person_and_what_is_public():
    mechanism = Shuffle(1, 1e-6, participations=4).calibrate(
        SHAPE, statistics=("transitions", "rewards"), last_transitions=False
    )
    guarantee = mechanism.guarantee
    assert "one person, up to 4 episodes" in str(guarantee)
    assert guarantee.to_dict()["participations"] == 4
    assert any("when, is public" in text for text in guarantee.assumptions)
    [implied] = mechanism.implied()
    assert implied.guarantee.unit == guarantee.unit
    continual = Central(1, 1e-6, "toeplitz", participations=2, separation=9).calibrate_stream(
        ONE, episodes=20
    )
    assert any("9 or more episodes apart" in text for text in continual.guarantee.assumptions)


CERTIFIED = [
    (Central(1, 1e-6, "gaussian", participations=3), {}),
    (Central(1, 1e-6, "laplace", participations=3), {}),
    (Local(1, 1e-6, "split", participations=3), {}),
    (Local(1, 1e-6, "laplace", participations=3), {"episodes": 20}),
    (Central(1, 1e-6, "tree-signed", participations=3, separation=4), {"episodes": 20}),
    (Local(1, 1e-6, "gaussian", participations=3), {"episodes": 20}),
    (Local(1, 1e-6, "randomized-response", participations=3), {"episodes": 20}),
]


@pytest.mark.parametrize(("trust", "length"), CERTIFIED)
def test_participations_are_in_the_verified_part(trust, length):
    from discreet.privacy.certificates.document import CertificateError, certify, verify

    shape = Shape(2, 2, 3)
    schedule = {"schedule": "continual", **length} if length else {}
    mechanism = calibrated(trust, shape, **schedule)
    certificate = certify(mechanism)
    assert certificate.holds
    data = certificate.to_dict()
    assert data["release"]["participations"] == 3
    more = {key: value for key, value in data.items() if key != "digest"}
    more["release"] = data["release"] | {"participations": 4}
    with pytest.raises(CertificateError):
        verify(more)
    with pytest.raises(CertificateError, match="participations"):
        verify(data, of=calibrated(trust.__class__(1, 1e-6, trust.mechanism), shape, **schedule))


def test_what_is_not_known_for_returning_people_is_refused():
    pooled = Local(1, 1e-6, "gaussian", participations=2)
    with pytest.raises(UnsupportedError, match="stationary=False"):
        pooled.calibrate_stream(Shape(2, 2, 3), episodes=9, stationary=True)
    assert pooled.calibrate_stream(Shape(2, 2, 3), episodes=9).guarantee.participations == 2
    with pytest.raises(UnsupportedError, match="one participation"):
        Central(1, mechanism="tree-laplace", participations=2).calibrate_stream(ONE, episodes=9)
    with pytest.raises(UnsupportedError, match="one participation per person"):
        Shuffle(1, 1e-6, "bits", participations=2).calibrate(SHAPE)
    with pytest.raises(UnsupportedError, match="calibration='exact'"):
        Local(1, calibration="paper", participations=2)
    with pytest.raises(UnsupportedError, match="separation"):
        Central(1, 1e-6, participations=2, separation=3).calibrate(SHAPE)
    with pytest.raises(InvalidInputError, match="participations"):
        Central(1, participations=0)
    with pytest.raises(UnsupportedError, match="participations=2"):
        calibrate_vectors(Central(1, participations=2), {"x": 4}, Sensitivity(units=4), episodes=3)


def test_a_mechanism_of_ones_own_says_that_it_counts_participations():
    mine = MechanismSpec("central", "batch", "mine", "somewhere:else")
    with pytest.raises(UnsupportedError, match="returning=True"):
        mine.check_returning(2)
    mine.check_returning(1)
    counted = [
        spec for spec in everything() if spec.ours and spec.name not in ("bits", "tree-laplace")
    ]
    assert all(spec.returning for spec in counted)


def test_noise_of_the_histogram_counts_all_batches_of_a_person():
    once, thrice = (
        Shuffle(1, 1e-6, participations=m).calibrate(ONE, statistics=("rewards",)) for m in (1, 3)
    )
    assert (once.moves, thrice.moves) == (1, 3)
    assert isinstance(thrice.mean, Fraction)
    assert thrice.mean > 2.5 * once.mean
    assert batch_epsilon([replace(p, times=3) for p in thrice.trials(50)], 1e-6) <= 1
