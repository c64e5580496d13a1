"""Paths: every public way from users to what is published, one of them replaced."""

from typing import get_args

import numpy as np
import pytest

from discreet.auditing.additive import probe
from discreet.auditing.neighbours import (
    EVERYTHING,
    OFF_POLICY,
    everything,
    neighbours,
    opposites,
)
from discreet.auditing.paths import (
    ADD,
    BATCH_WAYS,
    BLOCK,
    KINDS,
    WAYS,
    Kind,
    _histogram,
    _pooled,
    batch_path,
    batch_paths,
    by_the_rule,
    furthest,
    honest_path,
    long_path,
    main_path,
    stream_path,
    stream_paths,
    vector_paths,
)
from discreet.auditing.probes import PresetSampler, ScriptedSampler
from discreet.errors import UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.vectors import calibrate_vectors
from helpers import toys
from helpers.auditing import batch_of

pytestmark = pytest.mark.core


def test_the_kinds_are_those_of_the_type():
    assert get_args(Kind) == KINDS


@pytest.mark.parametrize(("note", "label"), [("", "toy"), ("3 users", "toy (3 users)")])
def test_labels(note, label):
    assert toys.toy(toys.laplace, path={"note": note}).label == label


def test_some_of_the_neighbours():
    path = toys.toy(toys.laplace, near=(1, 0), far=(9, 9), path={"note": "n", "releases": 4})
    near = path.only("near", "nobody")
    assert list(near.neighbours) == ["near"]
    assert near.neighbours["near"] is path.neighbours["near"]
    assert (near.label, near.releases, near.base) == (path.label, 4, path.base)
    assert list(path.neighbours) == ["near", "far"]


def test_both_samplers_unless_said_otherwise():
    path = toys.toy(toys.laplace)
    assert path.secure == (False, True)
    assert path.thorough and not path.blocks and not path.simulated and path.window is None


# The plain path of a plan: release, or add.
SHAPE = Shape(states=2, actions=2, horizon=1)


@pytest.mark.parametrize("users", [1, 4])
@pytest.mark.parametrize("trust", [Central(1), Shuffle(2, 1e-3, mechanism="bits")], ids=repr)
def test_batches_are_released(trust, users):
    plan = trust.calibrate(SHAPE)
    path = main_path(plan, users)
    assert (path.name, path.kind) == ("release", "batch")
    usual, _ = opposites(SHAPE)
    by_hand = plan.release(batch_of(usual, users, SHAPE), sampler=PresetSampler.still())
    assert np.array_equal(path.base(PresetSampler.still()), everything(by_hand))


def test_streams_are_added_to_from_beginning_to_end():
    plan = Central(1).calibrate_stream(SHAPE, episodes=5)
    path = main_path(plan)
    assert (path.name, path.kind, path.releases) == ("add", "continual", 5)


def test_streams_that_randomise_have_no_plain_path():
    plan = Local(1, mechanism="one-step").calibrate_stream(SHAPE, episodes=2)
    with pytest.raises(UnsupportedError, match="instead of adding noise"):
        main_path(plan)


# Paths of batches: counts, reports, simulated users; one user is replaced and nobody else.
BATCH = Shape(states=2, actions=2, horizon=2)
BITS = Shuffle(2, 1e-3, mechanism="bits").calibrate(BATCH)
TRUSTS = {
    "central": Central(1),
    "local": Local(1),
    "shuffle": Shuffle(2, 1e-3, mechanism="bits"),
}


@pytest.fixture(scope="module", params=TRUSTS)
def plan(request):
    return TRUSTS[request.param].calibrate(BATCH)


def ways(plan):
    return list(dict.fromkeys(path.name for path in batch_paths(plan)))


def still(run, *, secure=False):
    return run(PresetSampler.still(secure=secure))


def visited(published, shape=BATCH):
    """The transitions at the beginning of what `release` publishes."""
    size = np.prod(shape.transitions)
    return published[:size].reshape(shape.transitions)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("central", ["release", "simulate"]),
        ("local", ["simulate", "release_reports"]),
        ("shuffle", ["release", "simulate", "release_reports"]),
    ],
)
def test_every_way_that_a_plan_has(name, expected):
    assert ways(TRUSTS[name].calibrate(BATCH)) == expected
    assert list(BATCH_WAYS) == ["release", "simulate", "release_reports"]


def test_alone_and_in_a_crowd_with_and_without_a_policy(plan):
    found = [(path.name, path.note, tuple(path.neighbours)) for path in batch_paths(plan, 3)]
    notes = [""] if plan.guarantee.notion == "LDP" else ["", "3 users"]
    assert found == [
        (name, note, labels)
        for name in ways(plan)
        for note in notes
        for labels in (tuple(neighbours(BATCH)), (OFF_POLICY,))
    ]


def test_kinds_and_draws_that_may_follow_data(plan):
    for path in batch_paths(plan):
        local = plan.guarantee.notion == "LDP"
        assert path.kind == "batch"
        assert path.simulated == (local and path.name != "release_reports")


def test_without_noise_the_true_counts_are_published():
    central = TRUSTS["central"].calibrate(BATCH)
    usual, other = opposites(BATCH)
    path = batch_path(central, "release", 4)
    expected = 3 * usual.counts(BATCH).transitions
    assert np.array_equal(visited(still(path.base)), expected + usual.counts(BATCH).transitions)
    there = still(path.neighbours[EVERYTHING])
    assert np.array_equal(visited(there), expected + other.counts(BATCH).transitions)


@pytest.mark.parametrize("users", [1, 2, 5])
def test_released_and_simulated_users_are_the_same_ones(users):
    central = TRUSTS["central"].calibrate(BATCH)
    released, simulated = (batch_path(central, name, users) for name in ("release", "simulate"))
    assert np.array_equal(still(released.base), still(simulated.base))
    for label, run in released.neighbours.items():
        assert np.array_equal(still(run), still(simulated.neighbours[label]))


def test_reports_add_up_to_what_is_released():
    shuffle = TRUSTS["shuffle"].calibrate(BATCH)
    released, reported = (batch_path(shuffle, name, 3) for name in ("release", "release_reports"))
    alone = still(released.base)
    assert np.array_equal(still(reported.base)[-alone.size :], alone)


def test_messages_are_seen_as_numbers_per_counter():
    messages = np.array([[0, 1], [2, 0], [0, 0], [0, 1], [2, 1]])
    assert _histogram(messages, BITS, None).tolist() == [3, 0, 2, 2, 0, 1]


def test_the_order_of_messages_is_not_seen():
    messages = np.random.default_rng(0).integers(0, 2, (20, 2))
    assert np.array_equal(_histogram(messages, BITS, None), _histogram(messages[::-1], BITS, None))


def test_reports_of_local_users_are_seen_themselves():
    local = TRUSTS["local"].calibrate(BATCH)
    path = batch_path(local, "release_reports", 1)
    usual, _ = opposites(BATCH)
    report = local.encoder(1).encode(
        usual.states, usual.actions, usual.rewards, PresetSampler.still()
    )
    seen = still(path.base)
    assert np.array_equal(seen[: report.size], report.ravel())


@pytest.mark.parametrize("name", ["release", "simulate"])
def test_who_leaves_the_policy_counts_as_nothing(name):
    central = TRUSTS["central"].calibrate(BATCH)
    path = batch_path(central, name, 2, on_policy=True)
    usual, _ = opposites(BATCH)
    one = usual.counts(BATCH).transitions
    assert np.array_equal(visited(still(path.base)), 2 * one)
    assert np.array_equal(visited(still(path.neighbours[OFF_POLICY])), one)
    assert list(path.neighbours) == [OFF_POLICY]


def test_runs_leave_their_data_alone():
    """The same run twice, the neighbours in between: nothing is used up or overwritten."""
    for path in batch_paths(TRUSTS["shuffle"].calibrate(BATCH), 2):
        first = still(path.base)
        for run in path.neighbours.values():
            still(run)
        assert np.array_equal(first, still(path.base))


def test_only_honest_users_draw():
    trust = Shuffle(2, 1e-3, honest=0.5, mechanism="bits")
    plan = trust.calibrate(BATCH)
    drawn = []
    for honest in (1, 2, 4):
        sampler = PresetSampler.still()
        path = honest_path(plan, honest, 4)
        path.base(sampler)
        drawn.append(len(sampler.noises))
        assert path.label == f"release_reports ({honest} of 4 honest)"
        assert path.kind == "honest"
    assert drawn[1] == 2 * drawn[0] and drawn[2] == 4 * drawn[0] > 0


def test_the_user_who_is_replaced_is_honest():
    """Her noise is her own: she is the first of the honest ones."""
    plan = Shuffle(2, 1e-3, honest=0.5, mechanism="bits").calibrate(BATCH)
    path = honest_path(plan, 2, 4)
    gap = still(path.neighbours[EVERYTHING]) - still(path.base)
    usual, other = (user.counts(BATCH) for user in opposites(BATCH))
    moved = np.abs(usual.transitions - other.transitions).sum()
    assert moved > 0
    size = np.prod(BATCH.transitions)
    tail = gap[-(size + 2 * np.prod(BATCH.visits) + 4 + np.prod(BATCH.visits)) :]
    assert np.abs(tail[:size]).sum() == moved


def test_users_of_one_batch_are_counted_once():
    central = TRUSTS["central"].calibrate(BATCH)
    path = batch_path(central, "simulate", 3)
    assert still(path.base)[np.prod(BATCH.transitions) + 2 * np.prod(BATCH.visits)] == 3


def test_counts_that_are_handed_over_are_copies(monkeypatch):
    central = TRUSTS["central"].calibrate(BATCH)
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


# Paths of streams: counts, reports and blocks say the same of the same users.
STREAM = Shape(states=2, actions=2, horizon=2)
TINY = Shape(states=1, actions=2, horizon=1)
CENTRAL = Central(1, mechanism="tree-laplace")
LOCAL = Local(1, mechanism="laplace")
ADDITIVE = {"central": CENTRAL, "local": LOCAL}
RANDOMISED = ("randomized-response", "one-step")


def plan_of(trust, episodes=4, shape=STREAM, **options):
    options = {"statistics": ("visits", "rewards")} | options
    return trust.calibrate_stream(shape, episodes=episodes, **options)


@pytest.mark.parametrize("trust", [CENTRAL, LOCAL])
def test_every_way_that_a_stream_has(trust):
    assert [path.name for path in stream_paths(plan_of(trust))] == list(WAYS) == [ADD, BLOCK]


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("trust", ADDITIVE.values(), ids=ADDITIVE)
def test_without_noise_all_ways_publish_the_running_sums(trust, stationary):
    plan = plan_of(trust, stationary=stationary)
    usual, other = opposites(STREAM)
    users = [usual, other, usual, usual]
    sums = np.cumsum([counters(user, plan) for user in users], axis=0)
    for path in stream_paths(plan):
        seen = still(path.neighbours["everything, user 2"])
        assert np.array_equal(seen[: sums.size].reshape(sums.shape), sums)
        assert (path.releases, path.cells) == (4, plan.cells)
        assert path.kind == ("stationary" if stationary else "continual")


def counters(user, plan):
    counts = user.counts(plan.shape)
    parts = [getattr(counts, name) for name in plan.statistics]
    return np.concatenate([(p.sum(axis=0) if plan.stationary else p).ravel() for p in parts])


def test_the_stream_says_what_it_says_besides():
    """After the releases: users and stated noise of the first and of the last one."""
    plan = plan_of(CENTRAL)
    seen = still(stream_path(plan, ADD).base)
    rest = seen[4 * plan.cells :]
    first, last = np.split(rest, 2)
    assert (first[0], last[0]) == (1, 4)
    assert first[1] == plan.noise_variance(1)["rewards"]
    assert last[1] == plan.noise_variance(4)["rewards"]


@pytest.mark.parametrize("episodes", [1, 3, 20, 40])
def test_sixteen_releases_are_watched_at_most(episodes):
    path = stream_path(plan_of(CENTRAL, episodes, TINY), ADD)
    assert path.releases == min(16, episodes)
    places = [label for label in path.neighbours if label.startswith("everything")]
    assert places == [f"everything, user {k + 1}" for k in range(path.releases)]
    assert len(path.neighbours) == path.releases + len(neighbours(TINY)) - 1


def test_blocks_are_marked_and_both_samplers_asked():
    for path in stream_paths(plan_of(CENTRAL)):
        assert path.blocks == (path.name == BLOCK)
        assert path.secure == (False, True)
        assert path.window is None


@pytest.mark.parametrize("mechanism", RANDOMISED)
def test_of_randomised_streams_one_user_is_enumerated(mechanism):
    plan = plan_of(Local(1, mechanism=mechanism), shape=TINY, statistics=("rewards",))
    path = stream_path(plan, ADD)
    assert path.releases == 2
    assert path.secure == (True,)
    first, last = path.window
    sampler = ScriptedSampler([], secure=True)
    path.base(sampler)
    assert 0 < first < last == sampler.draws  # the second of two users draws last
    assert all(label.endswith("user 2") for label in path.neighbours)


@pytest.mark.parametrize("mechanism", RANDOMISED)
def test_a_stream_of_one_user_is_enumerated_whole(mechanism):
    plan = plan_of(Local(1, mechanism=mechanism), 1, TINY, statistics=("rewards",))
    path = stream_path(plan, ADD)
    assert (path.releases, path.window, path.secure) == (1, None, (False, True))


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize(("episodes", "places"), [(300, (1, 64, 201)), (100, (1, 64))])
def test_long_streams_replace_early_and_late_users(episodes, places, secure):
    plan = plan_of(CENTRAL, episodes, TINY, statistics=("visits",))
    path = long_path(plan, ADD, secure=secure)
    assert path.releases == min(256, episodes)
    assert list(path.neighbours) == [f"everything, user {place}" for place in places]
    assert path.secure == (secure,) and not path.thorough
    assert path.note == f"{path.releases} releases, {'secure' if secure else 'simulated'}"


def test_a_long_stream_is_published_to_its_end():
    plan = plan_of(CENTRAL, 260, TINY, statistics=("visits",))
    seen = still(long_path(plan, BLOCK, secure=False).base).reshape(256, 2)
    assert np.array_equal(seen[:, 0], np.arange(1, 257))
    late = still(long_path(plan, BLOCK, secure=False).neighbours["everything, user 201"])
    assert late.reshape(256, 2)[-1].tolist() == [255, 1]
    assert late.reshape(256, 2)[199].tolist() == [200, 0]


@pytest.mark.parametrize("mechanism", RANDOMISED)
def test_long_randomised_streams_enumerate_one_user_in_the_middle(mechanism):
    plan = plan_of(Local(1, mechanism=mechanism), 260, TINY, statistics=("rewards",))
    path = long_path(plan, ADD, secure=True)
    assert list(path.neighbours) == ["everything, user 129"]
    first, last = path.window
    each = last - first
    assert first == 128 * each > 0  # everybody draws as much as she does


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("mechanism", ["laplace", *RANDOMISED])
def test_the_rule_of_blocks_is_unbiased(mechanism, stationary):
    """Over many blocks the public counters are the true ones, up to their noise."""
    plan = plan_of(Local(3, mechanism=mechanism), 3, stationary=stationary)
    usual, other = opposites(STREAM)
    users = [usual.counts(STREAM), other.counts(STREAM), usual.counts(STREAM)]
    rng, runs = np.random.default_rng(0), 600
    seen = np.array(
        [
            by_the_rule(plan.open(SimulationSampler(rng)).block(3), plan, users)[-1]
            for _ in range(runs)
        ]
    )
    truth = 2 * counters(usual, plan) + counters(other, plan)
    errors = seen.std(axis=0) / np.sqrt(runs)
    assert (np.abs(seen.mean(axis=0) - truth) <= 6 * errors + 1e-9).all()


@pytest.mark.parametrize("mechanism", RANDOMISED)
def test_what_is_public_is_a_function_of_integers(mechanism):
    plan = plan_of(Local(1, mechanism=mechanism), 3)
    block = plan.open(SimulationSampler(np.random.default_rng(1))).block(3)
    usual, _ = opposites(STREAM)
    public = by_the_rule(block, plan, [usual.counts(STREAM)] * 3)
    integers = public / block.scale + block.centres
    assert np.allclose(integers, np.rint(integers), atol=1e-9)
    assert np.array_equal(public, block.scale * (np.rint(integers) - block.centres))


def test_pooled_counters_are_sums_over_steps():
    plan = plan_of(LOCAL, stationary=True, statistics=("transitions", "visits", "rewards"))
    usual, other = opposites(STREAM)
    counts = usual.counts(STREAM) + other.counts(STREAM)
    names = ("transitions", "visits", "rewards")
    units = np.concatenate([getattr(counts, name).ravel() for name in names])
    expected = np.concatenate([getattr(counts, name).sum(axis=0).ravel() for name in names])
    assert np.array_equal(_pooled(units, plan), expected)
    apart = plan_of(LOCAL, statistics=names)
    assert np.array_equal(_pooled(units, apart), units)


# Paths of vector streams: users as far apart as the plan's reach allows, and no further.
TRUST = Central(1, mechanism="tree-laplace")


def vectors_of(units, pile=1, cells=4, episodes=3):
    return calibrate_vectors(
        TRUST, {"losses": cells}, Sensitivity(units=units, pile=pile), episodes=episodes
    )


@pytest.mark.parametrize(
    ("units", "pile", "cells"), [(4, 1, 4), (4, 2, 4), (8, 2, 4), (2, 1, 4), (6, 3, 2), (4, 1, 9)]
)
def test_users_are_as_far_apart_as_the_reach_allows(units, pile, cells):
    usual, others = furthest(vectors_of(units, pile, cells))
    distance = np.abs(usual - others["everything"])
    assert distance.sum() == units
    assert distance.max() <= pile
    assert all(np.abs(usual - other).sum() <= units for other in others.values())
    assert all(user.min() >= 0 and user.max() <= pile for user in (usual, *others.values()))


def test_full_and_empty_where_one_user_may_fill_everything():
    usual, others = furthest(vectors_of(4))
    assert usual.tolist() == [1, 1, 1, 1]
    assert others["everything"].tolist() == [0, 0, 0, 0]
    assert others["one cell only"].tolist() == [1, 1, 1, 0]


def test_different_cells_where_the_reach_is_half_up_and_half_down():
    usual, others = furthest(vectors_of(4, cells=9))
    assert usual.tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert others["everything"].tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 1]
    assert not others["nothing"].any()


def test_every_user_is_replaced_at_every_place():
    paths = list(vector_paths(vectors_of(4)))
    assert [path.name for path in paths] == [ADD, BLOCK]
    for path in paths:
        assert list(path.neighbours) == [
            f"{label}, user {place}"
            for label in ("everything", "one cell only")
            for place in (1, 2, 3)
        ]
        assert (path.releases, path.cells, path.kind) == (3, 4, "vector")
        assert path.blocks == (path.name == BLOCK)


def test_no_more_releases_are_watched_than_there_are():
    assert [path.releases for path in vector_paths(vectors_of(4, episodes=3), watch=2)] == [
        2,
        2,
    ]
    assert [path.releases for path in vector_paths(vectors_of(4, episodes=9))] == [6, 6]


def test_notes():
    assert next(vector_paths(vectors_of(4))).note == "sensitivity 4"
    assert next(vector_paths(vectors_of(4, 2))).note == "sensitivity 4, 2 in one cell"


def test_cumulative_sums_are_published():
    usual, others = furthest(vectors_of(4))
    for path in vector_paths(vectors_of(4)):
        seen = still(path.base).reshape(3, 4)
        assert np.array_equal(seen, np.cumsum([usual] * 3, axis=0))
        second = still(path.neighbours["everything, user 2"]).reshape(3, 4)
        users = [usual, others["everything"], usual]
        assert np.array_equal(second, np.cumsum(users, axis=0))


def test_both_ways_deliver_the_same_epsilon():
    found = [probe(path).epsilon(0.0) for path in vector_paths(vectors_of(4))]
    assert found == pytest.approx([1.0, 1.0])
