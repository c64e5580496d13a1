"""Adversarial learners: the entropy solver against Clarabel, and whole episodes per second.

Clarabel is given its own best figure: the solve time it reports, without building the problem.
Throughput has no peer (there is no public code for the paper); its rows compare with the least
acceptable number of episodes per second.
"""

import time

import numpy as np

from benchmarks._measure import row

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


def random_layered(width: int, horizon: int, actions: int):
    """A layered MDP with Dirichlet(0.3) transitions."""
    from discreet.mdp.layered import LayeredMDP

    rng = np.random.default_rng(0)
    widths = [1, *[width] * (horizon - 1), 1]
    moves = np.zeros((horizon, width, actions, width))
    for h in range(horizon):
        rows = rng.dirichlet(np.full(widths[h + 1], 0.3), size=(widths[h], actions))
        moves[h, : widths[h], :, : widths[h + 1]] = rows
    return LayeredMDP(transitions=moves, widths=widths)


def _solver_row(name: str, quick: bool) -> dict:
    """Medians over cold solves; the two take turns, so that a slow minute slows both."""
    from discreet.learners.adversarial.occupancy_solver import entropy_ftrl

    rounds, repeats = (2, 20) if quick else (6, 40)
    costs, boxes = _instances(*SIZES[name], rounds * repeats)
    entropy_ftrl(costs[0], boxes)  # compile
    ours, gaps, peers = [], [], []
    for chunk in costs.reshape(rounds, repeats, *costs.shape[1:]):
        peers.append(_clarabel_time(chunk[0], boxes))
        for cost in chunk:
            seconds, gap = _our_time(cost, boxes)
            ours.append(seconds)
            gaps.append(gap)
    mine, theirs = float(np.median(ours)) * 1e3, float(np.median(peers)) * 1e3
    task = f"entropy FTRL over boxes, {name} (largest gap {max(gaps):.0e})"
    return row(task, mine, theirs, "Clarabel, reported solve time", "ms per cold solve")


def _instances(width: int, horizon: int, actions: int, count: int):
    """Boxes after about a thousand visits per pair, and costs that move as private losses do."""
    from discreet.learners.adversarial.occupancy_solver import confidence_boxes

    rng = np.random.default_rng(1)
    mdp = random_layered(width, horizon, actions)
    p = mdp.transitions
    beta = np.sqrt(20 * p * (1 - p) / 1000) + 0.07
    boxes = confidence_boxes(mdp.widths, np.maximum(p - beta, 0), np.minimum(p + beta, 1))
    mean = 10 * rng.random(mdp.shape.visits)
    return mean + rng.standard_normal((count, *mdp.shape.visits)), boxes


def _our_time(costs, boxes) -> tuple[float, float]:
    """Seconds and gap of a solve that knows nothing of the ones before."""
    from discreet.learners.adversarial.entropy_kernels import entropy_state, solve_entropy

    state, given = entropy_state(boxes.widths, costs.shape[-1]), costs.copy()
    start = time.perf_counter()
    gap, _ = solve_entropy(given, boxes, state, False)
    return time.perf_counter() - start, gap


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
    return float(solver.solve().solve_time)


def _throughput_rows(name: str, quick: bool) -> list[dict]:
    from discreet.privacy.trust import Central, Local, NoPrivacy

    small = SIZES[name][0] == 4
    episodes = (2000 if quick else 20_000) if small else (400 if quick else 2000)
    cases = {
        "none": (FULL, NoPrivacy()),
        "JDP": (FULL, Central(1.0, 1e-6)),
        "LDP": (FULL, Local(1.0)),
        "bandit": (BANDIT, Central(1.0, 1e-6)),
    }
    mdp = random_layered(*SIZES[name])
    return [
        _throughput_row(f"{case}, {name}", LEAST[name][case], learner, trust, mdp, episodes)
        for case, (learner, trust) in cases.items()
    ]


def _throughput_row(case, least, learner, trust, mdp, episodes) -> dict:
    from discreet import learn

    few = mdp.states * mdp.shape.actions + 20
    learn(mdp, learner=learner, trust=trust, episodes=few)  # compile
    start = time.process_time()
    learn(mdp, learner=learner, trust=trust, episodes=episodes)
    speed = episodes / (time.process_time() - start)
    return {
        "task": f"{learner}, {case}",
        "ours": speed,
        "peer": float(least),
        "peer_name": "least acceptable",
        "ratio": speed / least,
        "unit": "episodes per second of one core",
    }


if __name__ == "__main__":
    import json

    print(json.dumps(run(quick=True), indent=1))
