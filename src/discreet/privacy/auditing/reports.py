"""Exact privacy of local reports, by visiting every outcome of the real encoder."""

from typing import Any

from discreet.privacy.auditing import pairs
from discreet.privacy.auditing.exact import exact_delta, exact_epsilon
from discreet.privacy.auditing.neighbours import Episode, Plan, opposites
from discreet.privacy.auditing.probes import outcomes
from discreet.privacy.plans import Encoder, StreamPlan, with_reports


def device(plan: Plan, users: int = 1) -> Encoder:
    """The encoder of a plan of either rhythm."""
    if isinstance(plan, StreamPlan):
        return with_reports(plan).encoder()
    return with_reports(plan).encoder(users)


class Enumerated:
    """All reports of a few very different users, each with its probability."""

    def __init__(self, plan: Plan) -> None:
        encoder = device(plan)
        one, other = opposites(plan.shape)
        users = [one, other, Episode(one.states, one.actions, 0 * one.rewards)]
        self._laws = [_law(encoder, user) for user in users]

    def epsilon(self, delta: float) -> float:
        """The largest exact epsilon over all ordered pairs of these users."""
        return max(exact_epsilon([(pair, 1)], delta) for pair in self._pairs())

    def delta(self, epsilon: float) -> float:
        """The largest exact delta over all ordered pairs of these users."""
        return max(exact_delta([(pair, 1)], epsilon) for pair in self._pairs())

    def _pairs(self) -> list[pairs.Pair]:
        return [pairs.outcomes(a, b) for a in self._laws for b in self._laws if a is not b]


def _law(encoder: Encoder, user: Episode) -> dict[bytes, float]:
    def report(sampler: Any) -> bytes:
        sent = encoder.encode(user.states, user.actions, user.rewards, sampler)
        return repr(sent.shape).encode() + sent.tobytes()

    return outcomes(report)
