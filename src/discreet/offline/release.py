"""The one private release of `discreet.fit`, and the proof that nothing else touches the data.

**Claim.** Everything that `discreet.fit` returns or prints is (epsilon, delta)-differentially
private for one person and all her episodes: neighbours differ in whatever one person did, in how
many episodes (one or more). The number of people is public. The number of episodes, of anybody and
of all, is not.

**Proof.**

0. *People.* Each row of the data is one episode, and ``users`` says whose it is; without it every
   row is a person of her own. That a person has one name is the caller's word: nothing in the data
   could show otherwise. Of each person at most m = ``participations`` episodes are kept (`drawn`).
   Which ones depends on whose the rows are and on random numbers, on nothing that anybody did: so
   the choice has no bias. It is made by one random order of all rows, of which there are more or
   fewer if somebody has more or fewer episodes. But the orders of different people's rows within
   themselves are independent, and uniform, whatever the number of rows: so the choices of all
   others can be taken to be the same in two neighbouring data sets. Given them, the two are mapped
   to two that differ in at most m episodes of one person, replaced by at most m others. What holds
   for all choices holds for their mixture (delta is jointly convex).
1. *Public choices.* The sizes, the declared actions, the start states, known rewards, a known
   behaviour, the width and whether steps are pooled are given by the caller, before the data is
   looked at. The slots of the counters (`Slots`) are a function of them alone.
2. *User by user.* Each episode is mapped by itself: undeclared actions to the slot OTHER (never
   recommended), the state after the last step to state 0 (unless steps are pooled), rewards to bits
   by random numbers of their own, episodes that start in no declared start to nothing. Two data
   sets that differ in one person's episodes are mapped to two that do. No well-formed episode is
   refused: the refusal itself would say that somebody took it. Who does what is said to be
   impossible takes an undeclared action, and counts as anybody else.
3. *One release.* The sums of the mapped episodes go through one batch release of a central
   mechanism, which has its own proof for neighbours of step 2, and are forgotten. All episodes of a
   person meet in it: its counters move m times as far as for one, and have m times the noise
   (`sensitivity`, "together"; m batches with a person once in each would have sqrt(m) times). Each
   person fills m places of every group; a place without an episode is in ``dropped_out``. With
   m = 1 everybody fills the one she has.
4. *Post-processing.* Flow consistency, variances, the plan, the claim, the coverage and the table
   are functions of the release and of public choices. They cost nothing, and so does looking at
   the release again, with another width or not. With m > 1, or declared starts, so is the number of
   episodes that count, which means are divided by: all places less the noisy ``dropped_out``, which
   is the same number at every step and so averaged over them, or the mean over steps of the noisy
   transitions.
5. *Again.* Another call of `fit` on the same people is another release, and a ledger charges both.
   The same one again (data, names, and all that step 1 says of the release) is answered with what
   the ledger kept, which is step 4. Whether a table has changed between two calls is thereby said,
   and must be public.

The release keeps the transitions of the last step: behaviour may take several actions in a state,
and inflow says how many people were in the state but not who took which. Mapping the last next
state to state 0 makes them a count of visits with the noise of a single counter.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _validate
from discreet._spelling import person, warn_of_lookalikes
from discreet._types import BoolArray, FloatArray, IntArray
from discreet.data.vocabulary import Vocabulary
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp._arrays import unit_interval
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape, check_shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.certificates.document import UNPROVEN, proven
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Account, Ledger
from discreet.privacy.mechanisms.base import BatchMechanism
from discreet.privacy.sampling.samplers import Sampler, SecureSampler, SimulationSampler
from discreet.privacy.statistics import PrivateCounts, check_counts
from discreet.privacy.trust import Central, NoPrivacy, TrustModel, check_trust_model

BOTH = ("transitions", "rewards")
OTHER = -1
"""The action of a slot that stands for no single action."""


@dataclass(frozen=True, eq=False)
class Slots:
    """Which actions are told apart: the declared ones, and one row OTHER for all the rest.

    Every (step, state) has its declared actions in slots 0, 1, ..., and, unless it declares all of
    them, the last slot OTHER. Actions that are said to be impossible are not declared: if somebody
    took one all the same, nobody is lost.

    Attributes:
        declared: ``bool[H, S, A]``.
        slot_of: ``int64[H, S, A]``, where each action is counted.
        action_of: ``int64[H, S, K]``, the action of each slot, `OTHER` where it is none.
        support: ``bool[H, S, K]``, the slots that exist; at the first step in start states only.
    """

    declared: BoolArray
    slot_of: IntArray
    action_of: IntArray
    support: BoolArray

    @classmethod
    def of(cls, declared: BoolArray, start: BoolArray) -> "Slots":
        """The slots of these declared actions.

        >>> slots = Slots.of(np.array([[[False, True, False]]]), np.array([True]))
        >>> slots.slot_of.tolist(), slots.action_of.tolist(), slots.support.tolist()
        ([[[1, 0, 1]]], [[[1, -1]]], [[[True, True]]])
        """
        number = declared.sum(axis=2)
        most, all_declared = int(number.max()), bool(declared.all())
        slot_of = np.where(declared, np.cumsum(declared, axis=2) - 1, most).astype(np.int64)
        slots = most if all_declared else most + 1
        action_of = np.full((*number.shape, slots), OTHER, np.int64)
        step, state, action = np.nonzero(declared)
        action_of[step, state, slot_of[step, state, action]] = action
        support = action_of != OTHER
        if not all_declared:
            support[:, :, most] = ~declared.all(axis=2)
        support[0] &= start[:, None]
        return cls(declared, slot_of, action_of, support)

    @property
    def shape(self) -> Shape:
        """The size of the problem in slots."""
        horizon, states, slots = self.support.shape
        return Shape(states, slots, horizon)

    @property
    def named(self) -> BoolArray:
        """``bool[H, S, K]``: slots of one declared action, which may be recommended."""
        marked: BoolArray = self.support & (self.action_of != OTHER)
        return marked

    def shares(self, behaviour: FloatArray) -> FloatArray:
        """``[H, S, K]``: with which probability each slot is taken, from ``behaviour[H, S, A]``."""
        totals = np.zeros(self.action_of.shape)
        step, state, _ = np.indices(self.slot_of.shape)
        np.add.at(totals, (step, state, self.slot_of), behaviour)
        return totals

    def episodes(self, given: Trajectories, *, last_transitions: bool) -> Trajectories:
        """Episodes with slots for actions.

        The state after the last step has no value. Unless ``last_transitions``, it is written down
        as state 0 for everybody: all visits of a last row are then in one counter, with the noise
        of one counter and not of S.
        """
        horizon, states, actions = self.declared.shape
        given.check(Shape(states, actions, horizon))
        steps = np.arange(horizon)
        moved = self.slot_of[steps, given.states[:, :-1], given.actions]
        after = given.states
        if not last_transitions:
            after = after.copy()
            after[:, -1] = 0
        return Trajectories(after, moved, given.rewards)

    def counts(self, given: Counts, *, last_transitions: bool) -> Counts:
        """As `episodes`, of sums. Steps outside the declared starts count as nothing."""
        step, state, action = np.nonzero(given.support)
        rows = (np.cumsum(self.support) - 1).reshape(self.support.shape)
        place = (step, state, self.slot_of[step, state, action])
        inside, row = self.support[place], rows[place]
        moves = given.row_transitions
        if not last_transitions:
            last = step == len(self.declared) - 1
            moves = moves.copy()
            moves[last] = np.eye(1, moves.shape[1], dtype=np.int64) * moves[last].sum(1)[:, None]
        count = int(self.support.sum())
        transitions = np.zeros((count, moves.shape[1]), np.int64)
        rewards = np.zeros(count, np.int64)
        _add(transitions, row[inside], moves[inside])
        _add(rewards, row[inside], given.row_rewards[inside])
        return Counts(given.users, transitions, rewards, self.support)


def _add(totals: IntArray, row: IntArray, values: IntArray) -> None:
    if np.unique(row).size == row.size:
        totals[row] += values
    else:
        np.add.at(totals, row, values)


Episodes = Trajectories | Counts
"""Raw data: whole episodes, or their sums."""


class Randomness(NamedTuple):
    """Where noise and the rounding of rewards come from."""

    sampler: Sampler
    rounding: np.random.Generator

    @classmethod
    def of(cls, sampler: str, seed: int | None) -> "Randomness":
        """``"secure"`` (never seeded) or ``"simulation"``."""
        _validate.choice(("secure", "simulation"), sampler=sampler)
        if sampler == "secure":
            if seed is not None:
                raise InvalidInputError(
                    f"Secure noise cannot be seeded, got seed={seed!r}; leave out seed, or "
                    f"rehearse with sampler='simulation'."
                )
            return cls(SecureSampler(), np.random.default_rng())
        if seed is not None:
            _validate.count(0, seed=seed)
        noise, rounding = np.random.SeedSequence(seed).spawn(2)
        generator = np.random.default_rng
        return cls(SimulationSampler(generator(noise)), generator(rounding))


def check_trust(trust: object) -> None:
    """Refuse trust models without a trusted learner: logged episodes have been seen by one."""
    check_trust_model(trust)
    if not isinstance(trust, Central | NoPrivacy):
        raise UnsupportedError(
            f"Logged episodes are in somebody's hands already, got "
            f"trust={type(trust).__name__}(...); use Central(epsilon, delta), or a learner of "
            f"`discreet list` to collect new ones under {type(trust).__name__}."
        )


class People(NamedTuple):
    """Whose episodes they are.

    Attributes:
        number: n, of people (public).
        names: of them, each once; empty if none were given.
        of: ``int64[episodes]``, the number of each episode's person; None if every episode, or
            user of the sums, is a person of her own.
    """

    number: int
    names: list[str]
    of: IntArray | None

    @classmethod
    def given(
        cls, users: Sequence[str | int] | None, data: Episodes, trust: TrustModel
    ) -> "People":
        """By their names, in whatever spelling."""
        rows, most = _rows(data), participations_of(trust)
        if users is None:
            if most > 1:
                raise InvalidInputError(
                    f"Expected users, the name of each episode's person, with participations="
                    f"{most}, got none; the readers of tables return them."
                )
            return cls(rows, [], None)
        names: dict[str, int] = {}
        if isinstance(users, str | bytes):
            raise InvalidInputError(f"Expected a list of users' names, got {type(users).__name__}.")
        of = np.array([names.setdefault(person(user), len(names)) for user in users], np.int64)
        warn_of_lookalikes(names)
        if len(of) != rows:
            raise InvalidInputError(
                f"Expected a name for each of the {rows:,} episodes, got {len(of):,}."
            )
        if isinstance(data, Counts):
            if len(names) < rows or most > 1:
                raise InvalidInputError(
                    f"Expected episodes, got their sums: nobody can tell in them whose is which. "
                    f"Give Trajectories, or sums of one episode of each person with "
                    f"participations=1 (got {len(names):,} people and participations={most})."
                )
            return cls(rows, list(names), None)
        return cls(len(names), list(names), of)


def _rows(data: Episodes) -> int:
    return len(data) if isinstance(data, Trajectories) else data.users


def participations_of(trust: TrustModel) -> int:
    """m; the non-private twin counts everything."""
    return trust.participations


def drawn(of: IntArray, most: int, rng: np.random.Generator) -> IntArray:
    """The rows of at most ``most`` episodes of each person, by chance; ``of`` says whose they are.

    >>> drawn(np.array([0, 0, 0, 1]), 1, np.random.default_rng(0)).size
    2
    """
    order = rng.permutation(len(of))
    order = order[np.argsort(of[order], kind="stable")]
    person_of = of[order]
    first = np.searchsorted(person_of, person_of)
    return np.sort(order[np.arange(len(of)) - first < most])


def release(
    data: Episodes,
    slots: Slots,
    trust: TrustModel,
    *,
    statistics: tuple[str, ...],
    last_transitions: bool,
    randomness: Randomness,
    people: People,
) -> PrivateCounts:
    """The noisy counts of all slots: the only thing that the rest of the package sees.

    Its ``users`` are the places for episodes, ``participations`` of each person (see `logged`).
    """
    most = participations_of(trust)
    if isinstance(data, Trajectories):
        if people.of is not None and not isinstance(trust, NoPrivacy):
            data = data[drawn(people.of, most, randomness.rounding)]
        moved = slots.episodes(data, last_transitions=last_transitions)
        counts = moved.counts(slots.shape, randomness.rounding, slots.support)
    else:
        counts = slots.counts(data, last_transitions=last_transitions)
    if most > 1:
        places = most * people.number
        counts = Counts(places, counts.row_transitions, counts.row_rewards, counts.support)
    mechanism = _calibrated(trust, slots.shape, statistics, randomness.sampler.secure)
    return mechanism.release(counts, sampler=randomness.sampler, support=slots.support)


class Logged(NamedTuple):
    """A release by number of episodes that count.

    It is known if everybody has one and may start anywhere, and else an estimate.

    Attributes:
        counts: with these episodes for users.
        doubt: the variance of their number.
    """

    counts: PrivateCounts
    doubt: float


def logged(released: PrivateCounts) -> Logged:
    """How many episodes a `release` holds (step 4)."""
    anywhere = bool(released.support[0].any(axis=1).all())
    if released.guarantee.participations == 1 and anywhere:
        return Logged(released, 0.0)
    noise, horizon = released.noise_variance["transitions"], len(released.support)
    if released.dropped_out:
        gone = np.concatenate(list(released.dropped_out.values()))
        number, doubt = released.users - float(gone.mean()), noise / gone.size
    else:
        moves = np.asarray(released.row_transitions)
        number, doubt = float(moves.sum()) / horizon, noise * moves.size / horizon**2
    counts = PrivateCounts(
        round(min(max(number, 1.0), released.users)),
        released.row_transitions,
        released.row_visits,
        released.row_rewards,
        released.noise_variance,
        released.support,
        released.guarantee,
        centred=released.centred,
        last_transitions=released.last_transitions,
    )
    return Logged(counts, doubt)


@lru_cache(maxsize=64)
def _calibrated(
    trust: TrustModel, shape: Shape, statistics: tuple[str, ...], real: bool
) -> BatchMechanism:
    """Proven, if it is to protect real people; without a certificate its guarantee says so."""
    found = trust.calibrate(shape, statistics=statistics, last_transitions=True, together=True)
    one = found.guarantee
    if not real or one.notion == "none" or proven(found):
        return found
    return replace(found, guarantee=replace(one, assumptions=(*one.assumptions, UNPROVEN)))


class Released(NamedTuple):
    """One release of logged episodes, all that the rest of a fit or an evaluation is made of.

    Attributes:
        counts: see `release`.
        given_rewards: ``[H, S, K]``, the mean rewards of slots, NaN where they are not given.
        people: how many they are (public).
        account: what the ledger says of them; None if nobody was charged.
    """

    counts: PrivateCounts
    given_rewards: FloatArray
    people: int
    account: Account | None


def released(
    data: Episodes,
    slots: Slots,
    trust: TrustModel,
    size: Shape,
    *,
    rewards: ArrayLike | None,
    last_transitions: bool,
    sampler: str,
    seed: int | None,
    users: Sequence[str | int] | None,
    ledger: str | Path | Ledger | None,
) -> Released:
    """A `release` that a ledger charges first and keeps; without one, and in rehearsals, neither.

    The same data, names and public choices are the same release, and looking at it again is free.
    Where all rewards are given, none are released.
    """
    given = rewards_of(rewards, slots, size)
    statistics = BOTH if np.isnan(given[slots.support]).any() else BOTH[:1]
    randomness, people = Randomness.of(sampler, seed), People.given(users, data, trust)
    if ledger is not None and not people.names:
        raise InvalidInputError(
            "Expected users with a ledger, got ledger alone; give users, too: a ledger adds up by "
            "the names that the readers of tables return."
        )

    # What is not proven is refused here, before anybody is charged.
    mechanism = _calibrated(trust, slots.shape, statistics, randomness.sampler.secure)

    def make() -> PrivateCounts:
        return release(
            data,
            slots,
            trust,
            statistics=statistics,
            last_transitions=last_transitions,
            randomness=randomness,
            people=people,
        )

    if ledger is None or not randomness.sampler.secure:
        return Released(make(), given, people.number, None)
    guarantee = mechanism.guarantee
    if guarantee.notion == "none":
        raise UnsupportedError(
            "No budget covers exact sums, and no ledger adds them up, got trust=NoPrivacy(); "
            "rehearse it (sampler='simulation', --rehearse)."
        )
    account, kept = (ledger if isinstance(ledger, Ledger) else Ledger(ledger)).once(
        guarantee.epsilon,
        guarantee.delta,
        users=people.names,
        asked=_asked(data, people, slots, trust, statistics, last_transitions),
        make=lambda: _packed(make()),
    )
    return Released(_unpacked(kept, slots.support), given, people.number, account)


def _asked(data: Episodes, people: People, slots: Slots, *public: object) -> list[bytes]:
    """All that a `release` is a function of, but for the noise."""
    whose = np.arange(people.number) if people.of is None else people.of
    arrays: list[NDArray[np.generic]] = [whose, slots.declared, slots.support]
    if isinstance(data, Trajectories):
        arrays += [data.states, data.actions, data.rewards]
    else:
        arrays += [data.row_transitions, data.row_rewards, data.support]
    said = repr((public, [(array.dtype.str, array.shape) for array in arrays]))
    return [said.encode(), *map(np.ndarray.tobytes, arrays), *map(str.encode, people.names)]


def _packed(counts: PrivateCounts) -> str:
    """A release as a ledger keeps it; `_unpacked` has every number of it again."""
    kept = {part.name: getattr(counts, part.name) for part in fields(counts)}
    kept |= {"support": None, "guarantee": asdict(counts.guarantee)}
    return json.dumps(kept, default=np.ndarray.tolist)


def _unpacked(kept: str, support: BoolArray) -> PrivateCounts:
    try:
        plain = json.loads(kept)
        said, gone = plain["guarantee"], plain["dropped_out"]
        return PrivateCounts(
            plain["users"],
            _array(plain["row_transitions"]),
            _array(plain["row_visits"]),
            _array(plain["row_rewards"]),
            plain["noise_variance"],
            support,
            Guarantee(**{**said, "assumptions": tuple(said["assumptions"])}),
            centred=plain["centred"],
            last_transitions=plain["last_transitions"],
            dropped_out=gone and {name: np.array(part) for name, part in gone.items()},
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InvalidInputError(
            "Cannot read the release that the ledger kept: it was damaged. Restore the ledger."
        ) from None


def _array(part: list[float] | None) -> FloatArray | None:
    return None if part is None else np.array(part)


def size_of(data: object, shape: Shape | None, vocabulary: Vocabulary | None) -> Shape:
    """The size of the problem, which is public; data of another size are refused."""
    if not isinstance(data, Trajectories | Counts):
        raise InvalidInputError(
            f"Expected Trajectories or Counts, got {type(data).__name__}; read a table with "
            f"discreet.data.read_table."
        )
    if shape is not None:
        check_shape(shape)
    sizes = [shape, None if vocabulary is None else vocabulary.shape]
    if isinstance(data, Counts):
        check_counts(data, data.shape)
        sizes.append(data.shape)
    elif not len(data):
        raise InvalidInputError("Expected the episodes of at least one user, got none.")
    given = [size for size in sizes if size is not None]
    if not given:
        raise InvalidInputError(
            "Expected the size of the problem, got neither shape nor vocabulary; it is public and "
            "never read off the data: write shape=Shape(states=..., actions=..., horizon=...)."
        )
    if len(set(given)) > 1:
        raise InvalidInputError(f"Expected one size of the problem, got {given[0]} and {given[1]}.")
    if isinstance(data, Trajectories):
        data.check(given[0])
    return next((size for size in given if size.allowed is not None), given[0])


def start_of(start: ArrayLike | None, size: Shape) -> BoolArray:
    """``bool[S]``, the declared start states; all by default."""
    every = np.ones(size.states, np.bool_)
    return every if start is None else mask_of("start", start, (size.states,))


def rewards_of(rewards: ArrayLike | None, slots: Slots, size: Shape) -> FloatArray:
    """``[H, S, K]``, the mean rewards of slots, NaN where they are not given."""
    means = np.full(size.visits, np.nan)
    if rewards is not None:
        means = of_actions("rewards", rewards, size)
    given = np.take_along_axis(means, np.maximum(slots.action_of, 0), axis=2)
    given[slots.action_of < 0] = np.nan
    return given


def mask_of(name: str, given: ArrayLike, *shapes: tuple[int, ...]) -> BoolArray:
    mask = np.asarray(given)
    if mask.dtype != np.bool_ or mask.shape not in shapes:
        wanted = " or ".join(f"bool{list(shape)}" for shape in shapes)
        raise InvalidInputError(
            f"Expected {name} to be {wanted}, got {mask.dtype}{list(mask.shape)}."
        )
    if not mask.any():
        raise InvalidInputError(
            f"Expected at least one True in {name}, got none; leave it out to mark everything."
        )
    return mask


def of_actions(name: str, given: ArrayLike, size: Shape) -> FloatArray:
    values = unit_interval(given, name)
    if values.shape not in (size.visits, size.visits[1:]):
        raise InvalidInputError(
            f"Expected {name} of shape {size.visits} or {size.visits[1:]}, got shape "
            f"{values.shape}."
        )
    return np.broadcast_to(values, size.visits).copy()
