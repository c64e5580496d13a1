"""Paths of streams: counts, reports and blocks say the same of the same users."""

import numpy as np
import pytest

from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local
from discreet.privacy.auditing.neighbours import neighbours, opposites
from discreet.privacy.auditing.paths import (
    ADD,
    ADD_REPORT,
    BLOCK,
    DISK,
    WAYS,
    _pooled,
    by_the_rule,
    long_path,
    stream_path,
    stream_paths,
)
from discreet.privacy.auditing.probes import PresetSampler, ScriptedSampler
from discreet.privacy.sampling.samplers import SimulationSampler

SHAPE = Shape(states=2, actions=2, horizon=2)
TINY = Shape(states=1, actions=2, horizon=1)
CENTRAL = Central(1, mechanism="tree-laplace")
LOCAL = Local(1, mechanism="laplace")
ADDITIVE = {"central": CENTRAL, "local": LOCAL}
RANDOMISED = ("randomized-response", "one-step")


def plan_of(trust, episodes=4, shape=SHAPE, **options):
    options = {"statistics": ("visits", "rewards")} | options
    return trust.calibrate(shape, schedule="continual", episodes=episodes, **options)


def still(run, *, secure=False):
    return run(PresetSampler.still(secure=secure))


@pytest.mark.parametrize(
    ("trust", "ways"), [(CENTRAL, [ADD, BLOCK, DISK]), (LOCAL, [ADD, ADD_REPORT, BLOCK])]
)
def test_every_way_that_a_stream_has(trust, ways):
    assert [path.name for path in stream_paths(plan_of(trust))] == ways
    assert list(WAYS) == [ADD, ADD_REPORT, BLOCK, DISK]


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("trust", ADDITIVE.values(), ids=ADDITIVE)
def test_without_noise_all_ways_publish_the_running_sums(trust, stationary):
    plan = plan_of(trust, stationary=stationary)
    usual, other = opposites(SHAPE)
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


def test_reports_are_seen_by_whoever_adds_them_up():
    plan = plan_of(LOCAL)
    added, reported = (still(stream_path(plan, name).base) for name in (ADD, ADD_REPORT))
    assert np.array_equal(reported[: added.size], added)
    usual, _ = opposites(SHAPE)
    report = plan.encoder().encode(
        usual.states, usual.actions, usual.rewards, PresetSampler.still()
    )
    assert np.array_equal(reported[added.size :], np.tile(report.ravel(), 4))


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


# --- long streams --------------------------------------------------------------------------------


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


# --- the rule of blocks --------------------------------------------------------------------------


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("mechanism", ["laplace", *RANDOMISED])
def test_the_rule_of_blocks_is_unbiased(mechanism, stationary):
    """Over many blocks the public counters are the true ones, up to their noise."""
    plan = plan_of(Local(3, mechanism=mechanism), 3, stationary=stationary)
    usual, other = opposites(SHAPE)
    users = [usual.counts(SHAPE), other.counts(SHAPE), usual.counts(SHAPE)]
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
    usual, _ = opposites(SHAPE)
    public = by_the_rule(block, plan, [usual.counts(SHAPE)] * 3)
    integers = public / block.scale + block.centres
    assert np.allclose(integers, np.rint(integers), atol=1e-9)
    assert np.array_equal(public, block.scale * (np.rint(integers) - block.centres))


def test_pooled_counters_are_sums_over_steps():
    plan = plan_of(LOCAL, stationary=True, statistics=("transitions", "visits", "rewards"))
    usual, other = opposites(SHAPE)
    counts = usual.counts(SHAPE) + other.counts(SHAPE)
    names = ("transitions", "visits", "rewards")
    units = np.concatenate([getattr(counts, name).ravel() for name in names])
    expected = np.concatenate([getattr(counts, name).sum(axis=0).ravel() for name in names])
    assert np.array_equal(_pooled(units, plan), expected)
    apart = plan_of(LOCAL, statistics=names)
    assert np.array_equal(_pooled(units, apart), units)
