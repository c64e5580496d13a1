"""`discreet.fit` for the audit: its one release, on neighbours, with every kind of noise.

`discreet.evaluate_policy` makes the same release, with the policy's own actions declared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from discreet._types import FloatArray
from discreet.auditing.cases import Audited, Case
from discreet.auditing.neighbours import EVERYTHING, everything
from discreet.auditing.paths import Path, Run
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.offline.release import People, Randomness, Slots, release
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.trust import PrivateTrust

FIT = "fit"
_SHAPE = Shape(states=2, actions=2, horizon=2)
_USUAL = ([0, 0, 0], [0, 0], [1.0, 1.0])
_OTHERS = {
    EVERYTHING: ([1, 1, 1], [1, 1], [0.0, 1.0]),
    "rewards only": ([0, 0, 0], [0, 0], [0.0, 0.0]),
    "last step only": ([0, 0, 1], [0, 1], [1.0, 1.0]),
    "undeclared actions": ([1, 1, 1], [0, 0], [1.0, 1.0]),
}


def fit_cases(chosen: Sequence[Audited]) -> Iterator[Case]:
    """Two cases for every central mechanism of batches; a fit chooses its own form.

    In the second a person has two episodes, both in the one release.
    """
    for entry in chosen:
        where = entry.trust, entry.schedule, entry.calibration
        if where == ("central", "batch", "exact") and not entry.centred:
            for times in (1, 2) if entry.spec.returning else (1,):
                path = fit_path(replace(entry, participations=times).model)
                yield Case.of(entry, "JDP", path)


def fit_path(trust: PrivateTrust) -> Path:
    """From the episodes of three people to the release that everything in a fit is made of.

    One of them has as many as ``participations`` allow, or a single one.
    """
    declared = np.ones(_SHAPE.visits, np.bool_)
    declared[:, 1, 0] = False
    slots = Slots.of(declared, np.ones(_SHAPE.states, np.bool_))
    times = trust.participations

    def world(first: tuple[list[int], list[int], list[float]], times: int = times) -> Run:
        rows = [*[first] * times, _USUAL, _USUAL]
        data = Trajectories(*(np.array(column) for column in zip(*rows, strict=True)))
        people = People.given(["ann"] * times + ["bob", "eve"], data, trust)

        def run(sampler: Sampler) -> FloatArray:
            randomness = Randomness(sampler, np.random.default_rng(0))
            return everything(
                release(
                    data,
                    slots,
                    trust,
                    statistics=("transitions", "rewards"),
                    last_transitions=False,
                    randomness=randomness,
                    people=people,
                )
            )

        return run

    others = {label: world(one) for label, one in _OTHERS.items()}
    if times > 1:
        others["another number of episodes"] = world(_OTHERS[EVERYTHING], 1)
        path = Path(FIT, "returning", world(_USUAL), others)
        return replace(path, note=f"{times} episodes of one person")
    return Path(FIT, "batch", world(_USUAL), others)
