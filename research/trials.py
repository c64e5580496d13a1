"""Learners at the size of trials: who is right afterwards, and what it cost those who took part.

    python -m research.trials table --users 1e3 5e3 --runs 10      # R and V of seven problems
    python -m research.trials arms --runs 2000                     # two arms, .5 and .4
    python -m research.trials star --runs 100                      # a trial of class sizes
    python -m research.trials plan --runs 400                      # what `discreet plan` says

Regret is exact. Every command takes ``--out FILE.csv`` and appends one row per run or group of
runs; with ``--mean`` one for all runs of a cell. Seeds are those of the command's own `SEED`, which
nothing was chosen on.
"""

import argparse
import csv
import dataclasses
import math
import tempfile
import time
from pathlib import Path

import numpy as np

import discreet
from discreet._seeds import RunSeeds
from discreet.learners.learn import make_batch_learner, public_facts, release_batch
from discreet.learners.registry import get_learner
from discreet.mdp import TabularMDP, sample_counts, sample_trajectories, solve, uniform_policy
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import DeterministicPolicy
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.study.estimate import StudyEstimate
from discreet.study.plan import Simulation, effects_of, run_study

SEED = 20261119
MEASURED = ("batches", "R", "V", "first", "recommended", "wrong", "kept")

# The STAR trial (Tennessee 1985-89, as in the R package mlmRev, data set `star`): class of 13-17
# pupils, of 22-25, of 22-25 with an aide; kindergarten to grade 3; states: entering, then the third
# of the marks of the year before. Mean marks (reading and mathematics, 2nd to 98th percentile = 0
# to 1, deviations from 1/2 times 0.65) and moves, of 13,600 school years; in the first year a small
# class is worth .027 more.
STAR_REWARDS = [
    [[0.464, 0.437, 0.436], [0.5] * 3, [0.5] * 3, [0.5] * 3],
    [[0.5] * 3, [0.377, 0.349, 0.35], [0.485, 0.451, 0.475], [0.616, 0.572, 0.608]],
    [[0.5] * 3, [0.348, 0.342, 0.343], [0.468, 0.47, 0.47], [0.636, 0.617, 0.63]],
    [[0.5] * 3, [0.356, 0.346, 0.354], [0.472, 0.48, 0.469], [0.636, 0.621, 0.624]],
]
_NOWHERE = [[1, 0, 0, 0]] * 3
STAR_MOVES = [
    [
        [[0, 0.296, 0.328, 0.376], [0, 0.359, 0.32, 0.321], [0, 0.355, 0.35, 0.295]],
        _NOWHERE,
        _NOWHERE,
        _NOWHERE,
    ],
    [
        _NOWHERE,
        [[0, 0.553, 0.34, 0.107], [0, 0.657, 0.284, 0.059], [0, 0.679, 0.264, 0.057]],
        [[0, 0.213, 0.47, 0.317], [0, 0.299, 0.457, 0.244], [0, 0.22, 0.476, 0.304]],
        [[0, 0.072, 0.218, 0.71], [0, 0.127, 0.249, 0.624], [0, 0.068, 0.211, 0.721]],
    ],
    [
        _NOWHERE,
        [[0, 0.719, 0.241, 0.04], [0, 0.772, 0.186, 0.042], [0, 0.75, 0.23, 0.02]],
        [[0, 0.256, 0.508, 0.236], [0, 0.269, 0.488, 0.243], [0, 0.223, 0.554, 0.223]],
        [[0, 0.015, 0.181, 0.804], [0, 0.013, 0.254, 0.733], [0, 0.011, 0.17, 0.819]],
    ],
    [
        _NOWHERE,
        [[0, 0.663, 0.308, 0.029], [0, 0.748, 0.245, 0.007], [0, 0.707, 0.253, 0.04]],
        [[0, 0.238, 0.563, 0.199], [0, 0.173, 0.576, 0.251], [0, 0.266, 0.535, 0.199]],
        [[0, 0.031, 0.181, 0.788], [0, 0.027, 0.223, 0.75], [0, 0.033, 0.21, 0.757]],
    ],
]


def _relabelled(key, transitions, rewards, run, **more):
    """One order of the actions per run."""
    order = np.random.default_rng((key, run)).permutation(np.shape(rewards)[-1])
    transitions, rewards = np.asarray(transitions, float), np.asarray(rewards, float)
    return TabularMDP(transitions=transitions[..., order, :], rewards=rewards[..., order], **more)


def star(run):
    """Class sizes over four years."""
    return _relabelled(1, STAR_MOVES, STAR_REWARDS, run, name="STAR")


def arms(gap):
    """Two arms, of which one pays ``gap`` more than the other."""

    def made(run):
        rewards = [[0.5 - gap, 0.5]]
        return _relabelled(2, np.ones((1, 2, 1)), rewards, run, horizon=1, name=f"Arms{gap:g}")

    return made


def contexts(run):
    """Twenty contexts, five actions, one of them .05 better in each."""
    rng = np.random.default_rng((3, run))
    rewards = np.repeat(rng.uniform(0.3, 0.6, (20, 1)), 5, axis=1)
    rewards[np.arange(20), rng.integers(5, size=20)] += 0.05
    moves = np.repeat(np.eye(20)[:, None], 5, axis=1)
    return TabularMDP(
        transitions=moves, rewards=rewards, horizon=1, initial=np.full(20, 0.05), name="Contexts"
    )


def dose(run):
    """Five doses over four visits: more helps, and harms; ordered, so not relabelled."""
    helps = np.array([0.05, 0.15, 0.3, 0.38, 0.4])
    harms = np.array([0, 0.02, 0.04, 0.09, 0.16])
    moves, rewards = np.zeros((3, 5, 3)), np.zeros((3, 5))
    for s in range(3):
        for a in range(5):
            worse = 0.15 * (1 - helps[a])
            moves[s, a, min(s + 1, 2)] += helps[a]
            moves[s, a, max(s - 1, 0)] += worse
            moves[s, a, s] += 1 - helps[a] - worse
            rewards[s, a] = (0.25, 0.5, 0.75)[s] - harms[a]
    return TabularMDP(transitions=moves, rewards=rewards, horizon=4, name="Dose")


def _shipped(name, **parameters):
    return lambda run: discreet.make(name, relabel=run + 1, **parameters)


PROBLEMS = {
    "STAR": star,
    "Treatment": _shipped("Treatment"),
    "Contexts": contexts,
    "Arms.03": arms(0.03),
    "Arms.1": arms(0.1),
    "Dose": dose,
    "RiverSwim": _shipped("RiverSwim", states=4, horizon=6),
}
LEARNERS = {
    "flow-ucb": ("flow-ucb", {}),
    "explore-then-commit": ("explore-then-commit", {}),
    "trial policy": ("trial", {"aim": "policy"}),
    "trial participants": ("trial", {"aim": "participants"}),
}
TRUSTS = {
    "none": lambda epsilon: discreet.NoPrivacy(),
    "central": lambda epsilon: discreet.Central(epsilon=epsilon, delta=1e-6),
    "shuffle": lambda epsilon: discreet.Shuffle(epsilon=epsilon, delta=1e-6),
}


def played(mdp, name, trust, users, run):
    """A learner that was told all its users, their regret, and what a study would say of them."""
    seeds = RunSeeds(SEED, run)
    spec, settings = LEARNERS[name]
    learner = make_batch_learner(
        get_learner(spec),
        public_facts(mdp, users),
        trust,
        seeds.generator("policy"),
        dict(settings),
    )
    rng, noise = seeds.generator("environment"), SimulationSampler(seeds.generator("noise"))
    meter, done, regret, batches = RegretMeter(mdp), 0, 0.0, 0
    study = StudyEstimate(learner.problem, learner.mechanism)
    while done < users:
        batch = learner.ask()
        regret += batch.users * meter.regret(batch.policy)
        counts = release_batch(mdp, learner, batch, rng, noise)
        learner.tell(counts)
        study.add(counts, batch.policy)
        done, batches = done + batch.users, batches + 1
    return learner, study, regret, batches


def one_run(problem, name, trust_name, epsilon, users, run):
    """R, V, whether the first action is right, and what deferring keeps and gets wrong."""
    mdp = PROBLEMS[problem](run)
    learner, study, regret, batches = played(mdp, name, TRUSTS[trust_name](epsilon), users, run)
    meter, found = RegretMeter(mdp), learner.greedy()
    uniform = meter.regret(uniform_policy(mdp.shape))
    values = solve(mdp).values
    best = np.stack([mdp.rewards[h] + mdp.transitions[h] @ v for h, v in enumerate(values[1:])])
    lost = best.max(axis=-1) - np.take_along_axis(best, found.actions[..., None], -1)[..., 0]
    answer = study.answer(found)
    gained = np.take_along_axis(best, answer.policy.actions[..., None], -1)[..., 0] - best[..., 0]
    share = _occupancy(mdp, answer.policy) * ~answer.defer
    nothing = meter.regret(DeterministicPolicy(np.zeros_like(found.actions)))
    return {
        "problem": problem,
        "learner": name,
        "trust": trust_name,
        "epsilon": epsilon,
        "users": users,
        "run": run,
        "batches": batches,
        "R": round(regret / (users * uniform), 4),
        "V": round(1 - meter.regret(found) / uniform, 4),
        "first": round(1 - float(mdp.initial @ (lost[0] > 1e-9)), 4),
        "recommended": round(float(share.sum()) / mdp.horizon, 4),
        "wrong": round(float((share * (gained < -1e-9)).sum()) / mdp.horizon, 4),
        "kept": round((nothing - meter.regret(answer.policy)) / uniform, 4),
    }


def _occupancy(mdp, policy):
    share = np.zeros(policy.actions.shape)
    share[0] = mdp.initial
    states = np.arange(share.shape[1])
    for h in range(len(share) - 1):
        share[h + 1] = share[h] @ mdp.transitions[h][states, policy.actions[h]]
    return share


def half_ab(users, trust, run):
    """An A/B test with half of the users, then the better arm: whether it is the wrong one."""
    mdp = PROBLEMS["Arms.1"](run)
    learner = make_batch_learner(
        get_learner("explore-then-commit"),
        public_facts(mdp, users),
        trust,
        RunSeeds(SEED, run).generator("policy"),
        {"exploration": "uniform", "length": users // 2},
    )
    seeds = RunSeeds(SEED, run)
    rng, noise = seeds.generator("environment"), SimulationSampler(seeds.generator("noise"))
    learner.tell(release_batch(mdp, learner, learner.ask(), rng, noise))
    return int(mdp.rewards[0, 0, learner.greedy().actions[0, 0]] < 0.5)


def interval(wrong, runs):
    """Wilson's, 95%."""
    z, p = 1.96, wrong / runs
    middle, width = p + z * z / (2 * runs), z * math.sqrt(p * (1 - p) / runs + (z / runs / 2) ** 2)
    return [round((middle + sign * width) / (1 + z * z / runs), 4) for sign in (-1, 1)]


def run_arms(options):
    """Two arms: how often the wrong one is chosen at the end."""
    for trust in options.trusts or ("central", "shuffle"):
        for users in options.users or (500, 2000):
            wrong = {
                "trial policy": sum(
                    one_run("Arms.1", "trial policy", trust, 1, users, run)["V"] < 0
                    for run in range(options.runs)
                ),
                "A/B, half": sum(
                    half_ab(users, TRUSTS[trust](1), run) for run in range(options.runs)
                ),
            }
            for name, count in wrong.items():
                low, high = interval(count, options.runs)
                yield {
                    "trust": trust,
                    "users": users,
                    "learner": name,
                    "runs": options.runs,
                    "wrong": count / options.runs,
                    "low": low,
                    "high": high,
                }


def run_table(options):
    """All problems, learners, trust models: one row per run, or their mean."""
    for users in options.users or (1_000, 5_000, 20_000, 50_000):
        for trust in options.trusts or ("central", "shuffle"):
            for epsilon in options.epsilons:
                for problem in options.problems or PROBLEMS:
                    for name in options.learners or LEARNERS:
                        rows = [
                            one_run(problem, name, trust, epsilon, users, run)
                            for run in range(options.runs)
                        ]
                        yield from [_mean(rows)] if options.mean else rows


def _mean(rows):
    keys = {name: rows[0][name] for name in ("users", "learner", "trust", "epsilon", "problem")}
    means = {name: round(float(np.mean([row[name] for row in rows])), 4) for name in MEASURED}
    return {**keys, "runs": len(rows), **means}


def run_star(options):
    """The trial of class sizes, and its twin without privacy."""
    options.users = options.users or (5_000, 50_000)
    options.trusts = options.trusts or ("none", "central", "shuffle")
    options.problems, options.epsilons = ["STAR"], [1]
    options.learners = options.learners or ["trial policy"]
    yield from run_table(options)


def _moves(up, down):
    """A ladder of states, climbed and fallen from with these chances per action, ``[S, A]``."""
    states, actions = np.shape(up)
    moves, rows = np.zeros((states, actions, states)), np.arange(states)
    for a in range(actions):
        rise, fall = np.array(up)[:, a] * (rows < states - 1), np.array(down)[:, a] * (rows > 0)
        moves[rows, a, np.minimum(rows + 1, states - 1)] += rise
        moves[rows, a, np.maximum(rows - 1, 0)] += fall
        moves[rows, a, rows] += 1 - rise - fall
    return moves


def screening():
    """One visit of eight kinds of people: no test, a quick or a thorough one, which two may not."""
    usual = np.array([0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65])
    rewards = usual[:, None] + np.outer([1, 1, 0.5, 0.5, 0, 0, -0.5, -1], [0, 0.06, 0.12])
    allowed = np.ones((8, 3), bool)
    allowed[5:7, 2] = False
    moves = np.repeat(np.eye(8)[:, None], 3, axis=1)
    share = np.array([4, 3, 3, 2, 2, 2, 1, 1]) / 18
    return TabularMDP(
        transitions=moves,
        rewards=rewards,
        horizon=1,
        initial=share,
        allowed=allowed,
        name="Screening",
    )


def back_pain():
    """Two visits, in pain or better: pills or exercise, which pays at the second visit."""
    moves = [[[0.7, 0.3], [0.5, 0.5]], [[0.35, 0.65], [0.2, 0.8]]]
    rewards = [[0.3, 0.27], [0.7, 0.68]]
    return TabularMDP(
        transitions=moves, rewards=rewards, horizon=2, initial=[0.6, 0.4], name="BackPain"
    )


def lessons():
    """Eight lessons of a course in which the next topic is chosen, and topics build on others."""
    moves, rewards = np.zeros((5, 3, 5)), np.zeros((5, 3))
    for topic in range(5):
        for a, step in enumerate((0, 1, 2)):
            moves[topic, a, min(topic + step, 4)] += 0.9
            moves[topic, a, max(topic - 1, 0)] += 0.1
            rewards[topic, a] = 0.25 + 0.12 * topic - (0, 0, 0.06)[a]
    return TabularMDP(transitions=moves, rewards=rewards, horizon=8, name="Lessons")


def clinics():
    """Four quarters in three clinics, alike but for their level; care differs from step to step."""
    rng = np.random.default_rng(SEED + 4)
    moves = 0.7 * np.eye(3)[:, None] + 0.3 * rng.dirichlet(np.ones(3), (4, 3, 3))
    rewards = np.array([0.35, 0.5, 0.6])[:, None] + rng.uniform(-0.1, 0.1, (4, 3, 3))
    return TabularMDP(transitions=moves, rewards=rewards, initial=np.full(3, 1 / 3), name="Clinics")


def queue():
    """Five hours at a counter with up to five who wait: one or two who serve, or a third."""
    come, serve, cost = 0.6, (0.45, 0.65, 0.8), (0, 0.05, 0.12)
    up = [[come * (1 - one) for one in serve]] * 6
    down = [[(1 - come) * one for one in serve]] * 6
    rewards = 0.9 - np.add.outer(0.12 * np.arange(6), cost)
    return TabularMDP(
        transitions=_moves(up, down),
        rewards=np.maximum(rewards, 0),
        horizon=5,
        initial=3,
        name="Queue",
    )


PLANNED = {
    "Screening": (screening, "trial policy", "central", 1),
    "BackPain": (back_pain, "trial policy", "shuffle", 1),
    "Lessons": (lessons, "trial policy", "none", 1),
    "Clinics": (clinics, "trial participants", "central", 2),
    "Queue": (queue, "trial policy", "central", 1),
}
"""Problems that `discreet plan` was not made with: written when its code was done."""


def _not_yet_best(mdp):
    """Actions in another order, so that today's is not the best one at the first step."""
    rng = np.random.default_rng(SEED)
    for _ in range(100):
        order = rng.permutation(mdp.shape.actions)
        moves, rewards = mdp.transitions[:, :, order], mdp.rewards[:, :, order]
        allowed = None if mdp.allowed is None else mdp.allowed[..., order]
        made = mdp.replace(transitions=moves, rewards=rewards, allowed=allowed)
        if effects_of(made).effect > 0.02:
            return made
    raise SystemExit(f"{mdp.name}: no action is better than another at the first step.")


def _counted(mdp, episodes, rng):
    """The model that so many logged episodes of random actions show; what nobody did stays."""
    shape, states = mdp.shape, np.arange(mdp.shape.states)[:, None]
    logged = sample_counts(mdp, uniform_policy(shape), episodes, rng)
    moves, rewards = logged.transitions.astype(float), logged.rewards.astype(float)
    if mdp.stationary:
        moves, rewards = moves.sum(axis=0, keepdims=True), rewards.sum(axis=0, keepdims=True)
    visits = moves.sum(axis=-1)
    moves[:, states, np.arange(shape.actions), states] += visits == 0
    made = moves / np.maximum(visits, 1)[..., None], rewards / np.maximum(visits, 1)
    moves, rewards = (
        np.broadcast_to(made[0], shape.transitions),
        np.broadcast_to(made[1], shape.visits),
    )
    begun = logged.transitions[0].sum(axis=(1, 2)) / episodes
    return mdp.replace(transitions=moves, rewards=rewards, initial=begun)


def _studied(mdp, spec, settings, trust, users, run):
    """What a study answers, by the public interface; under shuffle too slow, so by `run_study`."""
    seeds = RunSeeds(SEED + 2, run)
    if isinstance(trust, discreet.Shuffle):
        problem = public_facts(mdp, users)
        return run_study(mdp, get_learner(spec), problem, trust, settings, seeds)[0].policy
    (horizon, states, actions), rng = mdp.shape.visits, seeds.generator("environment")
    rules = [
        {"steps": [h], "states": [s], "actions": np.flatnonzero(mdp.shape.mask[h, s]).tolist()}
        for h in range(horizon)
        for s in range(states)
        if not mdp.shape.mask[h, s].all()
    ]
    with tempfile.TemporaryDirectory() as folder:
        study = discreet.start_study(
            Path(folder) / "study.db",
            learner=spec,
            trust=trust,
            states=states,
            actions=actions,
            horizon=horizon,
            episodes=users,
            start_states=np.flatnonzero(mdp.start).tolist(),
            allowed=rules,
            sampler="simulation",
            seed=SEED + 2 + run,
            **settings,
        )
        while not study.finished:
            people = range(study.users, study.users + study.batch_size)
            episodes = sample_trajectories(mdp, study.ask(), len(people), rng)
            study.tell(episodes, users=[f"p{i}" for i in people])
        return study.policy


def run_plan(options):
    """The power that plans state, and that of simulated studies.

    ``given``: the plan has the problem; ``logged``: it has a model counted from 2,000 episodes of
    other people who took random actions; ``logged_told``: and knows the effect. The size is the
    first of 500, 707, 1000, ... for which the plan with the problem says 0.8.
    """
    for name in options.problems or PLANNED:
        made, learner, trust_name, epsilon = PLANNED[name]
        mdp, (spec, settings) = _not_yet_best(made()), LEARNERS[learner]
        trust, (gains, weights, effect) = TRUSTS[trust_name](epsilon), effects_of(mdp)
        given = Simulation(spec, public_facts(mdp, 1), settings, mdp, runs=100, seed=SEED)
        users = 500
        while given.outcome(effect, trust, users).right.mean() < 0.8 and users < 1e6:
            users = round(users * math.sqrt(2))
        model = _counted(mdp, 2000, np.random.default_rng(SEED + 3))
        logged = dataclasses.replace(given, model=model)
        plans = {
            "given": (given, effect),
            "logged": (logged, logged.most),
            "logged_told": (logged, min(effect, logged.most)),
        }
        stated, begun = {}, time.process_time()
        for key, (simulation, size) in plans.items():
            many = dataclasses.replace(simulation, runs=options.stated, seed=SEED + 1)
            stated[key] = round(float(many.outcome(size, trust, users).right.mean()), 3)
        planned, begun, right = time.process_time() - begun, time.process_time(), []
        for run in range(options.runs):
            policy = _studied(mdp, spec, settings, trust, users, run)
            got = np.take_along_axis(gains, policy.actions[0][:, None], 1)[:, 0]
            right.append(weights @ (got >= gains.max(axis=1) / 2))
        print(name, f"plans {planned:.0f} s, studies {time.process_time() - begun:.0f} s")
        yield {
            "problem": name,
            "learner": learner,
            "trust": trust_name,
            "epsilon": epsilon,
            "people": users,
            "effect": round(effect, 4),
            "logged_effect": round(logged.most, 4),
            **stated,
            "found": round(float(np.mean(right)), 3),
            "runs": options.runs,
        }


COMMANDS = {"arms": run_arms, "plan": run_plan, "star": run_star, "table": run_table}


def main():
    """Run one command; rows go to a file and their means to the screen."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--users", type=lambda text: int(float(text)), nargs="+")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--stated", type=int, default=1000, help="simulated studies of a plan")
    parser.add_argument("--trusts", nargs="+", choices=TRUSTS)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--problems", nargs="+", choices=[*PROBLEMS, *PLANNED])
    parser.add_argument("--learners", nargs="+", choices=LEARNERS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--mean", action="store_true", help="one row for the runs of a cell")
    options = parser.parse_args()
    began, rows = time.monotonic(), []
    for row in COMMANDS[options.command](options):
        rows.append(row)
        if options.out:
            new = not options.out.exists()
            with options.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                if new:
                    writer.writeheader()
                writer.writerow(row)
    if "R" not in rows[0]:
        for row in rows:
            print(*row.values(), sep="\t")
    else:
        _print_means(rows)
    print(f"{time.monotonic() - began:.0f} s")


def _print_means(rows):
    print("users", "learner", "trust", *MEASURED, sep="\t")
    keys = sorted({(row["users"], row["learner"], row["trust"]) for row in rows})
    for users, learner, trust in keys:
        mine = [
            r for r in rows if (r["users"], r["learner"], r["trust"]) == (users, learner, trust)
        ]
        means = (f"{np.mean([row[name] for row in mine]):.3f}" for name in MEASURED)
        print(users, learner, trust, *means, sep="\t")


if __name__ == "__main__":
    main()
