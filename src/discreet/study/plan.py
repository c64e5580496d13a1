"""What a study will find, before anybody is asked: simulated studies of problems that might be.

A plan uses public facts alone: the design, the people, the guarantee. Every simulated study has
the design's learner, the real mechanism and the rule by which studies recommend
(`study.estimate`: better than today's action by two standard errors, or DEFER), in a world of the
design's shape that is drawn anew.

**Effect.** How much more an action earns than today's (the first that is possible) from the first
step on, with the best actions afterwards. *Right* is a recommendation, at the first step, of an
action that is worth at least half of the effect; *wrong* is one of an action that earns less than
today's. The *smallest difference* is the effect with which 80% of the studies are right.

**Worlds.** To first order the error of a difference depends on the problem by two numbers alone:
with n visits of an action its variance is

    [r·(1 - r) + s²]/n + [sigma_r² + (r - c)²·sigma_N² + sigma_t²·sum_s' (V(s') - P·V)²]/n²,

r being the mean reward of the first step, s the standard deviation of V, what the rest of an
episode is worth, over next states, and sigma² the variances of the noise on sums of rewards
(centred at c), visits and transitions. So worlds are drawn given r and s; all else is chance.
A state has a quality, what a step there earns on average, and today's moves are nearly even draws
(Dirichlet), mixed with staying. In every state one action, the same at all steps, earns the effect
more than today's, and others anything from the effect less to half of it more. A part of that, from
none to all, lies in where the action leads (to the best state, or to the worst), the rest in the
reward; all of it in a problem that is declared stationary. Rewards are 0 or 1, as counted.

**Search.** A study whose preferred action is right recommends it from the effect
d - (difference - 2·standard error) on, if nothing but the effect changes: the 80% quantile of that
over the runs is the next d to try. Where a fifth of the studies cannot be right however large the
reward's effect is, no difference is found.
"""

import dataclasses
import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet import _validate
from discreet._seeds import RunSeeds
from discreet._types import BoolArray, FloatArray, JsonObject, Plain
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.learners.base import BatchLearner, Problem
from discreet.learners.learn import check_trust
from discreet.learners.registry import LearnerSpec, get_learner
from discreet.mdp.planning import RegretMeter, plan
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.simulation import sample_counts
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.guarantee import rounded_up
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.trust import NoPrivacy, TrustModel, make_trust
from discreet.study import config as configs
from discreet.study.design import Design, read_design
from discreet.study.drivers import BatchDriver
from discreet.study.estimate import SURE, Answer, StudyEstimate

POWER = 0.8
_EVEN = 5.0
"""Concentration of today's moves."""
RUNS = 100
_FEW = 40
"""Simulated studies when one starts."""
_HOPEFUL = (
    "This is too hopeful where the better action is better by leading to quite different states, "
    "over many steps: of one such problem 87% were stated and 24% found."
)
"""The worst of docs/understand/learners/trial.md (Recommender, 8 steps)."""
_MOST_CELLS = 2 * 10**5
"""Transition counters of a problem that is then simulated: a tenth of a second each."""
_ROUNDS = 8
_CLOSE = 0.25
"""Relative change at which the search ends: errors hardly depend on the effect."""
_NEIGHBOURS = {"people": (0.5, 1.0, 2.0, 5.0), "epsilon": (0.5, 1.0, 2.0)}
_TRUSTS = ("central", "shuffle", "local")
_DELTA = 1e-6
"""Where the design has none, and one is needed."""


class Effects(NamedTuple):
    """What a plan asks of a problem, rewards from 0 to 1.

    Attributes:
        gains: ``[S, A]``, what actions of the first step earn more than today's.
        reward: r, mean of the first step today.
        spread: s, of what the rest of an episode is worth, over next states.
    """

    gains: FloatArray
    reward: float
    spread: float


def effects_of(mdp: TabularMDP) -> Effects:
    """The numbers of a known problem, the best actions following."""
    today, ahead = mdp.shape.first, np.zeros(mdp.shape.states)
    if mdp.horizon > 1:
        ahead = plan(mdp).values[1]
    values, every = mdp.rewards[0] + mdp.transitions[0] @ ahead, np.arange(mdp.shape.states)
    gains = np.where(mdp.shape.mask[0], values - values[every, today[0]][:, None], -np.inf)
    reward = float(mdp.initial @ mdp.rewards[0][every, today[0]])
    reached = (mdp.transitions[0] > 0).any(axis=1)
    return Effects(gains, reward, float(mdp.initial @ _spread(reached, ahead)))


def _spread(reached: BoolArray, ahead: FloatArray) -> FloatArray:
    """Standard deviation of ``ahead`` over the states that each state leads to."""
    even = reached / reached.sum(axis=1, keepdims=True)
    spread: FloatArray = np.sqrt(np.maximum(even @ ahead**2 - (even @ ahead) ** 2, 0.0))
    return spread


@dataclass(frozen=True)
class Assumed:
    """A family of worlds, rewards from 0 to 1; without a spread it is drawn."""

    effect: float
    reward: float = 0.5
    spread: float | None = None

    def world(self, problem: Problem, rng: np.random.Generator) -> TabularMDP:
        """One of them, of the problem's shape, with equally many people in every start state."""
        shape, start = problem.shape, problem.start
        moves = rng.dirichlet(np.full(shape.states, _EVEN), (shape.horizon, shape.states))
        quality = rng.uniform(-0.5, 0.5, shape.states)
        stay, draw, share = rng.random(3)
        later: float | None = share
        if problem.stationary:
            moves, later = np.broadcast_to(moves[:1], moves.shape), None
        tried = (draw / 2,) if self.spread is None else np.linspace(0, 1, 17)
        bases = [self._today(problem, moves, quality, stay, t) for t in tried]
        if self.spread is not None:
            bases.sort(key=lambda base: abs(base[2] - float(self.spread or 0)))
        moves, rewards, _ = bases[0]
        worth = np.tile(rng.uniform(-1.0, 0.5, shape.visits[1:]), (shape.horizon, 1, 1))
        others = shape.mask & (np.arange(shape.actions) != shape.first[..., None])
        best = np.where(others, rng.random(shape.visits[1:]), -1.0).argmax(axis=-1)
        np.put_along_axis(worth, best[..., None], 1.0, axis=-1)
        np.put_along_axis(worth, shape.first[..., None], 0.0, axis=-1)
        moves, rewards = _with_effects(moves, rewards, self.effect * worth, later, shape.mask)
        return TabularMDP(
            transitions=moves,
            rewards=rewards,
            initial=start / start.sum(),
            allowed=shape.allowed,
        )

    def _today(
        self, problem: Problem, moves: FloatArray, quality: FloatArray, stay: float, t: float
    ) -> tuple[FloatArray, FloatArray, float]:
        """Moves ``[H, S, S]`` and rewards ``[H, S]`` of today, and their spread, which t raises."""
        start, (horizon, states) = problem.start, moves.shape[:2]
        stay = stay + (1 - stay) * max(0.0, 2 * t - 1)
        stays = np.full((horizon, 1, 1), stay)
        if not problem.stationary:
            stays[0] = 0.0
        moves = stays * np.eye(states) + (1 - stays) * moves
        rewards = np.tile(0.5 + min(1.0, 2 * t) * quality, (horizon, 1))
        rewards[: horizon if problem.stationary else 1, start] = self.reward
        ahead = _ahead(moves, rewards)[0]
        return moves, rewards, float(_spread(moves[0] > 0, ahead)[start].mean())


def _ahead(moves: FloatArray, rewards: FloatArray) -> FloatArray:
    """``[H, S]``: what next states are worth at each step, today."""
    ahead = np.zeros_like(rewards)
    for h in reversed(range(len(rewards) - 1)):
        ahead[h] = rewards[h + 1] + moves[h + 1] @ ahead[h + 1]
    return ahead


def _with_effects(
    moves: FloatArray,
    rewards: FloatArray,
    gains: FloatArray,
    later: float | None,
    mask: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """Actions that earn ``gains`` ``[H, S, A]`` more than today's, in part by where they lead."""
    horizon, states, actions = gains.shape
    moved, earned = np.zeros((horizon, states, actions, states)), np.zeros_like(gains)
    ahead, single = np.zeros(states), np.eye(states)
    for h in reversed(range(horizon)):
        now, gain, mean = rewards[h][:, None], gains[h], (moves[h] @ ahead)[:, None]
        led = np.zeros_like(gain)
        if later is not None:  # what the reward has no room for is in the moves, if they have
            led = np.clip(later * gain, gain - (1 - now), gain + now)
        up = (led > 0)[..., None]
        room = np.where(led > 0, ahead.max() - mean, mean - ahead.min())
        share = np.clip(np.abs(led) / np.maximum(room, 1e-12), 0.0, 1.0)[..., None]
        where = np.where(up, single[ahead.argmax()], single[ahead.argmin()])
        moved[h] = (1 - share) * moves[h][:, None] + share * where
        earned[h] = np.clip(now + gain - (moved[h] @ ahead - mean), 0.0, 1.0)
        ahead = np.where(mask[h], earned[h] + moved[h] @ ahead, -np.inf).max(axis=-1)
    return moved, earned


class Outcome(NamedTuple):
    """What became of simulated studies, one entry per run.

    Attributes:
        right: share of people who begin where the right action is recommended.
        wrong: likewise, of an action that earns less than today's.
        gained: what the recommended policy earns more than today's, per person.
        possible: what the best policy does.
        recruitments: batches.
        needed: ``[runs, starts]``, the effect from which the study is right there.
    """

    right: FloatArray
    wrong: FloatArray
    gained: FloatArray
    possible: FloatArray
    recruitments: FloatArray
    needed: FloatArray


def run_study(
    mdp: TabularMDP,
    spec: LearnerSpec,
    problem: Problem,
    trust: TrustModel,
    settings: Mapping[str, object],
    seeds: RunSeeds,
) -> tuple[Answer, int]:
    """What a study answers whose people live in ``mdp``, rewards from 0 to 1; and its batches."""
    driver = BatchDriver(spec, problem, trust, seeds.generator("policy"), settings)
    rng, noise = seeds.generator("environment"), SimulationSampler(seeds.generator("noise"))
    estimate, learner = StudyEstimate(problem, driver.mechanism), driver.learner
    done = batches = 0
    while problem.episodes - done >= driver.min_users:
        batch = driver.ask()
        released = learner.mechanism.simulate(
            lambda users: sample_counts(mdp, batch.policy, users, rng),  # noqa: B023
            batch.users,
            sampler=noise,
            support=driver.support(),
        )
        driver.learn(released)
        estimate.add(released, batch.policy)
        done, batches = done + batch.users, batches + 1
    return estimate.answer(driver.greedy()), batches


@dataclass(frozen=True, eq=False)
class Simulation:
    """Studies of one learner with one problem's public facts, in worlds that are drawn.

    Attributes:
        learner: by its name.
        problem: its people are replaced by those of each row.
        settings: the learner's own.
        runs: studies of each row.
        seed: of everything that is drawn; rows share their worlds.
    """

    learner: str
    problem: Problem
    settings: Mapping[str, object]
    runs: int = RUNS
    seed: int = 0

    def outcome(self, assumed: Assumed, trust: TrustModel, people: int) -> Outcome:
        """Simulate."""
        problem = dataclasses.replace(self.problem, episodes=people)
        spec, rows = get_learner(self.learner), list[Any]()
        begin, nothing = np.flatnonzero(_choices(problem)), DeterministicPolicy(problem.shape.first)
        for run in range(self.runs):
            seeds = RunSeeds(self.seed, run)
            world = assumed.world(problem, np.random.default_rng((self.seed, run)))
            answer, batches = run_study(world, spec, problem, trust, self.settings, seeds)
            gains, meter = effects_of(world).gains, RegretMeter(world)
            today = meter.regret(nothing)
            chosen = gains[begin, answer.policy.actions[0, begin]]
            nearest = gains[begin, answer.alternative[0, begin]]
            short = SURE * answer.standard_error[0, begin] - answer.difference[0, begin]
            rows.append(
                (
                    (chosen >= assumed.effect / 2).mean(),
                    (chosen < 0).mean(),
                    today - meter.regret(answer.policy),
                    today,
                    batches,
                    np.where(nearest >= assumed.effect / 2, assumed.effect + short, np.inf),
                )
            )
        return Outcome(*(np.array(column, np.float64) for column in zip(*rows, strict=True)))

    def smallest_difference(
        self, assumed: Assumed, trust: TrustModel, people: int, found: Outcome | None = None
    ) -> float:
        """The effect that is found with probability 0.8; infinite if rewards have no room for it.

        Args:
            assumed: its effect is the first that is tried.
            trust: who sees raw episodes.
            people: who take part.
            found: what became of it, if that is known.
        """
        effect, most = assumed.effect, 1 - assumed.reward
        for _ in range(_ROUNDS):
            assumed = dataclasses.replace(assumed, effect=effect)
            found = found or self.outcome(assumed, trust, people)
            needed = float(np.quantile(found.needed, POWER, method="higher"))
            if needed > most and effect >= most:
                return math.inf
            tried, effect, found = effect, min(most, max(needed, effect / 4)), None
            if abs(effect - tried) <= _CLOSE * tried:
                break
        return effect


class Expected(NamedTuple):
    """What a study will find, said when it starts.

    Attributes:
        smallest_difference: that is found with probability 0.8, in the units of its rewards; None
            if none is, or nobody simulated it.
        sentence: the same for people.
    """

    smallest_difference: float | None
    sentence: str


def expect(config: JsonObject) -> Expected:
    """Of a study with this configuration, by a few simulated ones (see `plan_study` for more)."""
    return _expect(json.dumps({**config, "seed": 0}, sort_keys=True))


@functools.lru_cache(maxsize=16)
def _expect(text: str) -> Expected:
    config = json.loads(text)
    shape, (low, high) = configs.vocabulary_of(config).shape, configs.table_of(config).reward_range
    if math.prod(shape.transitions) > _MOST_CELLS:
        return Expected(
            None,
            "Not simulated: a problem of this size takes more than seconds. `discreet plan` says "
            "how small a difference such a study finds.",
        )
    try:
        simulation = simulation_of(config, _FEW)
    except UnsupportedError as error:
        return Expected(None, str(error))
    trust, people, assumed = configs.trust_of(config), config["episodes"], Assumed(0.1)
    least = (high - low) * simulation.smallest_difference(assumed, trust, people)
    if math.isinf(least):
        return Expected(
            None,
            f"Too small: {people:,} users are too few to tell two actions apart that differ by "
            f"{(high - low) / 2:g} at the first step; more users, fewer batches or a larger "
            f"epsilon would help (`discreet plan`).",
        )
    return Expected(
        least,
        f"An action that earns about {least:.2g} more than today's from the first step on is "
        f"recommended in 8 of 10 such studies, one that earns less more in fewer ({_FEW} studies "
        f"of random problems of this shape were simulated; `discreet plan` has other sizes). "
        f"{_HOPEFUL}",
    )


@dataclass(frozen=True)
class PlanRow:
    """One size and guarantee; differences in the units of the design's rewards.

    Attributes:
        people: who take part.
        trust: by name.
        epsilon: None without privacy.
        delta: likewise.
        smallest_difference: what is found with probability 0.8; None: nothing that rewards have
            room for.
        right: probability that an action worth half of the effect or more is recommended.
        wrong: probability that an action worse than today's is.
        gain: expected share of what the best policy would earn more than today's.
        recruitments: batches, on average.
    """

    people: int
    trust: str
    epsilon: float | None
    delta: float | None
    smallest_difference: float | None
    right: float
    wrong: float
    gain: float
    recruitments: float


@dataclass(frozen=True)
class StudyPlan:
    """What `plan_study` found.

    Attributes:
        learner: of the design.
        effect: that was stated, in units.
        reward: mean of a step today, in units.
        spread: of what the rest of an episode is worth, in units; None: drawn.
        reward_range: the units.
        runs: simulated studies of each row.
        rows: people by trust by epsilon.
    """

    learner: str
    effect: float
    reward: float
    spread: float | None
    reward_range: tuple[float, float]
    runs: int
    rows: tuple[PlanRow, ...]

    @property
    def most(self) -> float:
        """The largest difference that is looked for: what the reward of a step has room for."""
        return self.reward_range[1] - self.reward

    @property
    def words(self) -> str:
        """What the columns are, in two sentences."""
        return (
            "Smallest difference: found with probability 0.8. Right, wrong: the study recommends, "
            "at the first step, an action worth half of the effect or more, or one worse than "
            "today's; gain: share of what the best policy earns more than today's."
        )

    @property
    def assumed(self) -> str:
        """What the numbers stand on, in two sentences."""
        spread = "is drawn" if self.spread is None else f"is {self.spread:g}"
        return (
            f"Assumed: {self.runs} simulated studies per row, in random worlds of this shape where "
            f"in every state at every step one action earns {self.effect:g} more than today's "
            f"(the first) from there on, by its reward and by where it leads, and others at most "
            f"half as much more. Rewards are {self.reward_range[0]:g} or "
            f"{self.reward_range[1]:g}, {self.reward:g} on average at the first step today, and "
            f"the spread of what next states are worth {spread}. {_HOPEFUL}"
        )

    def to_dict(self) -> dict[str, Plain]:
        """Plain values."""
        plain: dict[str, Any] = dataclasses.asdict(self)
        lists = {name: list(plain[name]) for name in ("reward_range", "rows")}
        return {**plain, **lists, "assumed": self.assumed}


def plan_study(
    design: Design | str | Path,
    *,
    people: Sequence[int] | None = None,
    epsilon: Sequence[float] | None = None,
    trust: Sequence[str] | None = None,
    effect: float | None = None,
    reward: float | None = None,
    spread: float | None = None,
    runs: int = RUNS,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> StudyPlan:
    """What studies of these sizes and guarantees find, beside none: public facts and simulation.

    Args:
        design: a design, or its file.
        people: sizes; half, once, twice and five times the design's.
        epsilon: the design's under every trust model, and half and twice of it under its own.
        trust: models by name; all that the learner runs under. No privacy is always beside.
        effect: how much more the best action earns than today's, from the first step on, in units
            of the design's rewards; a tenth of their range.
        reward: mean reward of the first step today; the middle, where chance is largest.
        spread: standard deviation of what the rest of an episode is worth, over next states.
        runs: simulated studies per row and step of the search.
        seed: of all that is drawn.
        progress: told what begins.

    Returns:
        A row for each, those of one size together, no privacy first.
    """
    if not isinstance(design, Design):
        design = read_design(design)
    _validate.count(runs=runs)
    simulation, (low, high) = _simulation(design, runs, seed), design.format.reward_range
    assumed = _assumed(simulation.problem, (low, high), effect, reward, spread)
    rows = []
    models = list(_models(design, epsilon, trust))
    for size in _sizes(simulation.problem.episodes, people):
        for model in models:
            progress(f"{size:,} people, {_said(model)}")
            rows.append(_row(simulation, assumed, model, size, high - low))
    return StudyPlan(
        design.learner,
        assumed.effect * (high - low),
        low + assumed.reward * (high - low),
        None if spread is None else float(spread),
        (low, high),
        runs,
        tuple(rows),
    )


def _row(
    simulation: Simulation, assumed: Assumed, trust: TrustModel, people: int, unit: float
) -> PlanRow:
    epsilon, delta = getattr(trust, "epsilon", None), getattr(trust, "delta", None)
    found = simulation.outcome(assumed, trust, people)
    least = simulation.smallest_difference(assumed, trust, people, found)
    return PlanRow(
        people,
        trust.name,
        epsilon,
        delta,
        least * unit if math.isfinite(least) else None,
        float(found.right.mean()),
        float(found.wrong.mean()),
        float(found.gained.sum() / found.possible.sum()) if found.possible.any() else 0.0,
        float(found.recruitments.mean()),
    )


def _said(trust: TrustModel) -> str:
    epsilon = getattr(trust, "epsilon", None)
    return "no privacy" if epsilon is None else f"{trust.name}, epsilon {rounded_up(epsilon)}"


def _simulation(design: Design, runs: int, seed: int) -> Simulation:
    given = design.arguments()
    names = {"states": given.pop("states"), "actions": given.pop("actions")}
    names["steps"] = given.pop("horizon")
    facts = ("learner", "trust", "episodes", "start_states", "stationary", "table", "allowed")
    kept: dict[str, Any] = {name: given.pop(name) for name in facts}
    config = configs.make_config(
        names=names, **kept, sampler="simulation", seed=seed, settings=given
    )
    return simulation_of(config, runs)


def simulation_of(config: JsonObject, runs: int) -> Simulation:
    """Of a study with this configuration; refused where its learner has no batches."""
    spec, trust = get_learner(config["learner"]), configs.trust_of(config)
    check_trust(spec, trust)
    if spec.make is None or not issubclass(spec.make, BatchLearner):
        raise UnsupportedError(
            f"Learner {spec.name!r} makes a policy for every user, which is not simulated "
            f'beforehand; rehearse the study, or plan with learner = "trial".'
        )
    problem = configs.problem_of(config)
    if not _choices(problem).any():
        raise UnsupportedError(
            "There is one action only where episodes begin, and nothing to tell it apart from; a "
            "plan needs a second action there."
        )
    return Simulation(spec.name, problem, dict(config["settings"]), runs, config["seed"])


def _choices(problem: Problem) -> BoolArray:
    """``bool[S]``: where episodes begin and more than one action is possible."""
    several: BoolArray = problem.shape.mask[0].sum(axis=-1) > 1
    return problem.start & several


def _assumed(
    problem: Problem,
    reward_range: tuple[float, float],
    effect: float | None,
    reward: float | None,
    spread: float | None,
) -> Assumed:
    """What was stated, with rewards from 0 to 1; refused where it cannot be."""
    (low, high), steps = reward_range, problem.shape.horizon
    unit = high - low
    mean = low + unit / 2 if reward is None else reward
    gain = unit / 10 if effect is None else effect
    _validate.real(reward=mean)
    _validate.positive(effect=gain)
    if not low <= mean <= high:
        raise InvalidInputError(
            f"Expected reward from {low:g} to {high:g}, the range of the design, got reward={mean}."
        )
    if gain > steps * unit:
        raise InvalidInputError(
            f"Expected effect <= {steps * unit:g}, what {steps} steps can earn, got effect={gain}."
        )
    if spread is not None:
        _validate.real(spread=spread)
        most = (steps - 1) * unit / 2
        if not 0 <= spread <= most:
            raise InvalidInputError(
                f"Expected spread from 0 to {most:g}, what {steps - 1} further steps can differ "
                f"by, got spread={spread}."
            )
    return Assumed(gain / unit, (mean - low) / unit, None if spread is None else spread / unit)


def _sizes(own: int, people: Sequence[int] | None) -> list[int]:
    if people is None:
        return [max(1, round(own * times)) for times in _NEIGHBOURS["people"]]
    for size in people:
        _validate.count(people=size)
    return list(dict.fromkeys(int(size) for size in people))


def _models(
    design: Design, epsilons: Sequence[float] | None, names: Sequence[str] | None
) -> Iterator[TrustModel]:
    """No privacy, then every model that was asked for, or the design's own and its neighbours."""
    own, spec = design.trust_model, get_learner(design.learner)
    usual = getattr(own, "epsilon", 1.0)
    yield NoPrivacy()
    for name in _TRUSTS if names is None else names:
        if name == "none" or (names is None and name not in spec.trusts):
            continue
        near = _NEIGHBOURS["epsilon"] if name == own.name else (1.0,)
        for epsilon in [usual * times for times in near] if epsilons is None else epsilons:
            options = {**design.trust, "epsilon": epsilon}
            options.pop("model", None)
            if name != own.name:
                delta = getattr(own, "delta", _DELTA)
                options = {
                    "epsilon": epsilon,
                    "delta": delta or (_DELTA if name == "shuffle" else 0.0),  # it is never pure
                    "participations": getattr(own, "participations", 1),
                }
            model = make_trust(name, **options)
            check_trust(spec, model)
            yield model
