"""Runs in lockstep: the same algorithms, exact noise, runs that do not see each other."""

import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy, learn
from discreet._seeds import RunSeeds
from discreet.errors import DiscreetError
from discreet.learners.streams.ldp_obi import LdpObi
from discreet.learners.streams.lockstep import all_regrets, run_lockstep
from discreet.learners.streams.loop import CompiledRun, make_learner
from discreet.learners.streams.psrl import LdpPsrl
from discreet.learners.streams.ucbvi import Ucbvi
from discreet.mdp import RandomMDP, RiverSwim
from discreet.mdp.planning import RegretMeter
from discreet.privacy.mechanisms._lane_noise import alias_table
from discreet.privacy.plans import unflatten
from discreet.privacy.streams import lane_users_kernels
from discreet.privacy.streams.lane_kernels import add_laplace, draw_table
from discreet.privacy.streams.lane_users_kernels import run_lanes
from discreet.privacy.streams.simulation import no_counts

LAPLACE = Local(2, mechanism="laplace")
MDP = RandomMDP(states=2, actions=2, horizon=2)


def rotate(x, k):
    return (x << np.uint64(k)) | (x >> np.uint64(64 - k))


class Streams:
    """Plain xoshiro256++, one generator per element."""

    def __init__(self, seeds, purpose, width):
        self.s = list(
            seeds.sequence(purpose).generate_state(4 * width, np.uint64).reshape(4, width)
        )

    def words(self):
        s0, s1, s2, s3 = self.s
        out = rotate(s0 + s3, 23) + s0
        t = s1 << np.uint64(17)
        s2, s3 = s2 ^ s0, s3 ^ s1
        self.s = [s0 ^ s3, s1 ^ s2, s2 ^ t, rotate(s3, 45)]
        return out

    def uniforms(self, words=None):
        words = self.words() if words is None else words
        return (words >> np.uint64(12)) * 2.0**-52 + 2.0**-53

    def laplace(self, scale):
        words = self.words()
        sign = np.where(words & np.uint64(1), 1, -1)
        tail = self.uniforms(words) * (1 + np.exp(-1 / scale)) / 2
        return sign * np.maximum(0, np.floor(-scale * np.log(tail)))


class OneByOne:
    """The generator of one lane's ties, as the reference learner asks it."""

    def __init__(self, seeds):
        self.streams = Streams(seeds, "policy", 1)

    def random(self):
        return float(self.streams.uniforms()[0])


def step_by_step(mdp, seeds, episodes, constants):
    """The reference learner on the random numbers of one lane."""
    S, A, H = 2, 2, 2
    noise, world = (
        Streams(seeds, "noise", S * A * (S + 2)),
        Streams(seeds, "environment", 2 * H + 1),
    )
    learner = make_learner(
        LdpObi, mdp, LAPLACE, episodes, OneByOne(seeds), {"constants": constants}
    )
    counts, total = no_counts(learner.plan), np.zeros(S * A * (S + 2))
    meter, regrets = RegretMeter(mdp), []
    for k in range(1, episodes + 1):
        policy = learner.next_policy(counts)
        regrets.append(meter.regret(policy))
        u = world.uniforms()
        s = int((u[0] >= np.cumsum(mdp.initial)[:-1]).sum())
        for h in range(H):
            a = policy.actions[h, s]
            t = int((u[1 + 2 * h] >= np.cumsum(mdp.transitions[h, s, a])[:-1]).sum())
            i = s * A + a
            total[i * S + t] += 1
            total[S * A * S + i] += 1
            total[S * A * (S + 1) + i] += u[2 + 2 * h] < mdp.rewards[h, s, a]
            s = t
        total += noise.laplace(learner.plan.noise.law.scale)
        counts = unflatten(total.copy(), learner.plan, k, secure=False)
    return np.cumsum(regrets)


@pytest.mark.parametrize("constants", ["theory", "practical"])
def test_a_lane_is_the_printed_algorithm(constants):
    """With practical constants unknown pairs, hence ties, come and go for long."""
    seeds = [RunSeeds(5, run) for run in range(3)]
    results = run_lockstep(LdpObi, [MDP] * 3, LAPLACE, 400, seeds, constants=constants)
    expected = step_by_step(MDP, seeds[1], 400, constants)
    curve = results[1].regret
    np.testing.assert_allclose(curve.values, expected[curve.episodes - 1], atol=1e-9)
    assert len(np.unique(np.diff(expected).round(9))) > 1


def test_a_run_does_not_depend_on_the_others():
    seeds = [RunSeeds(5, run) for run in range(4)]
    together = run_lockstep(LdpObi, [MDP] * 4, LAPLACE, 1000, seeds)
    alone = run_lockstep(LdpObi, [MDP], LAPLACE, 1000, seeds[2:3])
    assert (alone[0].regret.values == together[2].regret.values).all()


@pytest.mark.parametrize(
    ("kind", "trust"),
    [
        (LdpObi, LAPLACE),
        (LdpObi, NoPrivacy()),
        (LdpPsrl, LAPLACE),
        (LdpPsrl, NoPrivacy()),
        (Ucbvi, NoPrivacy()),
    ],
)
def test_the_law_is_that_of_the_plain_loop(kind, trust):
    """Mean final regret of 300 runs each way: equal within 5.5 standard errors."""
    seeds, episodes = [RunSeeds(9, run) for run in range(300)], 200
    together = run_lockstep(kind, [MDP] * 300, trust, episodes, seeds)
    task = {"learner": kind.name, "trust": trust, "episodes": episodes, "seed": 8}
    plain = [learn(MDP, **task, run=run, stationary=True) for run in range(300)]
    a, b = (np.array([r.regret.values[-1] for r in group]) for group in (together, plain))
    error = np.sqrt(a.var() / 300 + b.var() / 300)
    assert error > 0
    assert abs(a.mean() - b.mean()) < 5.5 * error
    assert together[0].guarantee == plain[0].guarantee


@pytest.mark.parametrize("scale", [0.6, 6.0])
def test_the_noise_is_discrete_laplace(scale):
    width, rounds = 1000, 300
    state = np.random.SeedSequence(7).generate_state(4 * width, np.uint64).reshape(4, width)
    parts = [row.copy() for row in state]
    drawn = np.zeros((rounds, width))
    for row in drawn:
        add_laplace(*parts, scale, row)
    q = np.exp(-1 / scale)
    values = np.arange(-6, 7)
    probability = (1 - q) / (1 + q) * q ** np.abs(values)
    observed = (drawn.ravel() == values[:, None]).sum(axis=1)
    expected = probability * drawn.size
    chi2 = ((observed - expected) ** 2 / expected).sum()
    assert chi2 < 60  # 13 cells: exceeded with probability below 1e-7
    assert abs(drawn.var() / (2 * q / (1 - q) ** 2) - 1) < 0.03


def test_every_policy_is_tabulated():
    table = all_regrets(MDP)
    assert len(table) == 16
    assert table.min() == 0


def test_what_lockstep_cannot_do_gets_one_sentence():
    seeds = [RunSeeds(0)]
    with pytest.raises(DiscreetError, match="one by one"):
        run_lockstep(LdpObi, [RiverSwim(states=4, horizon=6)], LAPLACE, 10, seeds)
    with pytest.raises(DiscreetError, match="got 'toeplitz' under JDP; run others one by one"):
        run_lockstep(LdpObi, [MDP], Central(2, 1e-6), 10, seeds)
    with pytest.raises(DiscreetError, match="neither clip Q values nor add the correction term"):
        run_lockstep(Ucbvi, [MDP], NoPrivacy(), 10, seeds, constants="theory")
    with pytest.raises(DiscreetError, match="one MDP per seed"):
        run_lockstep(LdpObi, [MDP, MDP], LAPLACE, 10, seeds)


RANDOMISERS = [
    LAPLACE,
    Local(2, 0.1, mechanism="gaussian"),
    Local(2, 0.1, mechanism="bounded"),
    Local(2, mechanism="randomized-response"),
    Local(20, mechanism="randomized-response"),
    Local(2, mechanism="one-step"),
    NoPrivacy(),
]


def released_in_lockstep(trust, runs, episodes):
    """Counters that the learner sees after all episodes, ``[runs, cells]``."""
    seen = []

    def keep(*arguments):
        run_lanes(*arguments)
        seen[:] = [arguments[2].public.table.T.copy()]

    kernel = pytest.MonkeyPatch()
    kernel.setattr(lane_users_kernels, "run_lanes", keep)
    run_lockstep(LdpObi, [MDP] * runs, trust, episodes, [RunSeeds(3, run) for run in range(runs)])
    kernel.undo()
    return seen[0]


def released_one_by_one(trust, runs, episodes):
    rows = []
    for run in range(runs):
        seeds = RunSeeds(4, run)
        learner = make_learner(LdpObi, MDP, trust, episodes, seeds.generator("policy"), {})
        world = CompiledRun(MDP, learner, seeds)
        for _ in world.blocks():
            pass
        rows.append(world.stream.public.everything.copy())
    return np.array(rows)


@pytest.mark.parametrize("trust", RANDOMISERS, ids=str)
def test_released_counters_have_the_law_of_the_plain_loop(trust):
    """Mean, spread and the correlation of counters, each within 5.5 standard errors."""
    runs, episodes = 300, 40
    ours, plain = released_in_lockstep(trust, runs, episodes), released_one_by_one(trust, runs, 40)
    assert ours.shape == plain.shape == (runs, 16)
    centre, spread = plain.mean(axis=0), plain.std(axis=0) + 1e-9
    a, b = (ours - centre) / spread, (plain - centre) / spread
    for power in (lambda x: x, lambda x: x**2, lambda x: x * np.roll(x, 1, axis=1)):
        one, two = power(a), power(b)
        error = np.sqrt((one.var(axis=0) + two.var(axis=0)) / runs)
        assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 5.5 * error + 1e-9).all()


@pytest.mark.parametrize("trust", RANDOMISERS, ids=str)
@pytest.mark.parametrize("kind", [LdpObi, LdpPsrl])
def test_any_company_gives_the_same_run(kind, trust):
    seeds = [RunSeeds(5, run) for run in range(5)]
    together = run_lockstep(kind, [MDP] * 5, trust, 300, seeds)
    alone = run_lockstep(kind, [MDP], trust, 300, seeds[3:4])
    assert (alone[0].regret.values == together[3].regret.values).all()
    assert alone[0].guarantee == together[3].guarantee


def test_an_alias_table_has_its_weights():
    weights = np.array([0.5, 3.0, 0.01, 2.0, 1.49])
    cut, other = alias_table(weights)
    mass = cut.copy()
    np.add.at(mass, other.astype(int), 1 - cut)
    np.testing.assert_allclose(mass / len(cut), weights / weights.sum())


def test_draws_from_a_table_have_its_weights():
    weights = np.array([1.0, 5.0, 2.0, 2.0])
    width, rounds = 1000, 100
    state = np.random.SeedSequence(7).generate_state(4 * width, np.uint64).reshape(4, width)
    parts, drawn = [row.copy() for row in state], np.zeros((rounds, width))
    for row in drawn:
        draw_table(*parts, *alias_table(weights), row)
    observed = np.bincount(drawn.ravel().astype(int), minlength=4)
    expected = weights / weights.sum() * drawn.size
    assert ((observed - expected) ** 2 / expected).sum() < 40  # 4 cells: below 1e-7
