"""Noise that is thrown into cells: what is read off a path, and what that is worth."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet import Shuffle
from discreet.auditing import categories, pairs
from discreet.auditing.categories import CategorySampler, read
from discreet.auditing.pairs import exact_delta
from discreet.auditing.paths import REPORTS, Path, batch_path, honest_path
from discreet.errors import UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.shuffle_curves import group_delta
from helpers.auditing import categorical

TINY = Shape(states=1, actions=2, horizon=1)
EASY = Shuffle(epsilon=3, delta=1e-3, mechanism="histogram")


def thrown_delta(balls, out, into, epsilon):
    """By the definition, cell by cell."""
    total = 0.0
    for a in range(balls + 1):
        for b in range(balls + 1 - a):
            rest = balls - a - b
            mass = math.comb(balls, a) * math.comb(balls - a, b)
            mass *= out**a * into**b * (1 - out - into) ** rest
            ratio = b * out / ((a + 1) * into)
            total += mass * max(0.0, 1 - math.exp(epsilon) * ratio)
    return total


@pytest.mark.parametrize(("out", "into"), [(0.2, 0.2), (0.1, 0.6), (0.5, 0.25), (0.5, 0.5)])
def test_a_thrown_ball_hides_as_calculated(out, into):
    pair = pairs.thrown(9, out, into)
    for epsilon in (0.0, 0.8):
        exact = thrown_delta(9, out, into, epsilon)
        assert exact_delta([(pair, 1)], epsilon) == pytest.approx(exact, abs=1e-12)


def test_a_cell_that_no_ball_hits_hides_nothing():
    assert pairs.thrown(9, 0.5, 0.0).unseen == 1.0


def test_samplers_of_categories_count_in_any_order():
    drawn = np.array([2, 0, 3])
    sampler = CategorySampler({0: drawn, 1: drawn})
    values = sampler.table(np.array([1, 1, 2]), 5)
    np.testing.assert_array_equal(np.bincount(values), drawn)
    np.testing.assert_array_equal(sampler.scatter(5, 0.75, 2), drawn[1:])
    assert [group.draws for group in sampler.groups] == [5, 5]
    np.testing.assert_allclose(sampler.groups[1].probabilities, [0.25, 0.375, 0.375])
    assert sorted(sampler.permutation(4)) == [0, 1, 2, 3]
    with pytest.raises(UnsupportedError, match="counted by their categories"):
        sampler.discrete_gaussian(1.0, 3)


def view_of(statistics=("visits",), users=2, shape=TINY, trust=EASY):
    plan = trust.calibrate(shape, statistics=statistics, last_transitions=False)
    return plan, categorical(plan, users)


def test_release_and_reports_are_one_multinomial():
    """Both roads hide a unit with all users' noise, in the cells of the class."""
    plan, released = view_of()
    reported = read(batch_path(plan, REPORTS, 2))
    [part] = plan.trials(2)
    for view in (released, reported):
        [group] = view.groups
        assert group.draws == part.trials
        assert group.probabilities[1:] == pytest.approx([float(part.probability)] * 3)
        assert view.delta(3.0) == pytest.approx(group_delta(part, 3.0), rel=1e-6)


def test_only_the_honest_hide_anybody():
    plan, _ = view_of(trust=Shuffle(epsilon=3, delta=1e-3, mechanism="histogram", honest=0.5))
    view = read(honest_path(plan, 1, 2))
    assert view.groups[0].draws == plan.trials(2)[0].trials
    assert 1.5 < view.epsilon(1e-3) <= 3.0


def test_rewards_and_transitions_move_one_unit_per_class():
    plan, view = view_of(("transitions", "rewards"), shape=Shape(1, 2, 2), users=3)
    assert max(len(view.units(i)) for i in range(len(view.moves))) == 3
    assert 2.7 < view.epsilon(1e-3) <= 3.0
    off = read(batch_path(plan, REPORTS, 2, on_policy=True))
    assert [len(off.units(i)) for i in range(len(off.moves))] == [3]


def test_moments_are_those_of_the_real_sampler():
    plan, view = view_of(("rewards",))
    means, spreads = view.moments()
    [part] = plan.trials(2)
    variance = stats.binom(part.trials, float(part.probability)).var()
    assert spreads.max() == pytest.approx(math.sqrt(2 * variance), rel=0.3)
    assert (means[spreads == 0] == 0).all()


def path_of(base, other):
    return Path("toy", "batch", base, {"other": other})


def test_what_carries_no_noise_has_no_epsilon():
    def world(value):
        return lambda sampler: np.r_[sampler.scatter(40, 1.0, 2), value].astype(float)

    assert read(path_of(world(0), world(1))).epsilon(1e-3) == math.inf


def test_noise_that_depends_on_data_is_no_noise():
    def world(balls):
        return lambda sampler: sampler.scatter(balls, 1.0, 2).astype(float)

    with pytest.raises(UnsupportedError, match="depends on the data"):
        read(path_of(world(40), world(41)))


def test_products_of_noise_are_not_taken_for_sums():
    def world(sampler):
        seen = sampler.scatter(40, 0.5, 2).astype(float)
        return np.array([seen[0] * seen[1]])

    with pytest.raises(UnsupportedError, match="counted by their categories"):
        read(path_of(world, world))


def test_bits_that_betray_what_was_added_are_found():
    """Floating-point sums in which the order of data and noise shows."""

    def world(unit):
        def run(sampler):
            noise = sampler.scatter(3, 0.5, 2)
            data = np.array([1 - unit, unit])
            return (0.1 * data + 0.2 * data) + 0.3 * noise

        return run

    path = path_of(world(0), world(1))
    view = read(path)
    assert not categories.trades(path, view)

    def whole(unit):
        return lambda sampler: 0.3 * (sampler.scatter(3, 0.5, 2) + np.array([1 - unit, unit]))

    path = path_of(whole(0), whole(1))
    assert categories.trades(path, read(path))
