"""Adversarial learners: the entropy solver against Clarabel, and whole episodes per second.

Clarabel is timed without building the problem, on one thread. Throughput has no peer (there is no
public code for the paper); its rows compare with the least acceptable speed.
"""

import itertools

import numpy as np

from benchmarks.measure import Peer, package, row, spent
from discreet import Central, Local, NoPrivacy, learn
from discreet.adversarial.entropy import entropy_state, solve_entropy
from discreet.adversarial.occupancy import Boxes
from discreet.mdp.layered import LayeredMDP

FULL, BANDIT = "private-uc-o-reps", "private-uob-lbps"
SIZES = {"X=4, H=6, A=2": (4, 6, 2), "X=10, H=10, A=4": (10, 10, 4)}
LEAST = {
    "X=4, H=6, A=2": {"none": 9000, "JDP": 2500, "LDP": 4500, "bandit": 6000},
    "X=10, H=10, A=4": {"none": 900, "JDP": 85, "LDP": 170, "bandit": 290},
}


def run(quick: bool) -> list[dict]:
    """Solver ratios, then throughput."""
    rows = [_solver_row(name, quick) for name in SIZES]
    return rows + [line for name in SIZES for line in _throughput_rows(name, quick)]


def random_layers(widths, actions, concentration, seed):
    """A layered MDP with Dirichlet transitions."""
    rng, most = np.random.default_rng(seed), max(widths)
    transitions = np.zeros((len(widths) - 1, most, actions, most))
    for h, (here, there) in enumerate(itertools.pairwise(widths)):
        rows = rng.dirichlet(np.full(there, concentration), (here, actions))
        transitions[h, :here, :, :there] = rows
    return LayeredMDP(transitions=transitions, widths=widths)


def _layers(width: int, horizon: int, actions: int):
    return random_layers([1, *[width] * (horizon - 1), 1], actions, 0.3, 0)


def _solver_row(name: str, quick: bool) -> dict:
    """Cold solves of different costs, in turns with Clarabel's."""
    rounds, repeats = (5, 20) if quick else (15, 40)
    costs, boxes = _instances(*SIZES[name], rounds * repeats)
    _our_time(costs[:1], boxes)  # compile
    pairs, gaps = [], []
    for chunk in costs.reshape(rounds, repeats, *costs.shape[1:]):
        peer = _clarabel_time(chunk[0], boxes)
        ours, largest = _our_time(chunk, boxes)
        pairs.append((ours * 1e3, peer * 1e3))
        gaps.append(largest)
    task = f"entropy FTRL over boxes, {name} (largest gap {max(gaps):.0e})"
    return row(task, pairs, package("clarabel", "Clarabel"), "ms per cold solve")


def _instances(width: int, horizon: int, actions: int, count: int):
    """Boxes after about a thousand visits per pair, and costs that move as private losses do."""
    rng = np.random.default_rng(1)
    mdp = _layers(width, horizon, actions)
    p = mdp.transitions
    beta = np.sqrt(20 * p * (1 - p) / 1000) + 0.07
    widths = np.array(mdp.widths, np.int64)
    boxes = Boxes(widths, np.maximum(p - beta, 0), np.minimum(p + beta, 1))
    mean = 10 * rng.random(mdp.shape.visits)
    return mean + rng.standard_normal((count, *mdp.shape.visits)), boxes


def _our_time(chunk, boxes) -> tuple[float, float]:
    """Seconds per solve that knows nothing of the ones before, and the largest gap."""
    states = [entropy_state(boxes.widths, chunk.shape[-1]) for _ in chunk]
    given, gaps = chunk.copy(), []

    def solve() -> None:
        for costs, state in zip(given, states, strict=True):
            gaps.append(solve_entropy(costs, boxes, state, False)[0])

    return spent(solve) / len(chunk), max(gaps)


def _clarabel_time(costs, boxes) -> float:
    """Min c·q + sum t with (-t, q, 1) in the exponential cone, flow equalities and boxes."""
    import clarabel
    from scipy import sparse

    widths, actions = boxes.widths, costs.shape[2]
    index, cost = {}, []
    for h in range(len(widths) - 1):
        for x, a, y in np.ndindex(int(widths[h]), actions, int(widths[h + 1])):
            index[h, x, a, y] = len(cost)
            cost.append(costs[h, x, a])
    n, entries, right, row = len(cost), [], [], 0
    for h in range(len(widths) - 1):
        for x in range(widths[h]):
            for a, y in np.ndindex(actions, int(widths[h + 1])):
                entries.append((row, index[h, x, a, y], 1.0))
            if h:
                for z, a in np.ndindex(int(widths[h - 1]), actions):
                    entries.append((row, index[h - 1, z, a, x], -1.0))
            right.append(0.0 if h else 1.0)
            row += 1
    equalities = row
    for h, x, a, y in index:
        for sign, bound in ((1.0, boxes.upper[h, x, a, y]), (-1.0, boxes.lower[h, x, a, y])):
            for z in range(widths[h + 1]):
                value = sign * ((z == y) - bound)
                entries.append((row, index[h, x, a, z], value))
            right.append(0.0)
            row += 1
    inequalities = row - equalities
    for i in range(n):
        entries += [(row, n + i, 1.0), (row + 1, i, -1.0)]
        right += [0.0, 0.0, 1.0]
        row += 3
    at, column, value = zip(*entries, strict=True)
    matrix = sparse.csc_matrix((value, (at, column)), shape=(row, 2 * n))
    cones = [clarabel.ZeroConeT(equalities), clarabel.NonnegativeConeT(inequalities)]
    cones += [clarabel.ExponentialConeT()] * n
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    objective = np.concatenate([cost, np.ones(n)])
    empty = sparse.csc_matrix((2 * n, 2 * n))
    solver = clarabel.DefaultSolver(empty, objective, matrix, np.array(right), cones, settings)
    return spent(solver.solve)


def _throughput_rows(name: str, quick: bool) -> list[dict]:
    small = SIZES[name][0] == 4
    episodes = (2000 if quick else 20_000) if small else (400 if quick else 2000)
    cases = {
        "none": (FULL, NoPrivacy()),
        "JDP": (FULL, Central(1.0, 1e-6)),
        "LDP": (FULL, Local(1.0)),
        "bandit": (BANDIT, Central(1.0, 1e-6)),
    }
    mdp = _layers(*SIZES[name])
    return [
        _throughput_row(f"{case}, {name}", LEAST[name][case], learner, trust, mdp, episodes)
        for case, (learner, trust) in cases.items()
    ]


def _throughput_row(case, least, learner, trust, mdp, episodes) -> dict:
    few = mdp.states * mdp.shape.actions + 20
    learn(mdp, learner=learner, trust=trust, episodes=few)  # compile
    seconds = [
        spent(lambda: learn(mdp, learner=learner, trust=trust, episodes=episodes)) for _ in range(3)
    ]
    peer = Peer("the least acceptable speed", kind="ours")
    pairs = [(1e6 * one / episodes, 1e6 / least) for one in seconds]
    return row(f"{learner}, {case}", pairs, peer, "us per episode")
