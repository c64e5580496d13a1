"""`discreet.fit` for the audit: its one release, on neighbours, with every kind of noise.

`discreet.evaluate_policy` makes the same release, with the policy's own actions declared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from discreet._types import FloatArray
from discreet.auditing.cases import Case, Entry
from discreet.auditing.neighbours import EVERYTHING, everything
from discreet.auditing.paths import Path, Run
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.offline.release import Randomness, Slots, release
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.trust import TrustModel

FIT = "fit"
_SHAPE = Shape(states=2, actions=2, horizon=2)
_USUAL = ([0, 0, 0], [0, 0], [1.0, 1.0])
_OTHERS = {
    EVERYTHING: ([1, 1, 1], [1, 1], [0.0, 1.0]),
    "rewards only": ([0, 0, 0], [0, 0], [0.0, 0.0]),
    "last step only": ([0, 0, 1], [0, 1], [1.0, 1.0]),
    "undeclared actions": ([1, 1, 1], [0, 0], [1.0, 1.0]),
}


def fit_cases(chosen: Sequence[Entry]) -> Iterator[Case]:
    """One case for every central mechanism of batches; a fit chooses its own form."""
    for entry in chosen:
        where = entry.trust, entry.schedule, entry.calibration
        if where == ("central", "batch", "exact") and not entry.centred:
            yield replace(Case.of(entry, "JDP", fit_path(entry.model)), path=FIT)


def fit_path(trust: TrustModel) -> Path:
    """From the episodes of three people to the release that everything in a fit is made of."""
    declared = np.ones(_SHAPE.visits, np.bool_)
    declared[:, 1, 0] = False
    slots = Slots.of(declared, np.ones(_SHAPE.states, np.bool_))

    def world(first: tuple[list[int], list[int], list[float]]) -> Run:
        people = Trajectories(*(np.array([a, b, b]) for a, b in zip(first, _USUAL, strict=True)))

        def run(sampler: Sampler) -> FloatArray:
            randomness = Randomness(sampler, np.random.default_rng(0))
            return everything(
                release(
                    people,
                    slots,
                    trust,
                    statistics=("transitions", "rewards"),
                    keep_last=False,
                    randomness=randomness,
                )
            )

        return run

    others = {label: world(one) for label, one in _OTHERS.items()}
    return Path(FIT, "batch", world(_USUAL), others, note="3 users")
