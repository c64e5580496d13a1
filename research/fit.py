"""The table of the page on fit: `discreet.fit` against the behaviour that produced its data.

Users are simulated at count level, so ten million cost what a thousand do. Gain is
(V - V_b) / (V* - V_b), exact in the true model: 0 is behaviour, 1 is the best policy.

Usage: python -m research.fit [--seeds 20] [--first-seed 0] [--environments ...]
       [--behaviours ...] [--epsilons 0.3 1 3 none] [--users 1e3 ...] [--stationary]
       [--known-rewards] [--known-behaviour] [--rows FILE]

Of each environment, all cells are run once, then all a second time, and so on. With --rows every
run is kept in FILE as it ends, and those that are there already are not run again: a table that
takes hours can be cut short, and is whole up to then.
"""

import argparse
import itertools
import json
import pathlib
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

import discreet
from discreet.mdp import (
    TabularMDP,
    evaluate,
    from_gymnasium,
    sample_counts,
    solve,
)
from discreet.privacy.trust import TrustModel
from research import parser

REPORTED = ("Treatment", "Recommender", "DemandResponse", "GridWorld", "FrozenLake")
"""No constant of `discreet.offline` was chosen by looking at these."""
CONTRADICTIONS = {
    "Renamed": "at one step the actions have each other's effects",
    "Last": "at the last step rewards are turned round",
    "Rare": "in one state at one step rewards are turned round",
    "Slow": "rewards drift by 0.3 over the episode, up or down",
}
"""What is wrong with declaring these stationary: Renamed-0, Renamed-1, ..., with --stationary."""
BEHAVIOURS = ("uniform", "half", "narrow")
USERS = (1e3, 1e4, 1e5, 1e6, 1e7)
DELTA = 1e-6


@dataclass(frozen=True)
class Outcome:
    """One run."""

    gain: float
    worse: bool
    covered: bool
    deferred: float


@dataclass(frozen=True)
class Options:
    """What all runs of a table share."""

    stationary: bool = False
    known_rewards: bool = False
    width: float = 2.0
    known_behaviour: bool = False


def environment(name: str) -> TabularMDP:
    """An environment of the table; ICU-Sepsis with two actions per state."""
    if name == "FrozenLake":
        return from_gymnasium("FrozenLake-v1", 20)
    if name == "ICU-Sepsis":
        return two_actions(discreet.make("ICU-Sepsis"))
    family, _, number = name.partition("-")
    if family in ("Random", "Drifting"):
        return discreet.make(
            "RandomMDP",
            states=5,
            actions=3,
            horizon=6,
            concentration=0.5,
            stationary=family == "Random",
            seed=int(number),
        )
    if family in CONTRADICTIONS:
        return contradiction(family, int(number))
    return discreet.make(name)


def contradiction(kind: str, seed: int) -> TabularMDP:
    """A random model that is stationary but for what ``kind`` says (see `CONTRADICTIONS`)."""
    mdp = environment(f"Random-{seed}")
    transitions, rewards = np.array(mdp.transitions), 0.2 + 0.6 * mdp.full_rewards
    if kind == "Renamed":
        transitions[3], rewards[3] = np.roll(transitions[3], 1, 1), np.roll(rewards[3], 1, 1)
    elif kind == "Last":
        rewards[-1] = 1 - rewards[-1]
    elif kind == "Rare":
        rewards[4, 2] = 1 - np.roll(rewards[4, 2], 1)
    else:
        sign = np.random.default_rng(seed).choice([-1, 1], rewards.shape[1:])
        drift = np.linspace(-0.15, 0.15, len(rewards))[:, None, None] * sign
        rewards = np.clip(rewards + drift, 0, 1)
    return TabularMDP(transitions=transitions, rewards=rewards, initial=mdp.initial)


def two_actions(mdp: TabularMDP) -> TabularMDP:
    """The same states with two of the actions: in each, the best one and another at random."""
    best = solve(mdp).policy.actions[0]
    shift = np.random.default_rng(7).integers(1, mdp.shape.actions, best.shape)
    pair = np.stack([best, (best + shift) % mdp.shape.actions], axis=1)
    return TabularMDP(
        transitions=np.take_along_axis(mdp.transitions[0], pair[:, :, None], axis=1),
        rewards=np.take_along_axis(mdp.full_rewards[0], pair, axis=1),
        initial=mdp.initial,
        horizon=mdp.horizon,
        name=f"{mdp.name} with two actions",
    )


def behaviour(mdp: TabularMDP, kind: str) -> np.ndarray:
    """``[H, S, A]``: uniform; half of the time the best; or two actions only, 80 to 20.

    *narrow* plays the best action and one other in every state; the best one has 80% in seven
    states of ten and 20% in the others.
    """
    best = solve(mdp).policy.actions
    actions = mdp.shape.actions
    expert = np.eye(actions)[best]
    if kind == "uniform":
        return np.full(mdp.shape.visits, 1 / actions)
    if kind == "half":
        return 0.5 / actions + 0.5 * expert
    rng = np.random.default_rng(123)
    other = (best + rng.integers(1, actions, best.shape)) % actions
    share = np.where(rng.random(best.shape) < 0.7, 0.8, 0.2)[..., None]
    return share * expert + (1 - share) * np.eye(actions)[other]


def trust_of(epsilon: str) -> TrustModel:
    """The trust model of one column."""
    return discreet.NoPrivacy() if epsilon == "none" else discreet.Central(float(epsilon), DELTA)


def run(
    mdp: TabularMDP, support: np.ndarray, users: float, trust: TrustModel, seed: int, how: Options
) -> Outcome:
    """Draw users, fit, and look at the truth."""
    rng = np.random.default_rng([seed, 67])
    found = discreet.fit(
        sample_counts(mdp, support, int(users), rng),
        trust,
        start=mdp.start,
        stationary=how.stationary,
        rewards=mdp.full_rewards if how.known_rewards else None,
        behaviour=support if how.known_behaviour else None,
        width=how.width,
        sampler="simulation",
        seed=seed,
    )
    today, best = evaluate(mdp, support), solve(mdp).value
    value = evaluate(mdp, found.policy.with_behaviour(support, mdp.shape.actions))
    return Outcome(
        float((value - today) / (best - today)),
        bool(value < today - 1e-9),
        bool(found.lower_value <= value + 1e-9),
        float(found.coverage.share(found.policy.defers)),
    )


def line(outcomes: list[Outcome]) -> str:
    """Mean and worst gain, how often worse, how often covered, steps deferred."""
    gains = np.array([o.gain for o in outcomes])
    return (
        f"{gains.mean():>8.3f}{gains.min():>9.3f}{np.mean([o.worse for o in outcomes]):>8.1%}"
        f"{np.mean([o.covered for o in outcomes]):>9.1%}"
        f"{np.mean([o.deferred for o in outcomes]):>10.1%}{len(outcomes):>7}"
    )


HEADER = f"{'gain':>8}{'worst':>9}{'worse':>8}{'covered':>9}{'deferred':>10}{'runs':>7}"


@dataclass(frozen=True)
class Rows:
    """Runs that are kept in a file, one line each; nowhere without a file."""

    path: pathlib.Path | None
    kept: dict[str, Outcome]

    @classmethod
    def of(cls, path: pathlib.Path | None) -> "Rows":
        """The runs that a file holds already."""
        if path is None or not path.exists():
            return cls(path, {})
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return cls(path, {line.pop("run"): Outcome(**line) for line in lines})

    def keep(self, run_: str, outcome: Outcome) -> None:
        """One more line."""
        self.kept[run_] = outcome
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps({"run": run_, **asdict(outcome)}) + "\n")


def outcomes(
    name: str, options: argparse.Namespace, rows: Rows
) -> Iterator[tuple[tuple[str, str, float], Outcome]]:
    """The runs of an environment, seed by seed; every cell has people and noise of its own."""
    how = Options(options.stationary, options.known_rewards, options.width, options.known_behaviour)
    mdp = environment(name)
    support = {kind: behaviour(mdp, kind) for kind in options.behaviours}
    cells = list(itertools.product(options.behaviours, options.epsilons, options.users))
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for kind, epsilon, users in cells:
            cell = f"{name} {kind} {epsilon} {users:g}"
            key = f"{cell} {seed} {how}"
            if key not in rows.kept:
                own = (zlib.crc32(cell.encode()) << 20) + seed
                rows.keep(key, run(mdp, support[kind], users, trust_of(epsilon), own, how))
            yield (kind, epsilon, users), rows.kept[key]


def table(options: argparse.Namespace) -> dict[tuple[str, str, str, float], list[Outcome]]:
    """All runs, one printed line per cell."""
    rows = Rows.of(options.rows)
    cells: dict[tuple[str, str, str, float], list[Outcome]] = {}
    print(f"{'environment':<16}{'behaviour':<10}{'eps':>5}{'users':>8}{HEADER}")
    for name in options.environments:
        for cell, outcome in outcomes(name, options, rows):
            cells.setdefault((name, *cell), []).append(outcome)
        for (env, kind, epsilon, users), found in cells.items():
            if env == name:
                print(f"{name:<16}{kind:<10}{epsilon:>5}{users:>8.0e}{line(found)}", flush=True)
    return cells


def summary(cells: dict[tuple[str, str, str, float], list[Outcome]]) -> None:
    """The same runs by epsilon and users, and all together."""
    print(f"\n{'eps':>5}{'users':>8}{HEADER}")
    for epsilon in dict.fromkeys(key[2] for key in cells):
        for users in dict.fromkeys(key[3] for key in cells):
            runs = [o for key, cell in cells.items() if key[2:] == (epsilon, users) for o in cell]
            print(f"{epsilon:>5}{users:>8.0e}{line(runs)}")
    print(f"{'all':>13}{line([o for cell in cells.values() for o in cell])}")


def main() -> None:
    """Print the table."""
    arguments = parser("research.fit", __doc__)
    arguments.add_argument("--seeds", type=int, default=20)
    arguments.add_argument("--first-seed", type=int, default=0)
    arguments.add_argument("--environments", nargs="*", default=[*REPORTED, "ICU-Sepsis"])
    arguments.add_argument("--behaviours", nargs="*", default=list(BEHAVIOURS))
    arguments.add_argument("--epsilons", nargs="*", default=["0.3", "1", "3"])
    arguments.add_argument("--users", nargs="*", type=float, default=list(USERS))
    arguments.add_argument("--width", type=float, default=2.0)
    arguments.add_argument("--stationary", action="store_true")
    arguments.add_argument("--known-rewards", action="store_true")
    arguments.add_argument("--known-behaviour", action="store_true")
    arguments.add_argument("--rows", type=pathlib.Path)
    summary(table(arguments.parse_args()))


if __name__ == "__main__":
    main()
