"""A running stream: used in one way, refused before anything changes, stamped with its noise."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.trust import Central, Local
from helpers.sampling import sampler

SHAPE = Shape(states=2, actions=2, horizon=2)


def user(users=1):
    transitions, rewards = np.zeros(SHAPE.transitions, np.int64), np.zeros(SHAPE.visits, np.int64)
    transitions[:, 0, 0, 0] = users
    return Counts(users, transitions, rewards)


def stream(trust=None, **options):
    mechanism = (trust or Central(1)).calibrate(SHAPE, schedule="continual", episodes=4, **options)
    return mechanism.open(sampler())


def test_a_block_of_additive_noise_has_nothing_else():
    block = stream().block(3)
    assert block.noise.shape == (3, stream().mechanism.cells)
    assert block.gains.size == block.steps.size == block.centres.size == 0
    assert block.scale == 1.0


def test_users_and_blocks_see_the_same_noise():
    one, other = stream(), stream()
    noise = one.block(4).noise
    for k in range(4):
        seen = other.add(user())
        parts = [seen.transitions, seen.visits, seen.rewards]
        flat = np.concatenate([part.ravel() for part in parts])
        raw = (k + 1) * user().visits
        assert np.array_equal(seen.visits - raw, noise[k][16:24].reshape(SHAPE.visits))
        assert flat.size == noise.shape[1]


@pytest.mark.parametrize(("first", "then"), [("add", "block"), ("block", "add")])
def test_a_stream_that_was_used_in_one_way_refuses_the_other(first, then):
    running = stream()
    use = {"add": lambda: running.add(user()), "block": lambda: running.block(1)}
    use[first]()
    with pytest.raises(UnsupportedError, match=f"through `{first}`; open another one"):
        use[then]()
    use[first]()
    assert running.episode == 2


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (lambda: user(2), "user"),
        (lambda: Counts.zeros(Shape(3, 2, 2)), "shape|Expected"),
    ],
)
def test_what_is_no_single_user_is_refused_and_not_counted(counts, said):
    running = stream()
    with pytest.raises(InvalidInputError, match=said):
        running.add(counts())
    assert running.episode == 0


def test_releases_are_stamped_as_simulated_and_counted():
    running = stream()
    released = [running.add(user()) for _ in range(3)]
    assert [r.users for r in released] == [1, 2, 3]
    assert all(r.guarantee.simulated for r in released)


def test_only_local_streams_take_reports():
    assert stream(Local(1, mechanism="laplace")).mechanism.takes_reports
    running = stream()
    assert not running.mechanism.takes_reports
    with pytest.raises(UnsupportedError, match="takes raw counts, not reports"):
        running.add_report(np.zeros((1, 4), np.int64))


def test_reports_add_up():
    running = stream(Local(1e6, mechanism="laplace"))  # as good as no noise
    encoder = running.mechanism.encoder()
    episode = (np.zeros(3, int), np.zeros(2, int), np.zeros(2))
    for _ in range(4):
        seen = running.add_report(encoder.encode(*episode, sampler()))
    assert np.array_equal(seen.visits, 4 * user().visits)
    with pytest.raises(InvalidInputError, match="calibrate a longer stream"):
        running.add_report(encoder.encode(*episode, sampler()))
