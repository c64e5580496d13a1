"""What a study will find, before anybody is asked, by simulated studies.

Every simulated study has the design's learner, the real mechanism and the rule by which studies
recommend (`study.estimate`: better than today's action by two standard errors, or DEFER).

**Effect.** How much more the best action of the first step earns than today's (the first that is
possible) to the end of the episode, with the best actions after both. Where episodes begin in
several states, they count in proportion to the people who begin there times this gain, for the
effect and for power alike. *Right* is a recommendation, at the first step, of an action worth at
least half of the best one's gain in that state; *wrong* is one of an action that earns less than
today's. The *smallest difference* is the effect with which 80% of the studies are right.

**Without a problem** a plan says what follows from standard errors. Studies are simulated in which
nothing is to be found: every action leads to all states alike and earns 0 or 1 with even chances,
which is the widest spread of rewards. Two actions of the first step that differ by d, and lead to
the same states, are told apart where d is estimated above two of the study's standard errors se, so
with probability Phi(d/se - 2); the smallest difference is the d for which this is 0.8 on average
over simulated studies and states in which episodes begin. Actions that lead to other states have
larger errors. The *null error* is the share of these studies that recommend anything anywhere.

**In a problem** that resembles the real one studies are simulated as they will be: power depends on
the problem as that of an A/B test depends on a standard deviation, and here no single number says
how. A smaller effect is this problem with every action replaced by today's with some probability;
its null replaces all of them.

**Search.** In the square root of the effect, the inverse normal of the share of studies that are
right is nearly a line, -2 without an effect. The next effect to try is where the line comes to 80%
that goes through the nearest on both sides of it, or the last two below it. All effects are tried
with the same seeds, so what is too small once stays so.
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
from scipy.special import ndtr, ndtri

from discreet import _validate
from discreet._seeds import RunSeeds
from discreet._types import BoolArray, FloatArray, Plain
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.learners.base import PublicFacts
from discreet.learners.learn import check_trust, make_batch_learner
from discreet.learners.registry import LearnerSpec, get_learner
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.simulation import sample_counts
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.guarantee import rounded_up
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.trust import NoPrivacy, TrustModel, make_trust
from discreet.study.design import Design, read_design
from discreet.study.estimate import SURE, Answer, StudyEstimate

POWER = 0.8
RUNS = 50
_FEW = 10
"""Simulated studies when one starts."""
_MOST_SIMULATED = 2 * 10**5
"""Transition counters of a problem that is then simulated: a tenth of a second each."""
_ROUNDS = 12
_CLOSE = 0.1
"""The search ends so near to 80% if the next effect is, relatively, as near to the last."""
_NEVER = 0.005
"""Share that stands for no study; its complement for all, after which about 0.4 of the effect is
tried.
"""
_FINE = 1e-4
"""To which the share of actions that are not replaced, and a difference, are searched."""
_HOPELESS = 1e6
_NEIGHBOURS = {"people": (0.5, 1.0, 2.0), "epsilon": (0.5, 1.0, 2.0)}
_TRUSTS = ("central", "shuffle", "local")
_DELTA = 1e-6
"""Where the design has none, and one is needed."""


class Effects(NamedTuple):
    """What actions of the first step earn in a problem, rewards from 0 to 1.

    Attributes:
        gains: ``[S, A]``, what actions earn more than today's, the best ones following.
        weights: ``[S]``, of the states: how many people begin there, times the best gain.
        effect: the best gain, on average with these weights.
    """

    gains: FloatArray
    weights: FloatArray
    effect: float


def effects_of(
    mdp: TabularMDP, moves: FloatArray | None = None, rewards: FloatArray | None = None
) -> Effects:
    """The numbers of a known problem, perhaps with other transitions and rewards."""
    moves, mask = mdp.transitions if moves is None else moves, mdp.shape.mask
    rewards, ahead = mdp.rewards if rewards is None else rewards, np.zeros(mdp.shape.states)
    for h in reversed(range(mdp.horizon)):
        values = np.where(mask[h], rewards[h] + moves[h] @ ahead, -np.inf)
        ahead = values.max(axis=1)
    gains = values - np.take_along_axis(values, mdp.shape.first[0][:, None], 1)
    best = gains.max(axis=1)
    total = float(mdp.initial @ best)
    weights = mdp.initial * best / total if total > 0 else mdp.initial
    return Effects(gains, weights, float(weights @ best))


def weakened(mdp: TabularMDP, effect: float) -> TabularMDP:
    """The problem with so small an effect: actions are replaced by today's, at random."""
    if effects_of(mdp).effect <= effect:
        return mdp
    today, low, high = mdp.shape.first[..., None], 0.0, 1.0
    moves = np.take_along_axis(mdp.transitions, today[..., None], 2)
    rewards = np.take_along_axis(mdp.rewards, today, 2)
    further, more = mdp.transitions - moves, mdp.rewards - rewards
    while high - low > _FINE:
        share = (low + high) / 2
        reached = effects_of(mdp, moves + share * further, rewards + share * more).effect >= effect
        low, high = (low, share) if reached else (share, high)
    return mdp.replace(transitions=moves + high * further, rewards=rewards + high * more)


def null_of(mdp: TabularMDP) -> TabularMDP:
    """The problem with today's action in place of every other."""
    today = mdp.shape.first[..., None]
    return mdp.replace(
        transitions=np.broadcast_to(
            np.take_along_axis(mdp.transitions, today[..., None], 2), mdp.shape.transitions
        ),
        rewards=np.broadcast_to(np.take_along_axis(mdp.rewards, today, 2), mdp.shape.visits),
    )


def even_problem(problem: PublicFacts) -> TabularMDP:
    """Nothing is to be found: every action leads everywhere, and earns 0 or 1 with even chances."""
    shape, start = problem.shape, problem.start
    return TabularMDP(
        transitions=np.full(shape.transitions, 1 / shape.states),
        rewards=np.full(shape.visits, 0.5),
        initial=start / start.sum(),
        allowed=shape.allowed,
    )


class Outcome(NamedTuple):
    """What became of simulated studies, one entry per run.

    Attributes:
        effect: of their problems.
        right: share of the gain of first steps that begins where a right action is recommended.
        wrong: share of people for whom an action is recommended that earns less than today's.
        gained: what the recommended policy earns more than today's, per person.
        possible: what the best policy does.
        recruitments: batches.
    """

    effect: float
    right: FloatArray
    wrong: FloatArray
    gained: FloatArray
    possible: FloatArray
    recruitments: FloatArray


def run_study(
    mdp: TabularMDP,
    spec: LearnerSpec,
    problem: PublicFacts,
    trust: TrustModel,
    settings: Mapping[str, object],
    seeds: RunSeeds,
) -> tuple[Answer, int]:
    """What a study answers whose people live in ``mdp``, rewards from 0 to 1; and its batches."""
    learner = make_batch_learner(spec, problem, trust, seeds.generator("policy"), dict(settings))
    rng, noise = seeds.generator("environment"), SimulationSampler(seeds.generator("noise"))
    mechanism = learner.mechanism
    estimate = StudyEstimate(problem, mechanism)
    done = batches = 0
    while problem.episodes - done >= mechanism.min_users:
        batch = learner.ask()
        released = mechanism.simulate(
            lambda users: sample_counts(mdp, batch.policy, users, rng),  # noqa: B023
            batch.users,
            sampler=noise,
            support=batch.policy.support(problem.shape, problem.start),
        )
        learner.tell(learner.reading(released))
        estimate.add(released, batch.policy)
        done, batches = done + batch.users, batches + 1
    return estimate.answer(learner.greedy()), batches


class Nothing(NamedTuple):
    """What became of simulated studies in which nothing is to be found.

    Attributes:
        recommended: ``bool[n]``, whether anything is recommended in place of today's action.
        errors: ``[n, S]``, of differences at the first step, in states with a choice.
        recruitments: ``[n]``, batches.
    """

    recommended: BoolArray
    errors: FloatArray
    recruitments: FloatArray

    @property
    def error(self) -> float:
        """The share that recommends anything."""
        return float(self.recommended.mean())

    def smallest_difference(self) -> float:
        """What is told apart with probability 0.8, by these errors."""
        low, high = 0.0, 1.0
        while self._power(high) < POWER:
            high *= 2
            if high > _HOPELESS:
                return math.inf
        while high - low > _FINE * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self._power(middle) < POWER else (low, middle)
        return high

    def _power(self, difference: float) -> float:
        return float(ndtr(difference / self.errors - SURE).mean())


@dataclass(frozen=True, eq=False)
class Simulation:
    """Studies of one learner with one problem's public facts.

    Attributes:
        learner: by its name.
        problem: its people are replaced by those of each row.
        settings: the learner's own.
        model: the problem that people live in; None: one in which nothing is to be found.
        runs: studies of each row.
        seed: of everything that is drawn; rows share their problems.
    """

    learner: str
    problem: PublicFacts
    settings: Mapping[str, object]
    model: TabularMDP | None = None
    runs: int = RUNS
    seed: int = 0

    @property
    def most(self) -> float:
        """The largest effect that is looked for."""
        if self.model is None:
            return float(self.problem.shape.horizon)
        return effects_of(self.model).effect

    def studies(
        self, mdp: TabularMDP, trust: TrustModel, people: int
    ) -> Iterator[tuple[Answer, int]]:
        """Answers of studies whose people live in ``mdp``, and their batches."""
        problem = dataclasses.replace(self.problem, episodes=people)
        for run in range(self.runs):
            seeds = RunSeeds(self.seed, run)
            spec = get_learner(self.learner)
            yield run_study(mdp, spec, problem, trust, self.settings, seeds)

    def nothing(self, trust: TrustModel, people: int) -> Nothing:
        """Simulate studies in which nothing is to be found."""
        mdp = even_problem(self.problem) if self.model is None else null_of(self.model)
        where, rows = _choices(self.problem), list[Any]()
        for answer, batches in self.studies(mdp, trust, people):
            rows.append((not answer.defer.all(), answer.standard_error[0][where], batches))
        recommended, errors, recruitments = zip(*rows, strict=True)
        return Nothing(np.array(recommended), np.array(errors), np.array(recruitments, np.float64))

    def outcome(self, effect: float, trust: TrustModel, people: int) -> Outcome:
        """Simulate studies of the given problem with this effect."""
        if self.model is None:
            raise UnsupportedError("Without a problem there is no effect to find; give one.")
        mdp, rows = weakened(self.model, effect), list[Any]()
        (gains, weights, _), meter = effects_of(mdp), RegretMeter(mdp)
        every, best = np.arange(mdp.shape.states), gains.max(axis=1)
        today = meter.regret(DeterministicPolicy(mdp.shape.first))
        for answer, batches in self.studies(mdp, trust, people):
            chosen = gains[every, answer.policy.actions[0]]
            rows.append(
                (
                    weights @ (chosen >= best / 2),
                    mdp.initial @ (chosen < 0),
                    today - meter.regret(answer.policy),
                    today,
                    batches,
                )
            )
        columns = (np.array(column, np.float64) for column in zip(*rows, strict=True))
        return Outcome(effect, *columns)

    def smallest_difference(
        self, effect: float, trust: TrustModel, people: int, found: Outcome | None = None
    ) -> float:
        """The effect that is found with probability 0.8, infinite if there is none.

        Args:
            effect: the first that is tried.
            trust: who sees raw episodes.
            people: who take part.
            found: what became of it, if that is known.
        """
        most, aim = max(effect, self.most), float(ndtri(POWER))
        below, above = [(0.0, -SURE)], None
        for _ in range(_ROUNDS):
            found = found or self.outcome(effect, trust, people)
            share = round(float(found.right.mean()), 9)
            tried = math.sqrt(effect), float(ndtri(np.clip(share, _NEVER, 1 - _NEVER)))
            if share >= POWER:
                above = tried
            elif effect < most:
                below.append(tried)
            else:
                return math.inf
            (low, a), (high, b) = (below[-1], above) if above else below[-2:]
            then = min(most, (low + (high - low) * (aim - a) / (b - a)) ** 2) if b > a else most
            if abs(share - POWER) <= _CLOSE and abs(then - effect) <= _CLOSE * effect:
                return then
            effect, found = then, None
        return effect


class Expected(NamedTuple):
    """What a study will find, said when it starts.

    Attributes:
        smallest_difference: that is found with probability 0.8 by its standard errors, in the
            units of its rewards; None if none is, or nobody simulated it.
        sentence: the same for people.
    """

    smallest_difference: float | None
    sentence: str


def expect(design: Design) -> Expected:
    """Of a study of a checked design, by a few simulated ones (see `plan_study` for more)."""
    return _expect(json.dumps({**design.to_dict(), "seed": 0}, sort_keys=True))


@functools.lru_cache(maxsize=16)
def _expect(text: str) -> Expected:
    design = Design.from_dict(json.loads(text))
    shape, (low, high) = design.vocabulary.shape, design.format.reward_range
    if math.prod(shape.transitions) > _MOST_SIMULATED:
        return Expected(
            None,
            "Not simulated: a problem of this size takes more than seconds. `discreet plan` says "
            "how small a difference such a study finds.",
        )
    try:
        simulation = simulation_of(design, _FEW)
    except UnsupportedError as error:
        return Expected(None, str(error))
    people = design.episodes
    least = simulation.nothing(design.trust_model, people).smallest_difference()
    if not least <= shape.horizon:
        return Expected(
            None,
            f"Too small: {people:,} users are too few to tell two actions of the first step apart, "
            f"whatever they earn; more users, fewer batches or a larger epsilon would help "
            f"(`discreet plan`).",
        )
    said = f"{(high - low) * least:.2g}"
    return Expected(
        (high - low) * least,
        f"Where an action of the first step earns about {said} more than today's and leads to the "
        f"same states, 8 of 10 studies recommend it (by the standard errors of {_FEW} simulated "
        f"ones, rewards at the ends of their range); where it leads to others, fewer do. `discreet "
        f"plan --problem` simulates a problem that is like yours.",
    )


@dataclass(frozen=True)
class PlanRow:
    """One size and guarantee; differences in the units of the design's rewards.

    Attributes:
        people: who take part.
        trust: by name.
        epsilon: None without privacy.
        delta: likewise.
        smallest_difference: what is found with probability 0.8; None: nothing up to the plan's
            ``most``.
        null_error: share of studies that recommend anything where nothing is to be found.
        recruitments: batches, on average.
        right: probability that an action worth half of the best one's gain or more is recommended;
            this and what follows in a given problem only.
        wrong: probability that an action worse than today's is.
        gain: expected share of what the best policy would earn more than today's.
    """

    people: int
    trust: str
    epsilon: float | None
    delta: float | None
    smallest_difference: float | None
    null_error: float
    recruitments: float
    right: float | None = None
    wrong: float | None = None
    gain: float | None = None


@dataclass(frozen=True)
class StudyPlan:
    """What `plan_study` found.

    Attributes:
        learner: of the design.
        problem: the name of the one that was given, if any.
        effect: of its best action, in units.
        most: the largest difference that was looked for, in units.
        reward_range: the units.
        runs: simulated studies of each row.
        rows: people by trust by epsilon.
    """

    learner: str
    problem: str | None
    effect: float | None
    most: float
    reward_range: tuple[float, float]
    runs: int
    rows: tuple[PlanRow, ...]

    @property
    def words(self) -> str:
        """What the columns are."""
        said = (
            "Difference: the smallest that is found with probability 0.8. Null error: studies that "
            "recommend anything where nothing is better than today's."
        )
        if self.problem is None:
            return said
        return (
            f"{said} Right, wrong: at the first step the study recommends an action worth half of "
            f"the best one's gain or more, or one worse than today's; gain: share of what the best "
            f"policy earns more."
        )

    @property
    def assumed(self) -> str:
        """What the numbers stand on."""
        if self.problem is None:
            low, high = self.reward_range
            return (
                f"Assumed: {self.runs} simulated studies per row in which nothing is to be found, "
                f"rewards {low:g} or {high:g} with even chances. Differences follow from their "
                f"standard errors, for two actions of the first step that lead to the same states; "
                f"where they lead to others a study finds less. For a better answer give a problem "
                f"that resembles yours (--problem)."
            )
        chance = f"{1 / math.sqrt(self.runs):.0%}"
        return (
            f"Assumed: {self.runs} simulated studies per row (chance: up to ±{chance}), in "
            f"{self.problem}, whose best action of the first step earns {self.effect:.3g} more "
            f"than today's (the first) to the end of the episode, the best actions following both. "
            f"Smaller differences are those of the same problem with actions replaced by today's "
            f"at random. The numbers are as good as it resembles yours. If it was estimated from "
            f"people's data without a private release, no guarantee covers it, nor this table."
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
    problem: TabularMDP | None = None,
    effect: float | None = None,
    runs: int = RUNS,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> StudyPlan:
    """What studies of these sizes and guarantees find, beside none, by simulation.

    Args:
        design: a design, or its file.
        people: sizes; half, once and twice the design's.
        epsilon: the design's; half and twice of it, too, for the design's own number of people.
        trust: models by name; the design's, and for its own number of people all that the learner
            runs under. No privacy is always beside.
        problem: one that resembles yours, of the design's shape, e.g. of `discreet.estimate_model`,
            from published figures, or your best guess; its rewards from 0 to 1 stand for the
            design's range. It is not private unless it comes from a private release. Without one,
            the plan says what standard errors say.
        effect: how much more the best action of the problem's first step shall earn than today's,
            the best ones following both, in units of the design's rewards; the problem's own, which
            is the most that it can have, if nobody says.
        runs: simulated studies per row and step of the search.
        seed: of all that is drawn.
        progress: told what begins.

    Returns:
        A row for each, those of one size together, no privacy first.
    """
    if not isinstance(design, Design):
        design = read_design(design)
    _validate.count(runs=runs)
    design = dataclasses.replace(design, sampler="simulation", seed=seed).checked()
    (low, high), simulation = design.format.reward_range, simulation_of(design, runs)
    unit = high - low
    if problem is not None:
        fitted = _fitted(problem, simulation.problem)
        simulation = dataclasses.replace(simulation, model=fitted)
    stated = _effect(simulation, effect, unit)
    own, rows = simulation.problem.episodes, list[PlanRow]()
    pairs = [
        (size, model)
        for size in _sizes(own, people)
        for model in _models(design, epsilon, trust, near=size == own)
    ]
    for size, model in pairs:
        progress(f"{size:,} people, {_said(model)}")
        rows.append(_row(simulation, stated, model, size, unit))
    return StudyPlan(
        design.learner,
        None if problem is None else problem.name or "the given problem",
        None if stated is None else stated * unit,
        simulation.most * unit,
        (low, high),
        runs,
        tuple(rows),
    )


def _row(
    simulation: Simulation, effect: float | None, trust: TrustModel, people: int, unit: float
) -> PlanRow:
    nothing, found = simulation.nothing(trust, people), None
    if effect is None:
        least = nothing.smallest_difference()
    else:
        found = simulation.outcome(effect, trust, people)
        least = simulation.smallest_difference(effect, trust, people, found)
    row = PlanRow(
        people,
        trust.name,
        getattr(trust, "epsilon", None),
        getattr(trust, "delta", None),
        least * unit if least <= simulation.most else None,
        nothing.error,
        float(nothing.recruitments.mean()),
    )
    if found is None:
        return row
    return dataclasses.replace(
        row,
        recruitments=float(found.recruitments.mean()),
        right=float(found.right.mean()),
        wrong=float(found.wrong.mean()),
        gain=float(found.gained.sum() / found.possible.sum()) if found.possible.any() else 0.0,
    )


def _said(trust: TrustModel) -> str:
    epsilon = getattr(trust, "epsilon", None)
    return "no privacy" if epsilon is None else f"{trust.name}, epsilon {rounded_up(epsilon)}"


def _fitted(model: TabularMDP, problem: PublicFacts) -> TabularMDP:
    """The given problem with the design's mask; refused where it is no problem of this design."""
    shape = problem.shape
    if not isinstance(model, TabularMDP) or model.shape != shape:
        raise InvalidInputError(
            f"Expected a problem of the design's {shape.states} states, {shape.actions} actions "
            f"and {shape.horizon} steps, got {model!r}; make one of this size, or mend the design."
        )
    if model.allowed is not None and (model.shape.mask != shape.mask).any():
        raise InvalidInputError(
            "Expected a problem with the design's [[allowed]] actions, got others; leave them out "
            "of the problem, and the design's hold."
        )
    if problem.stationary and not model.stationary:
        raise InvalidInputError(
            "Expected a problem that is the same at every step, as stationary = true in the design "
            "says, got one that differs; leave stationary out of the design, or give arrays for "
            "one step."
        )
    if (model.start & ~problem.start).any():
        state = int(np.flatnonzero(model.start & ~problem.start)[0])
        raise InvalidInputError(
            f"Expected episodes of the problem to begin in start_states of the design, got state "
            f"{state}; add it there, or change the problem's initial."
        )
    initial = np.maximum(model.initial, 1e-15 * problem.start)  # nobody, and yet a start state
    fitted = model.replace(allowed=shape.allowed, initial=initial / initial.sum())
    if effects_of(fitted).effect <= 0:
        raise InvalidInputError(
            "Expected a problem in which another action than today's (the first that is possible) "
            "is the best where episodes begin, got one without; a plan looks at the first step "
            "alone, and nothing is to be found there."
        )
    return fitted


def _effect(simulation: Simulation, effect: float | None, unit: float) -> float | None:
    """What was stated, with rewards from 0 to 1; refused where it cannot be."""
    if effect is not None:
        _validate.positive(effect=effect)
    if simulation.model is None:
        if effect is not None:
            raise InvalidInputError(
                f"Expected an effect beside a problem that has it, got effect={effect} alone; give "
                f"the problem (--problem), or leave the effect out."
            )
        return None
    most = simulation.most
    if effect is None:
        return most
    if effect > most * unit * (1 + 1e-9):
        raise InvalidInputError(
            f"Expected effect <= {most * unit:g}, the problem's own, got effect={effect}."
        )
    return effect / unit


def simulation_of(design: Design, runs: int) -> Simulation:
    """Of a study of a checked design; refused where its learner has no batches."""
    spec, problem = design.spec, design.problem
    if not _choices(problem).any():
        raise UnsupportedError(
            "There is one action only where episodes begin, and nothing to tell it apart from; a "
            "plan needs a second action there."
        )
    return Simulation(spec.name, problem, design.settings, runs=runs, seed=design.seed)


def _choices(problem: PublicFacts) -> BoolArray:
    """``bool[S]``: where episodes begin and more than one action is possible."""
    several: BoolArray = problem.shape.mask[0].sum(axis=-1) > 1
    return problem.start & several


def _sizes(own: int, people: Sequence[int] | None) -> list[int]:
    if people is None:
        return [max(1, round(own * times)) for times in _NEIGHBOURS["people"]]
    for size in people:
        _validate.count(people=size)
    return list(dict.fromkeys(int(size) for size in people))


def _models(
    design: Design, epsilons: Sequence[float] | None, names: Sequence[str] | None, *, near: bool
) -> Iterator[TrustModel]:
    """No privacy, then every model that was asked for, or the design's own, ``near`` it too."""
    own, spec = design.trust_model, get_learner(design.learner)
    usual = getattr(own, "epsilon", 1.0)
    yield NoPrivacy()
    for name in _TRUSTS if names is None else names:
        far = name != own.name and not near
        if name == "none" or (names is None and (far or name not in spec.trusts)):
            continue
        factors = _NEIGHBOURS["epsilon"] if near and name == own.name else (1.0,)
        for epsilon in [usual * times for times in factors] if epsilons is None else epsilons:
            if name == own.name:
                model = dataclasses.replace(own, **{"epsilon": epsilon})
            else:
                delta = getattr(own, "delta", _DELTA)
                model = make_trust(
                    name,
                    epsilon=epsilon,
                    delta=delta or (_DELTA if name == "shuffle" else 0.0),  # it is never pure
                    participations=own.participations,
                )
            check_trust(spec, model)
            yield model
