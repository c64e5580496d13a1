"""Exact privacy from matrices whose answer is known."""

import math

import numpy as np
import pytest

from discreet.auditing import pairs
from discreet.auditing.additive import Additive
from discreet.auditing.pairs import exact_delta, exact_epsilon
from discreet.auditing.probes import Noise
from discreet.errors import UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local
from discreet.privacy.accounting.closed_forms import gaussian_epsilon
from helpers.auditing import additive, bitwise
from helpers.properties import given, settings, st

TINY = Shape(states=1, actions=2, horizon=1)
LAPLACE, GAUSS = Noise("laplace", 4.0), Noise("gaussian", 5.0)
BITS = Noise("binomial", 0.25, trials=30)


def seen(noise, response, *moves):
    response = np.array(response, float)
    noises = noise if isinstance(noise, tuple) else (noise,) * response.shape[1]
    return Additive(noises, response, tuple(np.array(m, float) for m in moves))


@pytest.mark.parametrize("noise", [LAPLACE, GAUSS, BITS])
def test_noise_of_its_own_composes_the_shifts(noise):
    delta = 1e-3
    found = seen(noise, np.eye(3), [1, -1, 0]).curve(0.5, delta)
    views = [(noise.pair(1), 1), (noise.pair(-1), 1)]
    assert found[0] == pytest.approx(exact_epsilon(views, delta))
    assert found[1] == pytest.approx(exact_delta(views, 0.5))


def test_epsilon_and_delta_by_themselves():
    view = seen(LAPLACE, np.eye(2), [1, 1])
    assert view.epsilon(0.0) == pytest.approx(0.5)
    assert view.delta(0.25) == pytest.approx(exact_delta([(pairs.laplace(4.0), 2)], 0.25))


@pytest.mark.parametrize("noise", [LAPLACE, GAUSS, BITS])
def test_a_combination_without_noise_is_no_privacy(noise):
    shared = seen(noise, [[1], [1]], [1, -1])
    assert shared.curve(1.0, 1e-6) == (math.inf, 1.0)
    assert seen(noise, [[1], [0]], [0, 1]).epsilon(1e-6) == math.inf


def test_shared_noise_hides_what_moves_together():
    assert seen(LAPLACE, [[1], [1]], [1, 1]).epsilon(0.0) == pytest.approx(0.25)


def test_what_does_not_move_needs_no_noise():
    assert seen(LAPLACE, np.eye(2), [0, 0]).curve(1.0, 0.0) == (0.0, 0.0)
    assert seen(LAPLACE, [[1, 0], [0, 1], [0, 0]], [1, 0, 0]).epsilon(0.0) == pytest.approx(0.25)


def test_the_worst_of_all_neighbours_counts():
    view = seen(LAPLACE, np.eye(3), [1, 0, 0], [1, 1, 1], [0, 1, 0])
    assert view.epsilon(0.0) == pytest.approx(0.75)
    back = seen(LAPLACE, np.eye(3), [0, 1, 0], [3, 0, 0], [1, 1, 0])
    assert back.epsilon(0.0) == pytest.approx(0.75)


def test_noise_that_is_not_symmetric_is_looked_at_both_ways():
    """Rare bits: falling by one is dearer than rising by one."""
    ways = [exact_delta([(BITS.pair(s), 1)], 0.3) for s in (1, -1)]
    assert ways[0] != pytest.approx(ways[1], rel=0.05)
    for move in ([1], [-1]):
        assert seen(BITS, [[1]], move).delta(0.3) == pytest.approx(max(ways))


@pytest.mark.parametrize("copies", [2, 5])
def test_the_same_number_released_again_and_again(copies):
    """Fresh noise every time: losses add up (Laplace), deviations shrink (Gaussian)."""
    eye, moves = np.eye(copies), [1] * copies
    assert seen(LAPLACE, eye, moves).epsilon(0.0) == pytest.approx(copies / 4)
    fine = Noise("gaussian", 1e6)
    found = seen(fine, eye, [1e5] * copies).epsilon(1e-6)
    assert found == pytest.approx(gaussian_epsilon(1.0, 0.1 * math.sqrt(copies), 1e-6), rel=1e-6)


def test_more_draws_than_outputs_gaussian():
    """Two draws on one number: deviations add up in squares."""
    found = seen(GAUSS, [[1, 1]], [1]).epsilon(1e-3)
    assert found == pytest.approx(gaussian_epsilon(1.0, 1 / (5 * math.sqrt(2)), 1e-3), rel=1e-9)


def test_more_draws_than_outputs_laplace_are_a_bound():
    """The cheapest way to explain the move by draws: the wider of the two."""
    view = seen((Noise("laplace", 4.0), Noise("laplace", 8.0)), [[1, 1]], [1])
    epsilon, delta = view.curve(1.0, 0.0)
    assert epsilon == pytest.approx(1 / 8)
    assert delta == 0.0
    assert math.isnan(view.curve(0.01, 0.0)[1])  # below the bound nothing is known


def test_weights_of_draws_count():
    assert seen(LAPLACE, [[2, 0], [0, 2]], [2, 2]).epsilon(0.0) == pytest.approx(0.5)
    assert seen(GAUSS, [[0.5]], [1]).epsilon(1e-3) == pytest.approx(
        exact_epsilon([(pairs.gaussian(5.0, 2), 1)], 1e-3)
    )


def test_mixtures_of_bits_and_laplace_are_refused():
    view = seen((LAPLACE, BITS), [[1, 1]], [1])
    with pytest.raises(UnsupportedError, match="Laplace and Gaussian"):
        view.epsilon(0.0)


def test_different_distributions_on_different_numbers():
    view = seen((LAPLACE, Noise("laplace", 8.0)), np.eye(2), [1, 1])
    assert view.epsilon(0.0) == pytest.approx(1 / 4 + 1 / 8)


# --- shifts --------------------------------------------------------------------------------------


def test_the_shifts_behind_a_move():
    view = seen(LAPLACE, np.tril(np.ones((3, 3))), [1, 1, 1], [0, 1, 2])
    assert view.integer_shifts(0).tolist() == [1, 0, 0]
    assert view.integer_shifts(1).tolist() == [0, 1, 1]
    assert np.allclose(view.shifts(1), [0, 1, 1])
    assert view.one_to_one


def test_moves_that_no_integers_explain():
    view = seen(LAPLACE, [[2]], [1])
    assert view.integer_shifts(0) is None
    assert view.shifts(0) == pytest.approx([0.5])
    assert seen(LAPLACE, [[1], [1]], [1, -1]).shifts(0) is None


def test_where_several_draws_are_summed_no_shift_is_the_one():
    assert not seen(LAPLACE, [[1, 1]], [2]).one_to_one
    assert seen(LAPLACE, [[1, 1]], [2]).integer_shifts(0) is None
    table = Noise("table", 1.0, table=(np.ones(9) / 9).tobytes())
    assert seen(table, [[1, 1]], [2]).integer_shifts(0).tolist() == [1, 1]


@given(st.lists(st.integers(-3, 3), min_size=4, max_size=4), st.permutations(range(4)))
def test_the_order_of_numbers_does_not_matter(move, order):
    plain = seen(LAPLACE, np.eye(4), move).epsilon(0.0)
    shuffled = np.eye(4)[list(order)]
    assert plain == pytest.approx(sum(map(abs, move)) / 4, abs=1e-12)
    assert seen(LAPLACE, shuffled, shuffled @ move).epsilon(0.0) == pytest.approx(plain, abs=1e-12)


@settings(max_examples=20)
@given(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=5))
def test_no_neighbour_is_overlooked(moves):
    """Neighbours that others cover are left out, and only those."""
    together = seen(GAUSS, np.eye(3), *moves).epsilon(1e-3)
    apart = max(seen(GAUSS, np.eye(3), move).epsilon(1e-3) for move in moves)
    assert together == pytest.approx(apart, rel=1e-9, abs=1e-12)


# --- plans ---------------------------------------------------------------------------------------


def test_the_main_path_of_a_plan():
    plan = Central(epsilon=1).calibrate(TINY, statistics=("visits",))
    view = additive(plan)
    assert view.epsilon(0.0) == pytest.approx(1.0)
    assert {noise.scale for noise in view.noises} == {plan.noise.scale}


def test_streams_of_randomised_data_have_no_main_path():
    plan = Local(1, mechanism="randomized-response").calibrate_stream(TINY, episodes=2)
    with pytest.raises(UnsupportedError, match="randomises the data"):
        additive(plan)
    with pytest.raises(UnsupportedError, match="randomises the data"):
        bitwise(plan)
