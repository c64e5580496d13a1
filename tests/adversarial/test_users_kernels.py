"""Users of a layered MDP: exact laws on tiny layers, counters and losses against plain NumPy."""

import itertools
from collections import Counter

import numpy as np
import pytest

from discreet.adversarial import world as world_users
from discreet.adversarial.world import (
    LayeredCounters,
    LayeredUsers,
    no_layered_counts,
)
from helpers.plain_kernels import midpoints, plainly

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
    law = Counter()
    for a, y, b in itertools.product(range(2), repeat=3):
        law[a, y, b] += POLICY[0, 0, a] * transitions()[0, 0, a, y] * POLICY[1, y, b]
    return {path: p for path, p in law.items() if p}


def test_episodes_have_exactly_the_law_of_policy_and_model(monkeypatch):
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
