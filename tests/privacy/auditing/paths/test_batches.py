"""Paths of batches: counts, reports, simulated users; one user is replaced and nobody else."""

import numpy as np
import pytest

from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle
from discreet.privacy.auditing.neighbours import EVERYTHING, OFF_POLICY, neighbours, opposites
from discreet.privacy.auditing.paths import (
    BATCH_WAYS,
    _histogram,
    batch_path,
    batch_paths,
    honest_path,
)
from discreet.privacy.auditing.probes import PresetSampler

SHAPE = Shape(states=2, actions=2, horizon=2)
TRUSTS = {
    "central": Central(1),
    "local": Local(1, mechanism="laplace"),
    "shuffle": Shuffle(2, 1e-3, mechanism="bits"),
    "one-step": Local(1, mechanism="one-step"),
}


@pytest.fixture(scope="module", params=TRUSTS)
def plan(request):
    return TRUSTS[request.param].calibrate(SHAPE)


def ways(plan):
    return list(dict.fromkeys(path.name for path in batch_paths(plan)))


def still(run, *, secure=False):
    return run(PresetSampler.still(secure=secure))


def visited(published, shape=SHAPE):
    """The transitions at the beginning of what `release` publishes."""
    size = np.prod(shape.transitions)
    return published[:size].reshape(shape.transitions)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("central", ["release", "simulate"]),
        ("local", ["release", "simulate", "release_reports"]),
        ("shuffle", ["release", "simulate", "release_reports"]),
        ("one-step", ["simulate", "release_reports"]),
    ],
)
def test_every_way_that_a_plan_has(name, expected):
    assert ways(TRUSTS[name].calibrate(SHAPE)) == expected
    assert list(BATCH_WAYS) == ["release", "simulate", "release_reports"]


def test_alone_and_in_a_crowd_with_and_without_a_policy(plan):
    found = [(path.name, path.note, tuple(path.neighbours)) for path in batch_paths(plan, 3)]
    notes = [""] if plan.guarantee.notion == "LDP" else ["", "3 users"]
    assert found == [
        (name, note, labels)
        for name in ways(plan)
        for note in notes
        for labels in (tuple(neighbours(SHAPE)), (OFF_POLICY,))
    ]


def test_kinds_and_draws_that_may_follow_data(plan):
    for path in batch_paths(plan):
        local = plan.guarantee.notion == "LDP"
        assert path.kind == "batch"
        assert path.simulated == (local and path.name != "release_reports")


def test_without_noise_the_true_counts_are_published():
    central = TRUSTS["central"].calibrate(SHAPE)
    usual, other = opposites(SHAPE)
    path = batch_path(central, "release", 4)
    expected = 3 * usual.counts(SHAPE).transitions
    assert np.array_equal(visited(still(path.base)), expected + usual.counts(SHAPE).transitions)
    there = still(path.neighbours[EVERYTHING])
    assert np.array_equal(visited(there), expected + other.counts(SHAPE).transitions)


@pytest.mark.parametrize("users", [1, 2, 5])
def test_released_and_simulated_users_are_the_same_ones(users):
    central = TRUSTS["central"].calibrate(SHAPE)
    released, simulated = (batch_path(central, name, users) for name in ("release", "simulate"))
    assert np.array_equal(still(released.base), still(simulated.base))
    for label, run in released.neighbours.items():
        assert np.array_equal(still(run), still(simulated.neighbours[label]))


def test_reports_add_up_to_what_is_released():
    shuffle = TRUSTS["shuffle"].calibrate(SHAPE)
    released, reported = (batch_path(shuffle, name, 3) for name in ("release", "release_reports"))
    alone = still(released.base)
    assert np.array_equal(still(reported.base)[-alone.size :], alone)


def test_messages_are_seen_as_numbers_per_counter():
    messages = np.array([[0, 1], [2, 0], [0, 0], [0, 1], [2, 1]])
    assert _histogram(messages).tolist() == [3, 0, 2, 2, 0, 1]


def test_the_order_of_messages_is_not_seen():
    messages = np.random.default_rng(0).integers(0, 2, (20, 2))
    assert np.array_equal(_histogram(messages), _histogram(messages[::-1]))


def test_reports_of_local_users_are_seen_themselves():
    local = TRUSTS["local"].calibrate(SHAPE)
    path = batch_path(local, "release_reports", 1)
    usual, _ = opposites(SHAPE)
    report = local.encoder(1).encode(
        usual.states, usual.actions, usual.rewards, PresetSampler.still()
    )
    seen = still(path.base)
    assert np.array_equal(seen[: report.size], report.ravel())


@pytest.mark.parametrize("name", ["release", "simulate"])
def test_who_leaves_the_policy_counts_as_nothing(name):
    central = TRUSTS["central"].calibrate(SHAPE)
    path = batch_path(central, name, 2, on_policy=True)
    usual, _ = opposites(SHAPE)
    one = usual.counts(SHAPE).transitions
    assert np.array_equal(visited(still(path.base)), 2 * one)
    assert np.array_equal(visited(still(path.neighbours[OFF_POLICY])), one)
    assert list(path.neighbours) == [OFF_POLICY]


def test_runs_leave_their_data_alone():
    """The same run twice, the neighbours in between: nothing is used up or overwritten."""
    for path in batch_paths(TRUSTS["shuffle"].calibrate(SHAPE), 2):
        first = still(path.base)
        for run in path.neighbours.values():
            still(run)
        assert np.array_equal(first, still(path.base))


def test_only_honest_users_draw():
    trust = Shuffle(2, 1e-3, honest=0.5, mechanism="bits")
    plan = trust.calibrate(SHAPE)
    drawn = []
    for honest in (1, 2, 4):
        sampler = PresetSampler.still()
        path = honest_path(plan, honest, 4)
        path.base(sampler)
        drawn.append(len(sampler.laws))
        assert path.label == f"release_reports ({honest} of 4 honest)"
        assert path.kind == "honest"
    assert drawn[1] == 2 * drawn[0] and drawn[2] == 4 * drawn[0] > 0


def test_the_user_who_is_replaced_is_honest():
    """Her noise is her own: she is the first of the honest ones."""
    plan = Shuffle(2, 1e-3, honest=0.5, mechanism="bits").calibrate(SHAPE)
    path = honest_path(plan, 2, 4)
    gap = still(path.neighbours[EVERYTHING]) - still(path.base)
    usual, other = (user.counts(SHAPE) for user in opposites(SHAPE))
    moved = np.abs(usual.transitions - other.transitions).sum()
    assert moved > 0
    size = np.prod(SHAPE.transitions)
    tail = gap[-(size + 2 * np.prod(SHAPE.visits) + 4 + np.prod(SHAPE.visits)) :]
    assert np.abs(tail[:size]).sum() == moved


def test_users_of_one_batch_are_counted_once():
    central = TRUSTS["central"].calibrate(SHAPE)
    path = batch_path(central, "simulate", 3)
    assert still(path.base)[np.prod(SHAPE.transitions) + 2 * np.prod(SHAPE.visits)] == 3


def test_counts_that_are_handed_over_are_copies(monkeypatch):
    central = TRUSTS["central"].calibrate(SHAPE)
    path = batch_path(central, "release", 2)
    first = still(path.base)
    kept = type(central).release

    def spoil(self, counts, **options):
        released = kept(self, counts, **options)
        counts.transitions[...] = 99
        return released

    monkeypatch.setattr(type(central), "release", spoil)
    assert np.array_equal(still(path.base), first)
    assert np.array_equal(still(path.base), first)
