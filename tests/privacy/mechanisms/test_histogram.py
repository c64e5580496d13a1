"""Shuffle by groups: layout, noise, the real messages, what is refused."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet import Shuffle
from discreet.auditing.probes import PresetSampler
from discreet.device import load
from discreet.errors import CalibrationError, InvalidInputError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.shuffle_curves import groups_delta
from discreet.privacy.mechanisms.bits import shuffle
from discreet.privacy.mechanisms.histogram import HistogramBatch
from discreet.privacy.mechanisms.registry import load_encoder
from discreet.privacy.sampling.samplers import SecureSampler
from helpers.sampling import sampler

BOTH = ("transitions", "rewards")
SHAPE = Shape(states=3, actions=2, horizon=2)
EASY = Shuffle(epsilon=6, delta=1e-2, mechanism="histogram")
"""Little noise: few messages in tests."""
ALARM = 1e-8


def plan_of(shape=SHAPE, *, trust=EASY, statistics=BOTH, last=False) -> HistogramBatch:
    return trust.calibrate(shape, statistics=statistics, last_transitions=last)


def deterministic(shape, action=0):
    support = np.zeros(shape.visits, np.bool_)
    support[:, :, action] = True
    return support


def crowd(users, seed=0, shape=SHAPE):
    """Random episodes and what they add up to where everything is played."""
    rng = np.random.default_rng(seed)
    episodes = [
        (
            rng.integers(0, shape.states, shape.horizon + 1),
            rng.integers(0, shape.actions, shape.horizon),
            rng.integers(0, 2, shape.horizon).astype(float),
        )
        for _ in range(users)
    ]
    moves = np.zeros(shape.transitions, np.int64)
    rewards = np.zeros(shape.visits, np.int64)
    for states, actions, bits in episodes:
        for h in range(shape.horizon):
            moves[h, states[h], actions[h], states[h + 1]] += 1
            rewards[h, states[h], actions[h]] += int(bits[h])
    return episodes, Counts(users, moves, rewards)


def sent(plan, episodes, noise, support=None):
    encoder = plan.encoder(len(episodes), support=support)
    return shuffle(np.concatenate([encoder.encode(*e, noise) for e in episodes]), noise)


@pytest.mark.parametrize(
    ("states", "horizon", "users", "epsilon", "messages"),
    [
        (4, 6, 20_000, 1.0, 22),
        (4, 6, 20_000, 2.0, 22),
        (4, 6, 20_000, 0.1, 220),
        (12, 5, 5_000, 1.0, 59),
        (50, 20, 10**6, 1.0, 135),
        (716, 20, 10**6, 1.0, 13_664),
        (716, 20, 10**8, 1.0, 211),
    ],
)
def test_golden_numbers_of_messages(states, horizon, users, epsilon, messages):
    shape = Shape(states=states, actions=1, horizon=horizon)
    mechanism = plan_of(shape, trust=Shuffle(epsilon, 1e-6, mechanism="histogram"))
    assert sum(one.messages for one in mechanism.groups(users)) == messages
    if states < 716:  # the encoder of a large problem holds its policy: slow to make
        traffic = mechanism.encoder(users).traffic
        assert (traffic.messages, traffic.bytes) == (messages, 52 * messages)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("statistics", [BOTH, ("rewards",), ("visits", "transitions", "rewards")])
def test_device_and_analyser_have_the_same_groups(statistics, last):
    mechanism = plan_of(statistics=statistics, last=last)
    support = deterministic(SHAPE)
    support[0, 1:] = False
    assert mechanism.encoder(90, support=support).device.groups == mechanism.groups(90, support)
    few = plan_of(trust=Shuffle(6, 1e-2, honest=0.5), statistics=statistics, last=last)
    assert few.encoder(90, support=support).device.groups == few.groups(90, support)


def test_groups_count_what_a_user_can_move():
    """H for each statistic, without the last transitions if nobody asks for them."""
    shape = Shape(states=2, actions=2, horizon=6)
    trust = Shuffle(1.0, 1e-6, mechanism="histogram")
    for statistics, last, count in [
        (BOTH, False, 11),
        (BOTH, True, 12),
        (("transitions", "visits", "rewards"), False, 17),
        (("rewards",), False, 6),
    ]:
        mechanism = plan_of(shape, trust=trust, statistics=statistics, last=last)
        assert len(mechanism.groups(100)) == count
        assert groups_delta(float(mechanism.mean), count, 1.0) <= 1e-6
        assert groups_delta(0.999 * float(mechanism.mean), count, 1.0) > 1e-6
        assert mechanism.last_transitions is last
        assert mechanism.centred


def test_without_noise_the_analyser_finds_the_counts():
    """Dummy noise cells: every counter is its count less the mean of noise that is not there."""
    mechanism = plan_of()
    episodes, counts = crowd(40)
    found, estimate = mechanism.add_up(
        sent(mechanism, episodes, PresetSampler.still()), 40, np.ones(SHAPE.visits, np.bool_)
    )
    steps = SHAPE.states * SHAPE.actions
    np.testing.assert_array_equal(found["transitions"][:steps], counts.row_transitions[:steps])
    assert not found["transitions"][steps:].any()
    np.testing.assert_array_equal(found["visits"], counts.row_visits)
    np.testing.assert_array_equal(found["rewards"], 2 * counts.row_rewards - counts.row_visits)
    for one in mechanism.groups(40):
        mean = 40 * one.noise * one.weight / 2**32 / one.cells
        rows = slice(one.step * steps, (one.step + 1) * steps)
        if one.statistic == "transitions":
            assert estimate.centres["transitions"][rows] == pytest.approx(mean)
        else:
            assert estimate.centres["visits"][rows] == pytest.approx(2 * mean)


def test_who_leaves_the_policy_is_none_from_then_on():
    """The second user leaves at the second step, the third before the first one."""
    mechanism, support = plan_of(last=True), deterministic(SHAPE)
    still = PresetSampler.still()
    rewards = np.ones(2)
    episodes = [
        (np.array([0, 1, 2]), np.array([0, 0]), rewards),
        (np.array([0, 1, 2]), np.array([0, 1]), rewards),
        (np.array([0, 1, 2]), np.array([1, 0]), rewards),
    ]
    messages = sent(mechanism, episodes, still, support)
    groups = mechanism.groups(3, support)
    cells = {
        (one.statistic, one.step): np.bincount(messages[messages[:, 0] == i, 1])[one.dropped_out]
        for i, one in enumerate(groups)
    }
    assert cells == {
        ("transitions", 0): 1,
        ("transitions", 1): 2,
        ("rewards", 0): 1,
        ("rewards", 1): 2,
    }
    private = mechanism.release_reports(messages, 3, secure=False, support=support)
    dropped_out = {
        name: values + _noise(groups, 3, name) for name, values in private.dropped_out.items()
    }
    np.testing.assert_allclose(dropped_out["transitions"], [1, 2], atol=1e-9)
    np.testing.assert_allclose(dropped_out["rewards"], [1, 2], atol=1e-9)


def test_a_release_counts_who_left():
    """Counts hold steps outside the policy: their users are in none."""
    mechanism, support = plan_of(last=True), deterministic(SHAPE)
    _, counts = crowd(50)
    private = mechanism.release(counts, sampler=PresetSampler.still(), support=support)
    inside = [counts.visits[h][:, 0].sum() for h in range(2)]
    for name, values in private.dropped_out.items():
        found = values + _noise(mechanism.groups(50, support), 50, name)
        np.testing.assert_allclose(found, [50 - inside[0], 50 - inside[1]], atol=1e-9)


def test_a_batch_that_its_limit_does_not_cover_is_refused(monkeypatch):
    mechanism, (episodes, _) = plan_of(), crowd(5)
    messages = sent(mechanism, episodes, sampler())
    home = "discreet.privacy.accounting.shuffle_curves._dominated"
    monkeypatch.setattr(home, lambda *_: False)
    with pytest.raises(CalibrationError, match="not covered by their limit"):
        mechanism.encoder(5)
    with pytest.raises(CalibrationError, match="not covered by their limit"):
        mechanism.release_reports(messages, 5)


def test_raw_counts_of_real_people_are_checked_before_their_release(monkeypatch):
    """A rehearsal is not: it protects nobody, and its noise is the same."""
    mechanism, (_, counts) = plan_of(), crowd(5)
    home = "discreet.privacy.accounting.shuffle_curves._dominated"
    monkeypatch.setattr(home, lambda *_: False)
    with pytest.raises(CalibrationError, match="not covered by their limit"):
        mechanism.release(counts, sampler=PresetSampler.still(secure=True))
    assert mechanism.release(counts, sampler=PresetSampler.still()).guarantee.simulated


def test_no_raw_counts_are_released_with_less_noise_than_calibrated(monkeypatch):
    mechanism, (_, counts) = plan_of(), crowd(5)
    with pytest.raises(InvalidInputError, match="nobody to be mixed with"):
        mechanism.release(crowd(1)[1], sampler=PresetSampler.still(secure=True))
    monkeypatch.setattr(HistogramBatch, "intensity", lambda self, _: self.mean / 2)
    for secure in (False, True):
        with pytest.raises(CalibrationError, match="not those of its mechanism"):
            mechanism.release(counts, sampler=PresetSampler.still(secure=secure))


def test_every_class_in_which_somebody_can_move_is_checked(monkeypatch):
    """Small ones too: from one pair of a state and an action to all of them."""
    seen = []
    home = "discreet.privacy.accounting.shuffle_curves._dominated"
    monkeypatch.setattr(home, lambda trials, p, _: seen.append((trials, p)) or True)
    support = np.zeros((4, 2, 2), np.bool_)
    support[0, 0, 0] = support[1, 0] = support[2, :] = True
    for statistics in (BOTH, ("visits",)):
        mechanism = plan_of(Shape(states=2, actions=2, horizon=4), statistics=statistics)
        groups = mechanism.groups(30, support)
        seen.clear()
        mechanism.encoder(30, support=support)
        wanted = {
            (30 * one.noise, Fraction(one.weight, 2**32 * one.cells))
            for one in groups
            if one.cells > 1
        }
        assert set(seen) == wanted
        assert {one.cells for one in groups} >= ({2, 3, 5} if statistics != BOTH else {3, 5, 9})


def noise_of_nobody(plan, users, repeats):
    """What releases say of users who all left before the first step: noise alone, by group."""
    counts = Counts(users, np.zeros(SHAPE.transitions, np.int64), np.zeros(SHAPE.visits, np.int64))
    draws, rows, found = sampler(5), SHAPE.states, []
    for _ in range(repeats):
        private = plan.release(counts, sampler=draws, support=deterministic(SHAPE))
        moves, looks = private.row_transitions.reshape(2, -1), private.row_visits.reshape(2, rows)
        sums = private.row_rewards.reshape(2, rows)
        dropped_out = {
            name: (values - users)[:, None] for name, values in private.dropped_out.items()
        }
        groups = [*np.hstack([moves, dropped_out["transitions"]])]
        groups += [*np.hstack([looks / 2 - sums, looks / 2 + sums, dropped_out["rewards"]])]
        found.append(groups)
    return [np.array(each) for each in zip(*found, strict=True)], private


@pytest.mark.parametrize("honest", [1.0, 0.5])
def test_where_everybody_left_every_cell_has_its_noise_and_groups_share_none(honest):
    """Noise does not depend on who stays: each cell has the whole of it, and a draw of its own."""
    users, repeats = 30, 1500
    mechanism = plan_of(trust=Shuffle(6, 1e-2, mechanism="histogram", honest=honest), last=True)
    noise, private = noise_of_nobody(mechanism, users, repeats)
    units = []
    for one, seen in zip(mechanism.groups(users, deterministic(SHAPE)), noise, strict=True):
        distribution = stats.binom(users * one.noise, one.weight / 2**32 / one.cells)
        kurtosis = float(distribution.stats(moments="k"))
        assert np.abs(seen.mean(axis=0)).max() < 6 * distribution.std() / math.sqrt(repeats)
        errors = np.abs(seen.var(axis=0) / distribution.var() - 1)
        assert errors.max() < 6 * math.sqrt((2 + kurtosis) / repeats)
        units.append(seen / distribution.std())
        if one.statistic == "transitions":
            assert private.noise_variance["transitions"] == pytest.approx(
                distribution.var(), rel=1e-6
            )
        else:
            assert private.noise_variance["rewards"] == pytest.approx(
                distribution.mean() / 2, rel=1e-6
            )
    for i, ours in enumerate(units):
        for others in units[:i]:
            assert np.abs(ours.T @ others / repeats).max() < 6 / math.sqrt(repeats)


def _noise(groups, users, name):
    return np.array(
        [
            users * one.noise * one.weight / 2**32 / one.cells
            for one in groups
            if one.statistic == name
        ]
    )


@pytest.mark.parametrize("road", ["release", "reports"])
def test_unbiased_with_the_stated_variances(road):
    """Both roads; rewards and visits of a group are uncorrelated."""
    users, repeats = 30, 200
    mechanism, (episodes, counts) = plan_of(), crowd(30)
    truth = {
        "transitions": counts.row_transitions[:6],
        "rewards": counts.row_rewards - counts.row_visits / 2,
        "visits": counts.row_visits,
        "dropped_out": np.zeros(2),
    }
    seen = {name: [] for name in truth}
    for seed in range(repeats):
        noise = sampler(seed)
        if road == "release":
            private = mechanism.release(counts, sampler=noise)
        else:
            messages = sent(mechanism, episodes, noise)
            private = mechanism.release_reports(messages, users, secure=False)
        seen["transitions"].append(private.row_transitions[:6] - truth["transitions"])
        seen["rewards"].append(private.row_rewards - truth["rewards"])
        seen["visits"].append(private.row_visits - truth["visits"])
        seen["dropped_out"].append(private.dropped_out["rewards"])
    mean = float(mechanism.intensity(users))
    p = {one.statistic: one.weight / 2**32 / one.cells for one in mechanism.groups(users)}
    exact = {
        "transitions": mean * (1 - p["transitions"]),
        "rewards": mean / 2,
        "visits": 2 * mean * (1 - 2 * p["rewards"]),
        "dropped_out": mean * (1 - p["rewards"]),
    }
    stated = mechanism.noise_variance(users)
    for name, variance in exact.items():
        noise = np.array(seen[name])
        assert abs(noise.mean()) < 6 * math.sqrt(variance / noise.size)
        # Errors of an estimated variance: cells of one group are slightly correlated.
        assert noise.var() == pytest.approx(variance, rel=6 * math.sqrt(2.5 / noise.size))
        if name in stated:  # before any data: the limit, which is more
            assert variance < stated[name] < variance / (1 - 2 * max(p.values())) * (1 + 1e-6)
            assert private.noise_variance[name] == pytest.approx(variance, rel=1e-6)
    product = np.array(seen["rewards"]) * np.array(seen["visits"])
    spread = math.sqrt(exact["rewards"] * exact["visits"] / product.size)
    assert abs(product.mean()) < 6 * spread


@pytest.mark.parametrize("secure", [False, True])
def test_noise_of_a_transition_has_its_exact_distribution(secure):
    """Chi-square against the binomial of its class; cells of one release are not independent."""
    shape, users = Shape(states=2, actions=1, horizon=2), 400
    repeats = 300 if secure else 1500
    mechanism = plan_of(shape, trust=Shuffle(2.0, 1e-4, mechanism="histogram"))
    counts = Counts(users, np.zeros(shape.transitions, np.int64), np.zeros(shape.visits, np.int64))
    noise = SecureSampler() if secure else sampler(3)
    one = mechanism.groups(users)[0]
    distribution = stats.binom(users * one.noise, one.weight / 2**32 / one.cells)
    drawn = [mechanism.release(counts, sampler=noise).row_transitions[0, 1] for _ in range(repeats)]
    values = np.rint(np.array(drawn) + distribution.mean()).astype(int)
    edges = np.unique(distribution.ppf(np.linspace(0.03, 0.97, 16)).astype(int))
    expected = np.diff(np.concatenate([[0.0], distribution.cdf(edges), [1.0]])) * repeats
    observed = np.bincount(np.searchsorted(edges, values), minlength=expected.size)
    assert stats.chisquare(observed, expected).pvalue > ALARM


def test_bits_and_groups_of_equal_statistics_are_one_noise():
    """Many rare noise messages: both are nearly Poisson, of the same mean."""
    shape, users = Shape(states=2, actions=2, horizon=6), 10**6
    groups = plan_of(shape, trust=Shuffle(1.0, 1e-6, mechanism="histogram"), last=True)
    bits = Shuffle(1.0, 1e-6, mechanism="bits").calibrate(shape, statistics=BOTH).bits(users)
    one = groups.groups(users)[0]
    ours = stats.binom(users * one.noise, one.weight / 2**32 / one.cells)
    theirs = stats.binom(users * bits.bits, bits.probability)
    assert ours.var() / theirs.var() == pytest.approx(1.0, abs=3e-3)
    values = np.arange(900)
    assert np.abs(ours.pmf(values) - theirs.pmf(values)).sum() / 2 < 0.02


def test_a_trillion_users_cost_what_a_hundred_do():
    mechanism, users = plan_of(trust=Shuffle(1.0, 1e-6, mechanism="histogram")), 10**12
    moves = np.zeros(SHAPE.transitions, np.int64)
    moves[:, 0, 0, 0] = users
    counts = Counts(users, moves, moves.sum(axis=-1))
    private = mechanism.release(counts, sampler=sampler())
    spread = math.sqrt(mechanism.noise_variance(users)["transitions"])
    assert private.noise_variance["transitions"] <= spread**2
    assert private.row_transitions[0, 0] == pytest.approx(users, abs=7 * spread)
    assert abs(private.dropped_out["rewards"]).max() < 7 * spread


def test_visits_of_their_own_and_rewards_alone():
    own = plan_of(statistics=("transitions", "visits", "rewards"))
    variance = own.noise_variance(50)
    assert variance["visits"] == variance["transitions"] == 2 * variance["rewards"]
    _, counts = crowd(50)
    assert own.release(counts, sampler=sampler()).row_visits is not None
    one = plan_of(Shape(states=2, actions=2, horizon=1), statistics=("rewards",))
    assert one.noise_variance(50)["visits"] == 4 * one.noise_variance(50)["rewards"]
    without = plan_of(statistics=("transitions",))
    assert without.release(counts, sampler=sampler()).row_visits is None
    assert "visits" not in without.noise_variance(50)


def test_nothing_to_release_is_refused():
    with pytest.raises(InvalidInputError, match="transitions of one step"):
        plan_of(Shape(states=2, actions=2, horizon=1), statistics=("transitions",))


@pytest.mark.parametrize("honest", [1.0, 0.9, 0.5, 1 / 3])
@pytest.mark.parametrize("users", [7, 100, 12_345, 10**9])
def test_the_reliable_users_alone_add_enough(users, honest):
    mechanism = plan_of(trust=Shuffle(1.0, 1e-6, mechanism="histogram", honest=honest))
    parts = mechanism.trials(users)
    assert sum(part.times for part in parts) == 3
    for part in parts:
        assert (
            mechanism.mean
            <= part.mean
            <= mechanism.mean + Fraction(users, 2**33) + Fraction(1, 10**6)
        )
    mechanism.encoder(users)
    assert ("all users" in mechanism.guarantee.assumptions[1]) == (honest == 1)


def test_groups_in_which_nobody_can_move_ask_for_nothing():
    """A step that the policy cannot reach has no cell but none."""
    mechanism, support = plan_of(), np.ones(SHAPE.visits, np.bool_)
    support[1] = False
    assert sum(part.times for part in mechanism.trials(20, support)) == 2
    _, counts = crowd(20)
    private = mechanism.release(counts, sampler=sampler(), support=support)
    assert private.row_rewards.shape == (6,)


def test_encoders_travel_as_json():
    mechanism, support = plan_of(), deterministic(SHAPE)
    encoder = mechanism.encoder(100, support=support)
    text = json.dumps(encoder.to_dict())
    assert load_encoder(json.loads(text)).traffic == encoder.traffic
    report = load(json.loads(text)).encode(
        {"states": [0, 1, 2], "actions": [0, 0], "rewards": [0.5, 1]}
    )
    assert [len(cells) for cells in report] == [
        one.messages for one in mechanism.groups(100, support)
    ]


def test_a_report_as_bytes_is_counted_like_its_messages():
    mechanism = plan_of()
    encoder = mechanism.encoder(2)
    episode = {"states": [0, 1, 2], "actions": [0, 1], "rewards": [0.0, 1.0]}
    data = [encoder.device.to_bytes(encoder.device.encode(episode)) for _ in range(2)]
    messages = np.concatenate([encoder.from_bytes(each) for each in data])
    private = mechanism.release_reports(messages, 2)
    assert private.guarantee.notion == "SDP"
    with pytest.raises(InvalidInputError, match="otherBatch"):
        mechanism.encoder(3).from_bytes(data[0])


def broken(change):
    mechanism, (episodes, _) = plan_of(), crowd(5)
    messages = sent(mechanism, episodes, sampler())
    return mechanism, change(messages)


def tallied(messages, more=0):
    """How often each message was sent; of the first one, some more."""
    kinds, times = np.unique(messages, axis=0, return_counts=True)
    times[0] += more
    return np.column_stack([kinds, times if more >= 0 else -times])


def test_how_often_each_message_was_sent_says_as_much():
    mechanism, messages = broken(lambda m: m)
    one, two = (mechanism.release_reports(data, 5) for data in (messages, tallied(messages)))
    for name in mechanism.statistics:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m.astype(float), "badReport"),
        (lambda m: m[:, 0], "badReport"),
        (lambda m: [*m.tolist(), [0]], "badReport"),
        (lambda _: None, "badReport"),
        (lambda m: np.hstack([m, m]), "badReport"),
        (lambda m: tallied(m, -1), "badReport"),
        (lambda m: tallied(m, 1 << 62), "badReport"),
        (lambda m: tallied(m, 2), "wrongNumber"),
        (lambda m: m[1:], "wrongNumber"),
        (lambda m: np.vstack([m, m[:1]]), "wrongNumber"),
        (lambda m: m[:0], "wrongNumber"),
        (lambda m: np.vstack([m[1:], [[m[0, 0] ^ 1, 0]]]), "wrongNumber"),
        (lambda m: np.vstack([m[1:], [[99, 0]]]), "unknownGroup"),
        (lambda m: np.vstack([m[1:], [[-1, 0]]]), "unknownGroup"),
        (lambda m: np.vstack([m[1:], [[m[0, 0], 99]]]), "cellOutOfRange"),
        (lambda m: np.vstack([m[1:], [[m[0, 0], -1]]]), "cellOutOfRange"),
    ],
)
def test_malformed_messages_are_refused_by_name(change, reason):
    mechanism, messages = broken(change)
    with pytest.raises(InvalidInputError, match=rf"^{reason}: .*Nothing was released"):
        mechanism.release_reports(messages, 5)


def test_an_early_release_is_refused():
    """Four of five users: their noise is not that of five, and K is that of another batch."""
    mechanism, (episodes, _) = plan_of(), crowd(5)
    encoder = mechanism.encoder(5)
    messages = np.concatenate([encoder.encode(*e, sampler()) for e in episodes[:4]])
    for users in (4, 5):
        with pytest.raises(InvalidInputError, match="wrongNumber"):
            mechanism.release_reports(messages, users)


def test_batches_of_one_of_too_many_and_without_honest_users_are_refused():
    mechanism = plan_of()
    with pytest.raises(InvalidInputError, match="nobody to be mixed with"):
        mechanism.encoder(1)
    with pytest.raises(InvalidInputError, match="nobody to be mixed with"):
        mechanism.release_reports(np.zeros((3, 2), np.int64), 1)
    with pytest.raises(InvalidInputError, match=r"users <= 1e\+12"):
        mechanism.noise_variance(10**12 + 1)
    with pytest.raises(InvalidInputError, match="at least one honest user"):
        plan_of(trust=Shuffle(1.0, 1e-6, mechanism="histogram", honest=0.1)).encoder(9)
    with pytest.raises(CalibrationError, match="delta"):
        plan_of(trust=Shuffle(1.0, 0.0, mechanism="histogram"))


@pytest.mark.parametrize("users", ["5", None, 5.0, True, -1, 0])
def test_users_are_counted_in_integers(users):
    mechanism = plan_of()
    for use in (
        mechanism.encoder,
        lambda n: mechanism.release_reports(np.zeros((3, 2), np.int64), n),
    ):
        with pytest.raises(InvalidInputError, match=r"Expected users"):
            use(users)


@pytest.mark.parametrize(("honest", "least"), [(1.0, 2), (0.9, 2), (0.5, 2), (0.3, 4), (0.01, 100)])
def test_the_least_batch_has_an_honest_user(honest, least):
    mechanism = plan_of(trust=Shuffle(6, 1e-2, honest=honest))
    assert mechanism.min_users == least
    assert mechanism.encoder(least).traffic.messages > 0
    with pytest.raises(InvalidInputError, match=r"honest user|nobody to be mixed with"):
        mechanism.encoder(least - 1)
