"""Exact privacy of randomised data, by visiting every outcome of the real code path."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.errors import UnsupportedError
from discreet.privacy.auditing import pairs
from discreet.privacy.auditing.exact import exact_delta, exact_epsilon
from discreet.privacy.auditing.neighbours import Plan, neighbours, opposites
from discreet.privacy.auditing.paths.path import Path, Run
from discreet.privacy.auditing.probes import PresetSampler, ScriptedSampler, TooManyError, outcomes
from discreet.privacy.plans import ContinualMechanism, Encoder, with_reports


def device(plan: Plan, users: int = 1) -> Encoder:
    """The encoder of a plan of either schedule."""
    if isinstance(plan, ContinualMechanism):
        return with_reports(plan).encoder()
    return with_reports(plan).encoder(users)


_MOST = 1 << 13
"""Outcomes that are listed, before it takes too long."""


class Outcomes:
    """All outcomes of a data set and of its neighbours, each with its probability.

    Outcomes are compared bit by bit: neighbours that publish values of different supports, be it in
    the last digit, have no epsilon at all.
    """

    def __init__(self, path: Path, *, secure: bool = False) -> None:
        if not path.window:
            _check_few(path.base, secure)
        self.base = self._law(path.base, path, secure)
        self.others = [self._law(run, path, secure) for run in path.neighbours.values()]

    @staticmethod
    def _law(run: Run, path: Path, secure: bool) -> dict[bytes, float]:
        first, last = path.window or (0, 1 << 62)

        def start(script: list[int]) -> ScriptedSampler:
            return ScriptedSampler(script, secure=secure, first=first, last=last)

        return outcomes(lambda sampler: run(sampler).tobytes(), _MOST, start)

    def epsilon(self, delta: float) -> float:
        """The largest exact epsilon over all neighbours, both ways."""
        return max(exact_epsilon([(pair, 1)], delta) for pair in self._pairs())

    def delta(self, epsilon: float) -> float:
        """The largest exact delta over all neighbours, both ways."""
        return max(exact_delta([(pair, 1)], epsilon) for pair in self._pairs())

    def curve(self, epsilon: float, delta: float) -> tuple[float, float]:
        """The exact epsilon at ``delta`` and the exact delta at ``epsilon``."""
        return self.epsilon(delta), self.delta(epsilon)

    def _pairs(self) -> Iterator[pairs.Pair]:
        for other in self.others:
            yield pairs.outcomes(self.base, other)
            yield pairs.outcomes(other, self.base)


def _check_few(run: Run, secure: bool) -> None:
    """Refuse at once what would take too long."""
    sampler = PresetSampler.still(secure=secure)
    try:
        run(sampler)
    except UnsupportedError:  # bits are drawn per unit of data: nobody knows how many
        return
    if any(law.largest is None for law in sampler.laws):
        raise UnsupportedError("Noise of infinite support cannot be listed.")
    if math.prod(float(law.largest or 0) + 1 for law in sampler.laws) > _MOST:
        raise TooManyError(f"More than {_MOST:,} outcomes; audit a smaller shape.")


class Enumerated(Outcomes):
    """All reports of a few very different users of a plan whose users encode."""

    def __init__(self, plan: Plan) -> None:
        encoder = device(plan)

        def report(user: Any) -> Run:
            return lambda sampler: encoder.encode(
                user.states, user.actions, user.rewards, sampler
            ).astype(np.float64)

        usual, _ = opposites(plan.shape)
        others = {label: report(user) for label, user in neighbours(plan.shape).items()}
        super().__init__(Path("encode", "batch", report(usual), others))
