"""Users, their release and exact regret; both learners on small worlds."""

import itertools
from collections import Counter

import numpy as np
import pytest

import discreet
from discreet._seeds import RunSeeds
from discreet.adversarial import uc_o_reps, uob_lbps
from discreet.adversarial import world as world_users
from discreet.adversarial.learner import update_boxes
from discreet.adversarial.losses import LossSequence, stochastic_losses, switching_losses
from discreet.adversarial.mechanism import LayeredSize, calibrate_layered
from discreet.adversarial.noise import LOSS_UNITS
from discreet.adversarial.occupancy import Boxes
from discreet.adversarial.uob_lbps import estimate_losses
from discreet.adversarial.world import (
    AdversarialSettings,
    LayeredCounters,
    LayeredUsers,
    World,
    add_layered_user,
    expected_loss,
    least_loss,
    make_world,
    no_layered_counts,
)
from discreet.errors import InvalidInputError, UnknownNameError, UnsupportedError
from discreet.mdp import RiverSwim
from discreet.mdp.layered import LayeredMDP
from discreet.privacy.trust import Central, Local, NoPrivacy, Shuffle
from helpers.layers import all_policies, random_layered
from helpers.plain_kernels import midpoints, plainly

MDP = LayeredMDP.from_tabular(RiverSwim(states=3, horizon=3))
RECORD = stochastic_losses(MDP, 20, seed=1, noisy=False)
LOSSES = RECORD.block(0, 20)
UNIFORM = np.full(MDP.shape.visits, 1 / MDP.shape.actions)


def played(trust, feedback, centred=False):
    mechanism = calibrate_layered(
        trust, LayeredSize.of(MDP), 20, feedback=feedback, centred_losses=centred
    )
    world = World(MDP, RECORD, mechanism, RunSeeds(4))
    [(_, episodes)] = world.blocks(AdversarialSettings(), 1.0)
    for k in range(20):
        add_layered_user(episodes.users, k, UNIFORM)
    return episodes.users


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_public_is_raw_plus_noise(feedback):
    users = played(Central(1, 1e-6), feedback)
    for name in ("transitions", "visits"):
        raw, noise = getattr(users.raw, name), getattr(users.noise, name)[-1]
        assert np.array_equal(getattr(users.public, name), raw + noise)
        assert np.abs(noise).max() > 0
    assert users.raw.visits.sum() == 20 * MDP.horizon


def test_without_privacy_the_counts_are_public():
    users = played(NoPrivacy(), "full")
    assert np.array_equal(users.public.visits, users.raw.visits)
    np.testing.assert_allclose(users.public.losses, LOSSES.sum(axis=0))


@pytest.mark.parametrize(("centred", "shift"), [(False, 0.0), (True, 0.5)])
def test_bandit_users_report_the_losses_of_their_path(centred, shift):
    users = played(NoPrivacy(), "bandit", centred)
    expected = np.zeros(MDP.shape.visits)
    for h, (x, a) in enumerate(users.path):
        expected[h, x, a] = LOSSES[-1, h, x, a] - shift
    np.testing.assert_allclose(users.public.losses, expected)
    assert (users.public.losses != 0).sum() == MDP.horizon


def test_private_losses_are_rounded_to_units_and_others_are_not():
    assert np.array_equal(played(NoPrivacy(), "full").reported, LOSSES)
    reported = played(Central(1, 1e-6), "full").reported
    assert np.array_equal(reported * LOSS_UNITS, np.rint(reported * LOSS_UNITS))
    assert np.abs(reported - LOSSES).max() <= 0.5 / LOSS_UNITS


def test_padding_stays_empty():
    users = played(Central(1, 1e-6), "full")
    absent = ~np.asarray(MDP.present)
    assert not users.public.visits[absent].any()


WIDTHS = np.array([1, 2, 1])
SIZE = (2, 2, 2, 2)
"""(H, W, A, W), padded to the widest layer."""
REAL = np.zeros(SIZE[:3], bool)
REAL[0, 0], REAL[1] = True, True


def transitions():
    """Quarters; the last step has one state to go to."""
    model = np.zeros(SIZE)
    model[0, 0] = [[0.25, 0.75], [1.0, 0.0]]
    model[1, :, :, 0] = 1.0
    return model


def users_of(count, *, full, shift=0.0, uniforms=None, noisy=True):
    rng = np.random.default_rng(6)
    noise = LayeredCounters(
        rng.integers(-9, 9, (count, *SIZE)).astype(float) * noisy,
        rng.integers(-9, 9, (count, *SIZE[:3])).astype(float) * noisy,
        rng.integers(-9, 9, (count, *SIZE[:3])) / 1024 * noisy,
    )
    return LayeredUsers(
        transitions=transitions(),
        widths=WIDTHS,
        reported=rng.integers(0, 1025, (count, *SIZE[:3])) / 1024 * REAL,
        uniforms=rng.random((count, 2, 2)) if uniforms is None else np.array(uniforms),
        noise=noise,
        raw=no_layered_counts(SIZE),
        public=no_layered_counts(SIZE),
        path=np.zeros((2, 2), np.int64),
        full=full,
        shift=shift,
    )


POLICY = np.array([[[0.5, 0.5], [0.5, 0.5]], [[0.25, 0.75], [1.0, 0.0]]])


@pytest.mark.parametrize("weights", [[1, 3, 4], [0, 8, 0], [8, 0, 0], [3, 0, 5]])
def test_an_index_is_drawn_with_its_probability(weights):
    probabilities = np.array(weights) / 8
    drawn = Counter(world_users._draw.py_func(probabilities, 3, u) for u in midpoints(64))
    assert drawn == {i: 8 * w for i, w in enumerate(weights) if w}


def test_rounding_falls_on_the_last_index_that_is_possible():
    almost = np.array([0.5, 0.5 - 1e-9, 0.0, 1.0])
    assert world_users._draw.py_func(almost, 3, 1 - 1e-12) == 1
    assert world_users._draw.py_func(np.zeros(3), 3, 0.5) == 0


def test_indices_beyond_the_layer_are_never_drawn():
    padded = np.array([0.25, 0.25, 0.5])
    assert world_users._draw.py_func(padded, 2, 0.9) == 1


def exact_paths():
    exact = Counter()
    for a, y, b in itertools.product(range(2), repeat=3):
        exact[a, y, b] += POLICY[0, 0, a] * transitions()[0, 0, a, y] * POLICY[1, y, b]
    return {path: p for path, p in exact.items() if p}


def test_episodes_have_exactly_the_distribution_of_policy_and_model(monkeypatch):
    plainly(monkeypatch, world_users)
    found = Counter()
    for draws in itertools.product(midpoints(4), repeat=3):
        uniforms = [[draws[:2], [draws[2], 0.5]]]
        users = users_of(1, full=True, uniforms=uniforms)
        world_users.add_layered_user(users, 0, POLICY)
        (_, a), (y, b) = users.path
        found[int(a), int(y), int(b)] += 4.0**-3
    assert dict(found) == exact_paths()


def test_a_user_is_counted_along_her_path(monkeypatch):
    plainly(monkeypatch, world_users)
    users = users_of(5, full=True)
    visits, moves = np.zeros(SIZE[:3]), np.zeros(SIZE)
    for k in range(5):
        world_users.add_layered_user(users, k, POLICY)
        states = [*users.path[:, 0], 0]
        for h, (x, a) in enumerate(users.path):
            visits[h, x, a] += 1
            moves[h, x, a, states[h + 1]] += 1
    assert np.array_equal(users.raw.visits, visits)
    assert np.array_equal(users.raw.transitions, moves)
    assert users.raw.visits[~REAL].sum() == 0
    assert users.raw.visits[0, 0].sum() == 5


def test_counts_are_public_with_the_noise_of_their_time(monkeypatch):
    plainly(monkeypatch, world_users)
    users = users_of(4, full=True)
    for k in range(4):
        world_users.add_layered_user(users, k, POLICY)
        for name in ("transitions", "visits"):
            raw, noise = getattr(users.raw, name), getattr(users.noise, name)[k]
            assert np.array_equal(getattr(users.public, name), raw + noise)


def test_with_full_information_losses_add_up(monkeypatch):
    plainly(monkeypatch, world_users)
    users = users_of(4, full=True)
    for k in range(4):
        world_users.add_layered_user(users, k, POLICY)
        expected = users.reported[: k + 1].sum(axis=0)
        assert np.array_equal(users.raw.losses, expected)
        assert np.array_equal(users.public.losses, expected + users.noise.losses[k])


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_bandit_losses_are_those_of_the_path_and_of_this_episode(monkeypatch, shift):
    plainly(monkeypatch, world_users)
    users = users_of(4, full=False, shift=shift)
    for k in range(4):
        world_users.add_layered_user(users, k, POLICY)
        expected = users.noise.losses[k].copy()
        for h, (x, a) in enumerate(users.path):
            expected[h, x, a] += users.reported[k, h, x, a] - shift
        assert np.array_equal(users.public.losses, expected)
    assert not users.raw.losses.any()  # nothing of an episode is kept


def test_without_noise_the_public_counts_are_the_raw_ones_in_arrays_of_their_own(monkeypatch):
    plainly(monkeypatch, world_users)
    users = users_of(3, full=True, noisy=False)
    for k in range(3):
        world_users.add_layered_user(users, k, POLICY)
    for raw, public in zip(users.raw, users.public, strict=True):
        assert np.array_equal(raw, public)
        assert not np.shares_memory(raw, public)


def test_before_the_first_user_everything_is_zero():
    counters = no_layered_counts((3, 4, 2, 4))
    assert [array.shape for array in counters] == [(3, 4, 2, 4), (3, 4, 2), (3, 4, 2)]
    assert not any(array.any() for array in counters)


LEARNERS = {"private-uc-o-reps": uc_o_reps.run, "private-uob-lbps": uob_lbps.run}


@pytest.mark.core
def test_the_comparator_is_the_best_of_all_fixed_policies():
    mdp = random_layered(0)
    total = stochastic_losses(mdp, 50, seed=1).total()
    values = [expected_loss(mdp.transitions, p, total) for p in all_policies(mdp)]
    assert least_loss(mdp.transitions, total) == pytest.approx(min(values))


@pytest.mark.parametrize("name", LEARNERS)
def test_regret_is_exact_and_beats_the_uniform_policy(name):
    mdp, episodes = random_layered(1), 3000
    losses = stochastic_losses(mdp, episodes, seed=2)
    result = LEARNERS[name](
        mdp, NoPrivacy(), episodes, RunSeeds(0), losses=losses, constants="practical"
    )
    assert result.regret.episodes[-1] == episodes
    assert result.extras["largest_gap"] < 1e-6
    assert result.final_regret < 0.5 * result.extras["uniform_regret"]
    uniform = np.full(mdp.shape.visits, 0.5)
    first = losses.block(0, 1)[0]
    start = expected_loss(mdp.transitions, uniform, first)
    assert result.regret.values[0] == pytest.approx(start - least_loss(mdp.transitions, first))


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("trust", [Central(5.0, 1e-6), Central(5.0), Local(20.0)])
def test_every_trust_model_runs_with_its_certificate(name, trust):
    mdp = random_layered(2)
    result = discreet.learn(
        RiverSwim(states=3, horizon=3), learner=name, trust=trust, episodes=300, losses="switching"
    )
    assert result.guarantee.notion == trust.notion and result.guarantee.epsilon == trust.epsilon
    assert result.extras["largest_gap"] < 1e-6
    assert result.learner == name
    again = LEARNERS[name](mdp, trust, 200, RunSeeds(3, 1), losses="drifting")
    same = LEARNERS[name](mdp, trust, 200, RunSeeds(3, 1), losses="drifting")
    np.testing.assert_array_equal(again.regret.values, same.regret.values)
    np.testing.assert_array_equal(again.policy.probabilities, same.policy.probabilities)


def zero_losses(estimator, episodes=4000):
    mdp = LayeredMDP.from_tabular(RiverSwim(states=4, horizon=6))
    nothing = stochastic_losses(mdp, episodes, means=np.zeros(mdp.shape.visits))
    result = uob_lbps.run(
        mdp, Central(1.0), episodes, RunSeeds(0), losses=nothing, loss_estimator=estimator,
        constants="theory",
    )  # fmt: skip
    return float(result.policy.probabilities.max(axis=-1)[mdp.present].mean())


def test_zero_losses_leave_the_centred_policy_near_uniform():
    assert zero_losses("centred") < 0.6


def test_zero_losses_make_the_printed_policy_collapse():
    assert zero_losses("paper") > 0.8


@pytest.mark.core
def test_estimators_by_hand():
    noise, loss = np.array([[[-3.0, 0.25]]]), np.array([[[0.0, 0.5]]])  # of the pair visited
    bounds, widths, out = np.array([[[0.5, 0.25]]]), np.array([1, 1]), np.zeros((1, 1, 2))
    estimate_losses(noise + loss - [[[0.0, 0.5]]], bounds, widths, 2.0, True, out)
    np.testing.assert_allclose(out, [[[-2.5 / 0.5, 0.25 / 0.25]]])
    estimate_losses(noise + loss, bounds, widths, 2.0, False, out)
    np.testing.assert_allclose(out, [[[0.0, (2.75 / 5) / 0.25]]])


@pytest.mark.core
def test_confidence_boxes_by_hand():
    shape = (1, 2, 1, 2)
    counts = no_layered_counts(shape)
    counts.transitions[0, 0, 0], counts.visits[0, 0, 0] = (30.0, 70.0), 100.0
    boxes = Boxes(np.array([1, 2]), np.zeros(shape), np.zeros(shape))
    update_boxes(counts, 0.0, 2.0, 1.0, boxes)
    width = np.sqrt(2 * 0.3 * 0.7 * 2 / 100) + 14 / 100
    np.testing.assert_allclose(boxes.lower[0, 0, 0], [0.3 - width, 0.7 - width])
    np.testing.assert_allclose(boxes.upper[0, 0, 0], [0.3 + width, min(0.7 + width, 1)])
    # with E = 8: consistent counts (30, 70), then 8/4 each, as (5.2) says
    update_boxes(counts, 8.0, 2.0, 1e-9, boxes)
    np.testing.assert_allclose(boxes.lower[0, 0, 0], [32 / 104, 72 / 104], atol=1e-6)
    counts.visits[:] = counts.transitions[:] = 0
    update_boxes(counts, 0.0, 2.0, 1.0, boxes)
    np.testing.assert_array_equal(boxes.lower[0, 0, 0], [0, 0])
    # the whole beta_k: (4E + 7 ln iota)/N~ outside of the root, N~ with the E/2 of (5.2)
    counts.transitions[0, 0, 0], counts.visits[0, 0, 0] = (30_000.0, 70_000.0), 100_000.0
    update_boxes(counts, 8.0, 2.0, 1.0, boxes)
    N, P = 100_004, np.array([30_002, 70_002]) / 100_004
    beta = np.sqrt(2 * P * (1 - P) * 2 / N) + (4 * 8 + 7 * 2) / N
    np.testing.assert_allclose(boxes.upper[0, 0, 0] - boxes.lower[0, 0, 0], 2 * beta)
    # literally: the root of (3.1) over both terms
    update_boxes(counts, 8.0, 2.0, 1.0, boxes, True)
    beta = np.sqrt(2 * P * (1 - P) * 2 / N + (4 * 8 + 7 * 2) / N)
    np.testing.assert_allclose(boxes.upper[0, 0, 0] - boxes.lower[0, 0, 0], 2 * beta)


def test_true_transitions_stay_inside_the_boxes():
    """Lemma 3.1 on a private stream: the true P is in every box (failure < 1e-6 here)."""
    mdp = random_layered(5)
    world = make_world(
        mdp, Central(1.0, 1e-6), 400, RunSeeds(0), AdversarialSettings(),
        feedback="full", losses="stochastic",
    )  # fmt: skip
    uniform = np.full(mdp.shape.visits, 0.5)
    boxes = Boxes(
        mdp.widths.copy(), np.zeros(mdp.shape.transitions), np.ones(mdp.shape.transitions)
    )
    for _, episodes in world.blocks(AdversarialSettings(), 1.0):
        for k in range(len(episodes.losses)):
            add_layered_user(episodes.users, k, uniform)
            update_boxes(episodes.users.public, episodes.errors[k], world.log_iota, 1.0, boxes)
            inside = (boxes.lower <= mdp.transitions + 1e-12) & (
                mdp.transitions <= boxes.upper + 1e-12
            )
            assert inside[mdp.transitions > 0].all()


class Constant(LossSequence):
    def __init__(self, mdp, episodes, loss):
        self.mdp, self.episodes, self.loss = mdp, episodes, loss

    def _losses(self, first, last):
        return np.full((last - first, *self.mdp.shape.visits), self.loss)


@pytest.mark.core
@pytest.mark.parametrize("name", LEARNERS)
def test_bad_input_gets_one_clear_sentence(name):
    mdp, run = random_layered(0), LEARNERS[name]
    with pytest.raises(InvalidInputError, match="more episodes than pairs"):
        run(mdp, NoPrivacy(), 14, RunSeeds(0))
    with pytest.raises(InvalidInputError, match=r"losses in \[0, 1\], got 1\.5 in episode 0"):
        run(mdp, NoPrivacy(), 100, RunSeeds(0), losses=Constant(mdp, 100, 1.5))
    with pytest.raises(InvalidInputError, match=r"losses in \[0, 1\], got nan in episode 0"):
        run(mdp, NoPrivacy(), 100, RunSeeds(0), losses=Constant(mdp, 100, np.nan))
    with pytest.raises(InvalidInputError, match="a sequence of 50"):
        run(mdp, NoPrivacy(), 100, RunSeeds(0), losses=stochastic_losses(mdp, 50))
    other = random_layered(0, widths=(1, 2, 3, 1))
    with pytest.raises(InvalidInputError, match="widths"):
        run(mdp, NoPrivacy(), 100, RunSeeds(0), losses=switching_losses(other, 100))
    with pytest.raises(InvalidInputError, match="losses"):
        run(mdp, NoPrivacy(), 100, RunSeeds(0), losses="kind")
    with pytest.raises(UnknownNameError, match="did you mean 'confidence'"):
        run(mdp, NoPrivacy(), 100, RunSeeds(0), confidense=1.0)
    with pytest.raises(InvalidInputError, match="rate > 0"):
        run(mdp, NoPrivacy(), 100, RunSeeds(0), rate=-1.0)
    with pytest.raises(UnsupportedError, match="shuffle"):
        discreet.learn(
            RiverSwim(states=3, horizon=3), learner=name, trust=Shuffle(1.0, 1e-6), episodes=100
        )


def test_public_losses_carry_no_loss_noise():
    mdp = random_layered(3)
    private, public = (
        uc_o_reps.run(
            mdp, Central(1.0, 1e-6), 1500, RunSeeds(0), public_losses=flag, constants="practical"
        )
        for flag in (False, True)
    )
    assert public.final_regret < private.final_regret
    assert any("public" in text for text in public.guarantee.assumptions)
