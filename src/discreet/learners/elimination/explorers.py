"""From private counts to a model, and from a model to the next policies to play.

**The absorbing model.** A transition (h, x, a, x') that was counted too rarely is *infrequent*: its
probability goes to an absorbing state that is worth nothing in the estimate and in the lower bound
(Definition 5 of 001); optimism for it enters the upper bound only. At the last step no transition
is needed.

**The practical structure**, in polynomial time. A stage is two batches. *Crude*: a mixture that
visits every (h, x, a) as often as an active policy can. *Fine*: the coverage design together with
that mixture (paper 001), or the mixture again (000). After each batch the accumulated private model
is renewed, and with it the active set: all policies whose upper value reaches the best lower value.
All of it is post-processing of the releases.

**The printed structure**, where the print is consistent, on an explicit list of policies. A stage:
for each step h, a batch that explores the (x, a) of that step in the crude model of the steps
before it (Algorithm 2); one batch of fine exploration (Algorithm 3); then every listed policy whose
confidence interval lies below another's is dropped for good. Only the data of the current stage is
used, unless ``forgetting=False``. Visits are released beside transitions and rewards, as printed:
the post-processing (equation 6 of 001) holds sums of transitions against a visit counter with the
noise of *one* counter. A sum of transitions has X times its variance, and Assumption 4 would fail
for large X (at X = 24, H = 2 in almost every draw). Choices where the print is silent: tuples that
no listed policy reaches are dropped; a step with nothing to explore plays the greedy policy; the
crude model starts with all mass absorbed; counters that the public policy of a batch cannot touch
are zeros, not noise.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray, JsonObject, Plain
from discreet.errors import InvalidInputError
from discreet.learners.base import PublicFacts
from discreet.learners.elimination.active_set import (
    Design,
    ImplicitActiveSet,
    check_decisions,
    coverage_design,
    enumerate_policies,
    merge_policies,
    occupancy_of,
    weighted_plan,
)
from discreet.learners.elimination.settings import (
    INFREQUENT,
    EliminationSettings,
    PrintedConstants,
)
from discreet.mdp.dense import optimal_values
from discreet.mdp.policies import (
    DeterministicPolicy,
    MixturePolicy,
    Policy,
    StochasticPolicy,
    uniform_policy,
)
from discreet.mdp.shape import Shape
from discreet.privacy.projection.valid_counts import valid_counts
from discreet.privacy.statistics import PrivateCounts


class MeasuredVisits(NamedTuple):
    """Visits ``[H, X, A]`` that were counted besides the transitions, and their noise variance."""

    visits: FloatArray
    variance: FloatArray


@dataclass(eq=False)
class CountPool:
    """Private counts summed over batches, each batch with one public weight.

    Attributes:
        transitions: ``[H, X, A, X]``.
        rewards: ``[H, X, A]``, sums of r - ``centre``.
        transition_variance: ``[H, X, A]``, noise variance of one accumulated transition counter.
        reward_variance: ``[H, X, A]``, noise variance of one accumulated reward counter.
        users: how many users they come from.
        measured: visits that were counted besides, or None.
        centre: 1/2 for centred rewards, else 0.
    """

    transitions: FloatArray
    rewards: FloatArray
    transition_variance: FloatArray
    reward_variance: FloatArray
    users: int
    measured: MeasuredVisits | None = None
    centre: float = 0.0

    @classmethod
    def empty(cls, shape: Shape) -> "CountPool":
        visits = shape.visits
        zeros = np.zeros(shape.transitions)
        return cls(zeros, np.zeros(visits), np.zeros(visits), np.zeros(visits), 0)

    @classmethod
    def of_release(cls, counts: PrivateCounts) -> "CountPool":
        """One batch as it was released, with the exact variance of its noise."""
        transitions, rewards, visits = counts.transitions, counts.rewards, counts.visits
        if transitions is None or rewards is None:
            raise InvalidInputError(
                "Policy elimination needs transitions and rewards; calibrate it with "
                "statistics=('transitions', 'rewards')."
            )
        if visits is None and not counts.last_transitions:
            raise InvalidInputError(
                "Policy elimination plays mixtures: it needs the transitions of the last step, or "
                "visits, to know who played what there; calibrate with last_transitions=True."
            )
        noisy, variance = counts.support.astype(np.float64), counts.noise_variance
        spread = variance["transitions"] * noisy
        if not counts.last_transitions:
            spread[-1] = 0.0
        return cls(
            transitions,
            rewards,
            spread,
            variance["rewards"] * noisy,
            counts.users,
            None if visits is None else MeasuredVisits(visits, variance["visits"] * noisy),
            counts.centre,
        )

    def add(self, other: "CountPool", weight: float = 1.0) -> None:
        """One more batch of other users."""
        self.transitions += weight * other.transitions
        self.rewards += weight * other.rewards
        self.transition_variance += weight**2 * other.transition_variance
        self.reward_variance += weight**2 * other.reward_variance
        self.users += other.users
        self.centre = other.centre  # one mechanism releases all batches in one form
        if other.measured is not None:
            zero = np.zeros_like(self.rewards)
            visits, variance = self.measured or (zero, zero)
            more, noise = other.measured
            self.measured = MeasuredVisits(visits + weight * more, variance + weight**2 * noise)

    @property
    def widest(self) -> FloatArray:
        """``[H, X, A]``: the largest noise variance of a counter of any statistic."""
        own = np.maximum(self.transition_variance, self.reward_variance)
        return own if self.measured is None else np.maximum(own, self.measured.variance)

    def visit_sums(self) -> FloatArray:
        """``[H, X, A]``: all measurements of visits together, each by its precision; unbiased."""
        return self._with_measured(self.transitions.sum(axis=-1))

    def visits(self) -> FloatArray:
        """As `visit_sums`, of counts that are not negative."""
        return self._with_measured(np.maximum(self.transitions, 0.0).sum(axis=-1), least=0.0)

    def _with_measured(self, outflow: FloatArray, least: float = -np.inf) -> FloatArray:
        if self.measured is None:
            return outflow
        visits, variance = self.measured
        noise = self.transitions.shape[-1] * self.transition_variance
        share = np.divide(noise, noise + variance, out=np.ones_like(noise), where=noise > 0.0)
        mixed: FloatArray = (1.0 - share) * outflow + share * np.maximum(visits, least)
        return mixed

    def to_dict(self) -> dict[str, Plain]:
        plain = {name: getattr(self, name).tolist() for name in _ARRAYS}
        if self.measured is not None:
            visits, variance = self.measured
            plain |= {"measured": visits.tolist(), "measured_variance": variance.tolist()}
        return plain | {"users": self.users, "centre": self.centre}

    @classmethod
    def from_dict(cls, data: JsonObject) -> "CountPool":
        def read(name: str) -> FloatArray:
            return np.array(data[name], np.float64)

        arrays = {name: read(name) for name in _ARRAYS}
        measured = None
        if "measured" in data:
            measured = MeasuredVisits(read("measured"), read("measured_variance"))
        centre = float(data.get("centre", 0.0))
        return cls(**arrays, users=int(data["users"]), measured=measured, centre=centre)


_ARRAYS = ("transitions", "rewards", "transition_variance", "reward_variance")


@dataclass(frozen=True, eq=False)
class AbsorbingModel:
    """An estimated sub-stochastic model.

    Attributes:
        transitions: ``[H, X, A, X]``, zero for infrequent tuples and at the last step.
        rewards: ``[H, X, A]`` in [0, 1].
        initial: ``[X]``, distribution of the first state.
        visits: ``[H, X, A]``, the accumulated counts behind the estimates.
        noise: ``[H, X, A]``, noise variance of one accumulated transition counter.
        reward_noise: ``[H, X, A]``, that of one accumulated reward counter.
    """

    transitions: FloatArray
    rewards: FloatArray
    initial: FloatArray
    visits: FloatArray
    noise: FloatArray
    reward_noise: FloatArray

    @property
    def absorbed(self) -> FloatArray:
        """``[H, X, A]``, the probability of leaving for the absorbing state (0 at the last)."""
        missing: FloatArray = np.clip(1.0 - self.transitions.sum(axis=-1), 0.0, 1.0)
        missing[-1] = 0.0
        return missing

    @property
    def known(self) -> BoolArray:
        """``bool[H, X]``, the states with some evidence about what follows or is earned there."""
        evidence: BoolArray = np.any(self.transitions > 0.0, axis=(2, 3))
        evidence[-1] = (self.visits[-1] > 0.0).any(axis=-1)
        return evidence


def estimate_initial(pool: CountPool, start: BoolArray) -> FloatArray:
    """Distribution of the first state: known if there is one start state, else from the counts."""
    counts = np.maximum(pool.visit_sums()[0].sum(axis=1), 0.0) * start
    weights: FloatArray = counts if counts.sum() > 0.0 else start.astype(np.float64)
    normalised: FloatArray = weights / weights.sum()
    return normalised


def frequent_tuples(pool: CountPool, threshold: FloatArray) -> BoolArray:
    """``bool[H, X, A, X]``: counted more often than ``threshold[H, X, A]``, before the last step.

    What is left out is the W of the papers.
    """
    frequent: BoolArray = pool.transitions > threshold[..., None]
    frequent[-1] = False
    return frequent


def absorbing_model(
    pool: CountPool,
    threshold: FloatArray,
    start: BoolArray,
    *,
    frequent: BoolArray | None = None,
) -> AbsorbingModel:
    """The model of accumulated counts: Definition 5.

    A frequent tuple has the probability N(x, a, x')/N(x, a), where N(x, a) counts the infrequent
    ones, too; their share is absorbed. Rewards are R(x, a)/N(x, a), of the same N(x, a); a pair
    visited at most ``threshold[H, X, A]`` times has none. ``frequent[H, X, A, X]`` is given where
    other counts have decided it.
    """
    if frequent is None:
        frequent = frequent_tuples(pool, threshold)
    counts, visits = np.maximum(pool.transitions, 0.0), pool.visits()
    total = np.maximum(counts.sum(axis=-1), 1.0)  # of these: probabilities must not exceed one
    transitions = np.where(frequent, counts / total[..., None], 0.0)
    seen = visits > np.maximum(threshold, 0.5)
    means = pool.rewards / np.maximum(visits, 1.0) + pool.centre
    return AbsorbingModel(
        transitions,
        np.where(seen, np.clip(means, 0.0, 1.0), 0.0),
        estimate_initial(pool, start),
        visits,
        pool.transition_variance,
        pool.reward_variance,
    )


def bernstein_widths(
    model: AbsorbingModel, values: FloatArray, iota: float, confidence: float
) -> FloatArray:
    """Half-widths of the one-step estimates, per (h, x, a), at most 1.

    ``confidence`` times
    sqrt(2 iota) · sqrt(Var/N + (rho² + sigma²·(sum of squared value deviations))/N²) + iota/N: the
    Bernstein term of N draws of reward plus next value, and the exact variance that noise on the
    reward counter (rho²) and on each frequent transition counter (sigma²) adds to the same ratio.
    Less ``confidence`` than 1 is a practical choice without a theorem.
    """
    divisor = np.maximum(model.visits, 1.0)
    ahead = values[1:, None, None, :]
    mean = (model.transitions * ahead).sum(axis=-1)
    spread = np.maximum((model.transitions * ahead**2).sum(axis=-1) - mean**2, 0.0)
    spread += model.rewards * (1.0 - model.rewards)
    frequent = model.transitions > 0.0
    deviations = ((ahead - mean[..., None]) ** 2 * frequent).sum(axis=-1)
    noise = model.reward_noise + model.noise * deviations
    variance = spread / divisor + noise / divisor**2
    width = math.sqrt(2.0 * iota) * np.sqrt(variance) + iota / divisor
    capped: FloatArray = np.minimum(confidence * width, 1.0)
    return capped


def absorption_optimism(model: AbsorbingModel) -> FloatArray:
    """``[H, X, A]``: what the absorbed mass could earn in the steps that follow."""
    horizon = model.rewards.shape[0]
    steps_left = np.arange(horizon - 1, -1, -1, dtype=np.float64)
    return model.absorbed * steps_left[:, None, None]


def upper_and_lower(
    model: AbsorbingModel, iota: float, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Rewards ``[H, X, A]`` whose values in the model bound the true values of policies.

    The absorbing state is worth nothing below and as much as the steps left above.
    """
    values = optimal_values(model.transitions, model.rewards)
    width = bernstein_widths(model, values, iota, confidence)
    upper = model.rewards + width + confidence * absorption_optimism(model)
    return upper, model.rewards - width


class ImplicitElimination:
    """The practical structure; `elimination.learner` says who plays when."""

    def __init__(self, problem: PublicFacts, settings: EliminationSettings) -> None:
        check_decisions(problem.shape, "Policy elimination", "use 'flow-ucb' at this size")
        self.problem = problem
        self.settings = settings
        self.printed = PrintedConstants(problem, settings)
        self.pool = CountPool.empty(problem.shape)
        self.length = 0.0
        self.designs: list[dict[str, float]] = []
        self.estimates: list[float] = []  # none: no list of policies

    def policy(self, part: str, rng: np.random.Generator) -> Policy:
        """What the users of one part of a stage play."""
        model = self.model()
        active = self.active_set(model, rng)
        if part == "tail":
            return DeterministicPolicy(greedy_actions(model, active.order))
        policies, weights = visiting_mixture(active)
        if part == "fine" and self.settings.fine == "coverage":
            policies, weights = self._with_design(active, policies, weights)
        return _playable(policies, weights, model, self.problem.shape)

    def learn(self, part: str, batch: CountPool, length: float, rng: np.random.Generator) -> None:
        """Take the private counts of a batch of a stage of this length."""
        if part == "crude" and self.settings.forgets:
            self.pool = CountPool.empty(self.problem.shape)
        self.pool.add(batch, self._weight(batch))
        self.length = length

    def model(self) -> AbsorbingModel:
        """The absorbing model of everything accumulated so far."""
        threshold = self.printed.infrequent(self.pool.transition_variance)
        return absorbing_model(self.pool, threshold, self.problem.start)

    def active_set(self, model: AbsorbingModel, rng: np.random.Generator) -> ImplicitActiveSet:
        """Policies that the latest constraint allows (all of them, before any data)."""
        if self.settings.constants == "theory":
            upper = lower = model.rewards
            deviation = float(np.sqrt(self.pool.transition_variance.max()))
            margin = self.printed.printed_width(max(self.length, 1.0), deviation)
        else:
            upper, lower = upper_and_lower(model, self.printed.iota, self.settings.confidence)
            margin = 0.0
        lower = np.where(self.problem.shape.mask, lower, -np.inf)
        best = float(model.initial @ optimal_values(model.transitions, lower)[0])
        threshold = best - margin if self.pool.users else -np.inf
        order = shuffled_actions(self.problem.shape, rng)
        return ImplicitActiveSet(model.transitions, model.initial, upper, threshold, order)

    def _with_design(
        self, active: ImplicitActiveSet, policies: IntArray, weights: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        occupancies = np.stack([active.occupancy(policy) for policy in policies])
        design = coverage_design(policies, weights, occupancies, active.maximise)
        self.designs.append(numbers_of(design))
        return with_auxiliary(design, policies, weights)

    def _weight(self, batch: CountPool) -> float:
        frequent = max(int((self.model().transitions > 0.0).sum()), 1)
        mean = batch.users * self.problem.shape.horizon / frequent
        return mean / (mean + float(batch.transition_variance.max()))

    def state(self) -> dict[str, Plain]:
        """Everything told so far, as plain values."""
        return {"pool": self.pool.to_dict(), "length": self.length}

    def restore(self, state: JsonObject) -> None:
        self.pool = CountPool.from_dict(state["pool"])
        self.length = float(state["length"])


def numbers_of(design: Design) -> dict[str, float]:
    """What a run reports about a design."""
    return {"tuples": design.tuples, "value": design.value, "bound": design.bound}


def with_auxiliary(
    design: Design, policies: IntArray, weights: FloatArray
) -> tuple[IntArray, FloatArray]:
    """The design and the auxiliary mixture, in equal parts."""
    both = np.concatenate([design.policies, policies])
    return merge_policies(both, np.concatenate([design.weights, weights / weights.sum()]))


def shuffled_actions(shape: Shape, rng: np.random.Generator) -> IntArray:
    """``[H, X, A]``: the order in which ties prefer actions, so that no action is special.

    In the place of an action that is not possible stands one that is, a second time.
    """
    order = rng.permuted(np.broadcast_to(np.arange(shape.actions), shape.visits), axis=-1)
    if shape.allowed is None:
        return order
    possible = np.take_along_axis(shape.allowed, order, axis=-1)
    one = np.take_along_axis(order, possible.argmax(axis=-1)[..., None], axis=-1)
    return np.where(possible, order, one)


def greedy_actions(model: AbsorbingModel, order: IntArray) -> IntArray:
    """The best policy of the estimated model."""
    nothing = np.zeros_like(model.rewards)
    actions: IntArray = weighted_plan(
        model.transitions, model.initial, model.rewards, nothing, 0.0, order
    )[0]
    return actions


def visiting_mixture(active: ImplicitActiveSet) -> tuple[IntArray, FloatArray]:
    """For each tuple within reach, the active policy that visits it most; all equally likely."""
    policies, visits = active.visiting()
    within = policies[visits > 0.0]
    return merge_policies(within, np.ones(len(within)))


def _playable(
    policies: IntArray, weights: FloatArray, model: AbsorbingModel, shape: Shape
) -> Policy:
    """The mixture, with random actions in states that the model knows nothing about.

    The model does not reach such states or ends there, so no upper value changes by it.
    """
    known = model.known
    distinct, shares = merge_policies(np.where(known, policies, 0), weights)
    choices = np.eye(shape.actions)[distinct]
    choices[:, ~known] = uniform_policy(shape).probabilities[~known]
    return MixturePolicy(tuple(StochasticPolicy(choice) for choice in choices), shares)


class PaperElimination:
    """The printed structure; `elimination.learner` says who plays when."""

    def __init__(self, problem: PublicFacts, settings: EliminationSettings) -> None:
        self.problem = problem
        self.settings = settings
        self.printed = PrintedConstants(problem, settings)
        self.active = enumerate_policies(problem.shape, problem.start)
        self.crude = CountPool.empty(problem.shape)
        self.refined = CountPool.empty(problem.shape)
        self.greedy: int | None = None
        self.designs: list[dict[str, float]] = []
        self.estimates: list[float] = []  # of the best listed policy, stage by stage

    def policy(self, part: str, rng: np.random.Generator) -> Policy:
        """What the users of one part of a stage play: ``"layer 3"``, ``"fine"`` or ``"tail"``."""
        model = self.crude_model()
        if part == "tail":
            return DeterministicPolicy(self._greedy_policy(rng))
        steps = _steps(part, self.problem.shape.horizon)
        policies, weights = self._visiting(model, steps, rng)
        if part == "fine" and self.settings.fine == "coverage":
            policies, weights = self._with_design(model, policies, weights)
        components = tuple(DeterministicPolicy(actions) for actions in policies)
        return MixturePolicy(components, weights)

    def learn(self, part: str, batch: CountPool, length: float, rng: np.random.Generator) -> None:
        """Take the private counts of a batch of a stage of this length."""
        new_stage = part != "fine" and self.refined.users > 0
        if new_stage and self.settings.forgets:
            self.crude = CountPool.empty(self.problem.shape)
            self.refined = CountPool.empty(self.problem.shape)
        if part == "fine":
            self.refined.add(batch)
            self._eliminate(length, rng)
        else:
            self.crude.add(_one_step(batch, _steps(part, self.problem.shape.horizon)[0]))

    def crude_model(self) -> AbsorbingModel:
        """The model of crude exploration: steps that were not explored yet are all absorbed."""
        pool = self.processed(self.crude)
        return absorbing_model(pool, self._threshold(pool), self.problem.start)

    def refined_model(self) -> AbsorbingModel:
        """The model of fine exploration: Definition 5 with the infrequent tuples of the crude one.

        Their share of the refined counts is absorbed, not given to the others: so that values stay
        below the true ones (Lemma 8).
        """
        crude = self.processed(self.crude)
        frequent = frequent_tuples(crude, self._threshold(crude))
        pool = self.processed(self.refined)
        zeros = np.zeros(pool.rewards.shape)
        return absorbing_model(pool, zeros, self.problem.start, frequent=frequent)

    def _threshold(self, pool: CountPool) -> FloatArray:
        theory = self.settings.constants == "theory"
        variance = pool.widest if theory else pool.transition_variance
        return np.stack([self.printed.infrequent(v) for v in variance])

    def error(self, pool: CountPool) -> float:
        """E of Assumption 4, for the widest noise of the pool; practical: half a deviation."""
        deviation = float(np.sqrt(pool.widest.max()))
        if self.settings.constants == "theory":
            return self.printed.count_error(deviation)
        return INFREQUENT * deviation

    def processed(self, pool: CountPool) -> CountPool:
        """Valid counts that never underestimate visits (equation 6 of 001)."""
        error = self.error(pool)
        if error == 0.0:
            return CountPool.from_dict(pool.to_dict())
        explored = pool.reward_variance > 0.0
        visits = pool.visit_sums() if pool.measured is None else pool.measured.visits
        valid = valid_counts(pool.transitions, visits, error)
        transitions = np.where(explored[..., None], valid.transitions, 0.0)
        return replace(pool, transitions=transitions, measured=None)

    def _visiting(
        self, model: AbsorbingModel, steps: tuple[int, ...], rng: np.random.Generator
    ) -> tuple[IntArray, FloatArray]:
        salt = int(rng.integers(2**62))
        found: list[IntArray] = []
        for step in steps:
            policies, visits = self.active.visiting(model.transitions, model.initial, step, salt)
            found.extend(policies[visits > 0.0])
        if not found:
            found.append(self._greedy_policy(rng))
        return merge_policies(np.stack(found), np.ones(len(found)))

    def _with_design(
        self, model: AbsorbingModel, policies: IntArray, weights: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        visited = [occupancy_of(model.transitions, model.initial, p) for p in policies]
        oracle = self.active.oracle(model.transitions, model.initial)
        design = coverage_design(policies, weights, np.stack(visited), oracle)
        self.designs.append(numbers_of(design))
        return with_auxiliary(design, policies, weights)

    def _eliminate(self, length: float, rng: np.random.Generator) -> None:
        model = self.refined_model()
        where = (model.transitions, model.initial)
        values = self.active.values(*where, model.rewards)
        self.estimates.append(float(values.max()))
        if self.settings.constants == "theory":
            deviation = float(np.sqrt(self.refined.widest.max()))
            keep = values.max() - values < self.printed.printed_width(length, deviation)
        else:
            upper, lower = upper_and_lower(model, self.printed.iota, self.settings.confidence)
            keep = self.active.values(*where, upper) >= self.active.values(*where, lower).max()
        best = np.flatnonzero(keep & (values >= values[keep].max() - 1e-12))
        self.greedy = int(self.active.indices[rng.choice(best)])
        self.active = self.active.keep(keep)

    def _greedy_policy(self, rng: np.random.Generator) -> IntArray:
        if self.greedy is None:
            return self.active.policy(int(rng.choice(self.active.indices)))
        return self.active.policy(self.greedy)

    def state(self) -> dict[str, Plain]:
        """Everything told so far, as plain values."""
        return {
            "active": self.active.packed(),
            "crude": self.crude.to_dict(),
            "refined": self.refined.to_dict(),
            "greedy": self.greedy,
            "estimates": list(self.estimates),
        }

    def restore(self, state: JsonObject) -> None:
        self.active = self.active.unpacked(state["active"])
        self.crude = CountPool.from_dict(state["crude"])
        self.refined = CountPool.from_dict(state["refined"])
        self.greedy = state["greedy"]
        self.estimates = [float(value) for value in state["estimates"]]


def _steps(part: str, horizon: int) -> tuple[int, ...]:
    return tuple(range(horizon)) if part == "fine" else (int(part.removeprefix("layer ")),)


def _one_step(batch: CountPool, step: int) -> CountPool:
    mask = np.zeros((len(batch.rewards), 1, 1))
    mask[step] = 1.0
    return replace(
        batch,
        transitions=batch.transitions * mask[..., None],
        rewards=batch.rewards * mask,
        transition_variance=batch.transition_variance * mask,
        reward_variance=batch.reward_variance * mask,
        measured=batch.measured and MeasuredVisits(*(part * mask for part in batch.measured)),
    )
