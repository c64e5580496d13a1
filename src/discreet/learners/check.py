"""`check_learner`: does a registered learner keep the rules that all learners must keep?"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet._seeds import RunSeeds
from discreet._types import Checked, Floats, Plain
from discreet.errors import DiscreetError, UnsupportedError, sentence_of
from discreet.learners.base import BatchLearner, ContinualLearner
from discreet.learners.continual import make_learner, planned
from discreet.learners.learn import (
    continual_kind,
    declared_stationary,
    learn,
    make_batch_learner,
    public_facts,
    release_batch,
)
from discreet.learners.registry import LearnerSpec, get_learner
from discreet.learners.result import Result
from discreet.mdp.counts import Counts
from discreet.mdp.environments.synthetic import GridWorld, RandomMDP, RiverSwim
from discreet.mdp.policies import check_policy
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.simulation.users import SimulatedUsers, no_counts
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import Central, Local, NoPrivacy, Shuffle, TrustModel

_TRUSTS: dict[str, TrustModel] = {
    "none": NoPrivacy(),
    "central": Central(5, 1e-6),
    "local": Local(5),
    "shuffle": Shuffle(5, 1e-6),
}
_FLAT = "sublinear without privacy"
_LOSES = "on {} the last quarter loses {:.0%} of what the first quarter loses"
_PRIVATE = "only private counts"
_RUNS = 20
_FAR = 6.0
"""Standard errors between two means that chance exceeds with probability below 1e-6."""


@dataclass(frozen=True)
class LearnerReport(Checked):
    """What `check_learner` found.

    Attributes:
        name: the learner.
        passed: names of the checks that held.
        problems: a sentence for each that did not; empty if all held.
        unchecked: a sentence for each that could not be looked at.
        shares: environment -> regret per episode in the last quarter of a run without privacy, as
            a share of that in the first quarter.
    """

    name: str
    passed: tuple[str, ...]
    problems: tuple[str, ...]
    shares: dict[str, float]
    unchecked: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Plain]:
        """As JSON takes it."""
        lists = {name: list(getattr(self, name)) for name in ("passed", "problems", "unchecked")}
        return {**asdict(self), **lists}


def check_learner(
    name: str,
    *,
    episodes: int = 4000,
    progress: Callable[[str], object] = lambda _: None,
    **settings: object,
) -> LearnerReport:
    """Run a registered learner through the rules that all must keep.

    Same seed, same run; nothing but private counts; valid policies; no action and no state is
    special (relabelling changes regret by chance only); without privacy the regret flattens on
    three environments.

    Args:
        name: a registered learner.
        episodes: length of the runs without privacy.
        progress: called with what is being checked.
        settings: settings of the learner.
    """
    spec = get_learner(name)
    if spec.schedule == "adversarial":
        raise UnsupportedError(f"check_learner is for stochastic MDPs; {name!r} is adversarial.")
    progress("flattening without privacy")
    try:
        shares = _flattening(spec, episodes, settings)
    except Exception as error:
        return LearnerReport(name, (), (f"{_FLAT}: {_raised(error)}",), {})
    checks: dict[str, Callable[[], str | None]] = {
        "determinism": lambda: _determinism(spec, settings),
        "valid policies": lambda: _valid_policies(spec, settings),
        _PRIVATE: lambda: peeks(spec, settings),
        "relabelling": lambda: _relabelling(spec, settings),
        _FLAT: lambda: next((_LOSES.format(*row) for row in shares.items() if row[1] > 0.7), None),
    }
    unchecked = {}
    if spec.make is None:  # nobody can see what it does with the model
        del checks[_PRIVATE]
        unchecked[_PRIVATE] = "it is handed the model, since it makes whole runs (run=)"
    found = {}
    for rule, check in checks.items():
        progress(rule)
        try:
            found[rule] = check()
        except Exception as error:
            found[rule] = _raised(error)
    return LearnerReport(
        name=name,
        passed=tuple(rule for rule, problem in found.items() if problem is None),
        problems=tuple(f"{rule}: {problem}" for rule, problem in found.items() if problem),
        shares=shares,
        unchecked=tuple(f"{rule}: {why}" for rule, why in unchecked.items()),
    )


def _raised(error: Exception) -> str:
    if isinstance(error, DiscreetError):
        raise error
    return f"it raised {sentence_of(error)}"


def _trusts(spec: LearnerSpec) -> list[TrustModel]:
    return [_TRUSTS[trust] for trust in spec.trusts]


def _run(spec: LearnerSpec, mdp: TabularMDP, trust: TrustModel, seed: int, **rest: Any) -> Result:
    rest = {"episodes": 300, **rest}
    return learn(mdp, learner=spec.name, trust=trust, seed=seed, **rest)


def _determinism(spec: LearnerSpec, settings: Mapping[str, object]) -> str | None:
    mdp = RiverSwim(states=3, horizon=3)
    for trust in _trusts(spec):
        first, again = (_run(spec, mdp, trust, 7, **settings).regret.values for _ in range(2))
        if not np.array_equal(first, again):
            return f"two runs with one seed differ under {type(trust).__name__}"
    return None


def _valid_policies(spec: LearnerSpec, settings: Mapping[str, object]) -> str | None:
    mdp = RandomMDP(states=3, actions=3, horizon=2)
    for trust in _trusts(spec):
        check_policy(_run(spec, mdp, trust, 1, **settings).policy, mdp.shape)  # raises
    return None


def _raw(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_raw, value.values()))
    if isinstance(value, list | tuple | set | deque):
        return any(map(_raw, value))
    return isinstance(value, TabularMDP | Counts)


def peeks(spec: LearnerSpec, settings: Mapping[str, object]) -> str | None:
    """What a learner knows besides private counts, in a sentence; None if nothing is found."""
    mdp = RandomMDP(states=3, actions=2, horizon=3)  # a few users of it already earn something
    for trust in _trusts(spec):
        first = _play(spec, mdp, trust, settings)
        again = _play(spec, _reversed(mdp, "actions"), trust, settings, told=first.released)
        if first.asked != again.asked:
            return f"under {type(trust).__name__} what it asks depends on more than it was told"
        held = [key for key, value in vars(first.learner).items() if _raw(value)]
        if held:
            return f"the learner holds the model or raw counts: {', '.join(held)}"
    return None


class _Played(NamedTuple):
    """A run: users and policy of each batch (of a stream: one user), and what was released."""

    learner: BatchLearner | ContinualLearner
    asked: list[tuple[int, bytes]]
    released: list[PrivateCounts]


def _play(
    spec: LearnerSpec,
    mdp: TabularMDP,
    trust: TrustModel,
    settings: Mapping[str, object],
    told: list[PrivateCounts] | None = None,
) -> _Played:
    """A short run; ``told``, if given, is what the learner hears in place of its own releases."""
    given, seeds = dict(settings), RunSeeds(0)
    luck = seeds.generator("policy")
    if spec.schedule == "continual":
        continual_learner = make_learner(continual_kind(spec), mdp, trust, 20, luck, settings)
        mechanism, played = continual_learner.mechanism, _Played(continual_learner, [], [])
        stream, counts = SimulatedUsers(mdp, mechanism, seeds), no_counts(mechanism)
        for user in range(mechanism.episodes):
            policy = planned(continual_learner, counts)
            played.asked.append((1, policy.key))
            played.released.append(stream.add(policy, continual_learner.rng))
            counts = (played.released if told is None else told)[user]
        return played
    problem = public_facts(mdp, 300, stationary=declared_stationary(mdp, spec, given))
    learner = make_batch_learner(spec, problem, trust, luck, given)
    rng, sampler = seeds.generator("environment"), SimulationSampler(seeds.generator("noise"))
    played, left = _Played(learner, [], []), problem.episodes
    while left > 0:
        batch = learner.ask()
        played.asked.append((batch.users, batch.policy.key))
        played.released.append(release_batch(mdp, learner, batch, rng, sampler))
        counts = (played.released if told is None else told)[len(played.asked) - 1]
        if counts.users != batch.users:
            break  # this run has left the other one
        learner.tell(counts)
        left -= batch.users
    return played


def _relabelling(spec: LearnerSpec, settings: Mapping[str, object]) -> str | None:
    mdp, trust = RiverSwim(states=3, horizon=3), _trusts(spec)[-1]

    def finals(mdp: TabularMDP) -> Floats:
        return np.array([_run(spec, mdp, trust, s, **settings).final_regret for s in range(_RUNS)])

    plain = finals(mdp)
    for what in ("actions", "states"):
        moved = finals(_reversed(mdp, what))
        error = np.sqrt((plain.var() + moved.var()) / _RUNS) + 1e-9 * plain.mean() + 1e-12
        if abs(plain.mean() - moved.mean()) > _FAR * error:
            return f"regret {plain.mean():.3g} becomes {moved.mean():.3g} when {what} are renamed"
    return None


def _reversed(mdp: TabularMDP, what: str) -> TabularMDP:
    """The same model, its actions or its states numbered from the other end."""
    transitions, rewards, initial = mdp.transitions[0], mdp.rewards[0], mdp.initial
    if what == "actions":
        transitions, rewards = transitions[:, ::-1], rewards[:, ::-1]
    else:
        transitions, rewards, initial = transitions[::-1, :, ::-1], rewards[::-1], initial[::-1]
    return TabularMDP(
        transitions=transitions, rewards=rewards, initial=initial, horizon=mdp.horizon
    )


def _flattening(
    spec: LearnerSpec, episodes: int, settings: Mapping[str, object]
) -> dict[str, float]:
    if "none" not in spec.trusts:
        return {}
    worlds = {
        "RiverSwim": RiverSwim(states=3, horizon=4),
        "RandomMDP": RandomMDP(states=4, actions=2, horizon=4),
        "GridWorld": GridWorld(layout="S.|.G", horizon=4),
    }
    shares = {}
    for name, mdp in worlds.items():
        curve = _run(spec, mdp, NoPrivacy(), 3, **{**settings, "episodes": episodes}).regret
        marks = np.interp([0.25 * episodes, 0.75 * episodes], curve.episodes, curve.values)
        last = float(curve.values[-1] - marks[1])
        shares[name] = last / max(float(marks[0]), 1e-12) if last > 0 else 0.0
    return shares
