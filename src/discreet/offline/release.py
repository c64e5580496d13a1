"""The one private release of `discreet.fit`, and the proof that nothing else touches the data.

**Claim.** Everything that `discreet.fit` returns or prints is (epsilon, delta)-differentially
private for one user's whole episode, replace-one, with the number of users public.

**Proof.**
0. *Users.* Each row of the data is one user. That a person is one user, and has one episode, is
   the caller's word: nothing in the data could show it.
1. *Public choices.* The sizes, the declared actions, the start states, known rewards, a known
   behaviour, the width and whether steps are pooled are given by the caller, before the data is
   looked at. The slots of
   the counters (`slots`) are a function of them alone.
2. *User by user.* Each episode is mapped by itself: undeclared actions to the slot OTHER, the state
   after the last step to state 0 (unless steps are pooled), rewards to bits by random numbers of
   their own, episodes that start in no declared start to nothing. Two data sets that differ in one
   user's episode are mapped to two that differ in at most one user's episode. No well-formed
   episode is refused: a refusal would depend on it.
3. *One release.* The sums of the mapped episodes go through one batch release of a central
   mechanism (`discreet.privacy.mechanisms.one_shot`), which has its own proof for neighbours of
   step 2, and are forgotten.
4. *Post-processing.* Flow consistency, variances, the plan, the claim, the coverage and the table
   are functions of the release and of public choices. They cost nothing (and so does looking at
   them again with another width; a second call of `fit` on the same people is a second release:
   `discreet.privacy.ledger` charges both).

The release keeps the transitions of the last step: behaviour may take several actions in a state,
and inflow says how many people were in the state but not who took which. Mapping the last next
state to state 0 makes them a count of visits with the noise of a single counter.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from discreet import _validate
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.offline.slots import Slots
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.plans import CountsPlan, with_counts
from discreet.privacy.sampling.samplers import Sampler, SecureSampler, SimulationSampler
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import Central, NoPrivacy, TrustModel, check_trust_model

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


def promised(trust: TrustModel, slots: Slots, statistics: tuple[str, ...]) -> Guarantee:
    """What `release` will promise: known before anything is drawn."""
    return _plan(trust, slots.shape, statistics).guarantee


def release(
    data: Episodes,
    slots: Slots,
    trust: TrustModel,
    *,
    statistics: tuple[str, ...],
    keep_last: bool,
    randomness: Randomness,
) -> PrivateCounts:
    """The noisy counts of all slots: the only thing that the rest of the package sees."""
    if isinstance(data, Trajectories):
        moved = slots.episodes(data, keep_last=keep_last)
        counts = moved.counts(slots.shape, randomness.rounding, slots.played)
    else:
        counts = slots.counts(data, keep_last=keep_last)
    plan = _plan(trust, slots.shape, statistics)
    return plan.release(counts, sampler=randomness.sampler, played=slots.played)


@lru_cache(maxsize=64)
def _plan(trust: TrustModel, shape: Shape, statistics: tuple[str, ...]) -> CountsPlan:
    """Calibration knows no data, so one plan serves all releases of a size."""
    return with_counts(
        trust.calibrate(shape, rhythm="batch", statistics=statistics, last_transitions=True)
    )
