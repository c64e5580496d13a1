"""Policy elimination: maximisation over the active set against HiGHS, and the time of a stage."""

import time

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_array, csr_array, eye_array, kron

from benchmarks.measure import package, row, spent
from discreet._seeds import RunSeeds
from discreet.learners.elimination.active_set import ImplicitActiveSet
from discreet.learners.learn import make_batch_learner, public_facts
from discreet.learners.registry import get_learner
from discreet.mdp import RiverSwim, sample_counts
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.trust import NoPrivacy

PEER = "scipy.optimize.linprog (HiGHS)"
SIZES = ((4, 6), (6, 20), (10, 40))


def run(quick: bool) -> list[dict]:
    """Per size: one constrained maximisation, and one stage of the learner."""
    rows, solver = [], package("scipy", PEER)
    only = solver._replace(name=f"{PEER}, the stage's maximisations only")
    for states, horizon in SIZES[:2] if quick else SIZES:
        active, name = _active_set(states, horizon), f"X={states}, H={horizon}"
        active.visiting()
        _stage(states, horizon)  # both: compilation
        single, stages = [], []
        for _ in range(3 if quick else 9):
            ours, peer = _maximisation(active), _linear_program(active, 2 if quick else 5)
            single.append((ours, peer))
            seconds, maximisations = _stage(states, horizon)
            stages.append((seconds, maximisations * peer / 1e3))
        rows.append(row(f"constrained maximisation, {name}", single, solver, "ms"))
        rows.append(row(f"stage of pe, {name}", stages, only, "s"))
    return rows


def _active_set(states: int, horizon: int):
    """Policies within 10% of the optimum of RiverSwim."""
    mdp = RiverSwim(states=states, horizon=horizon)
    order = np.broadcast_to(np.arange(2), mdp.shape.visits).copy()
    model = (mdp.transitions, mdp.initial, mdp.rewards)
    best = ImplicitActiveSet(*model, -np.inf, order).maximise(np.array(mdp.rewards)).value
    return ImplicitActiveSet(*model, 0.9 * best, order)


def _maximisation(active) -> float:
    """Milliseconds per maximisation of a visit probability, over all (h, x, a)."""
    return spent(active.visiting) / active.upper.size * 1e3


def _linear_program(active, solves: int) -> float:
    """Milliseconds per maximisation as a sparse linear program over occupancies."""
    horizon, states, actions = active.upper.shape
    outflow = kron(eye_array(horizon * states), np.ones((1, actions)))
    moves = [csr_array(step.reshape(-1, states).T) for step in active.transitions[:-1]]
    inflow = _shifted(moves, horizon, states, states * actions)
    flow = csr_array(outflow - inflow)
    entering = np.concatenate([active.initial, np.zeros((horizon - 1) * states)])
    limit = csr_array(-active.upper.reshape(1, -1))
    times = []
    for k in np.linspace(0, active.upper.size - 1, solves).astype(int):
        cost = np.zeros(active.upper.size)
        cost[k] = -1.0
        start = time.process_time()
        linprog(cost, A_ub=limit, b_ub=[-active.threshold], A_eq=flow, b_eq=entering)
        times.append(time.process_time() - start)
    return float(np.median(times)) * 1e3


def _shifted(moves, horizon: int, states: int, columns: int):
    """Block matrix with the transitions of step h below its diagonal."""
    blocks = [[None] * horizon for _ in range(horizon)]
    for h in range(horizon):
        blocks[h][h] = csr_array((states, columns))
        if h > 0:
            blocks[h][h - 1] = moves[h - 1]
    return block_array(blocks)


def _stage(states: int, horizon: int) -> tuple[float, float]:
    """Seconds of the slowest stage's planning in a run, and its number of maximisations."""
    mdp = RiverSwim(states=states, horizon=horizon, relabel=1)
    seeds = RunSeeds(1)
    rng = seeds.generator("environment")
    problem = public_facts(mdp, 20_000)
    learner = make_batch_learner(
        get_learner("pe"), problem, NoPrivacy(), seeds.generator("policy"), {}
    )
    spent: dict[float, float] = {}
    for part, _, length in learner.script:
        start = time.process_time()  # processor time: other programs do not count
        batch = learner.ask()
        spent[length] = spent.get(length, 0.0) + time.process_time() - start
        counts = sample_counts(mdp, batch.policy, batch.users, rng)
        released = learner.mechanism.release(counts, sampler=SimulationSampler(rng))
        start = time.process_time()
        learner.tell(released)
        if part != "tail":
            spent[length] += time.process_time() - start
    return max(spent.values()), 2.0 * learner.explorer.pool.rewards.size
