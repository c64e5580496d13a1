"""Mutations of mechanisms: other code behind the same guarantee."""

import dataclasses

from discreet.auditing import check_mechanism
from discreet.privacy.mechanisms.additive import AdditiveBatch
from discreet.privacy.mechanisms.base import noisy_batch


def as_type(plan, kind, **changes):
    """The same plan with another class: a mutation of its code, not of its guarantee."""
    fields = {f.name: getattr(plan, f.name) for f in dataclasses.fields(plan)}
    return kind(**(fields | changes))


def said(plan):
    """What `check_mechanism` holds against a plan, in one line."""
    return " ".join(check_mechanism(plan).problems)


class HalvedInTheCode(AdditiveBatch):
    """Says one scale, draws half of it."""

    def release(self, counts, *, sampler, support=None):
        return noisy_batch(
            self,
            counts,
            lambda _, n: self.noise.scaled(0.5).draw(sampler, n),
            secure=sampler.secure,
            support=support,
        )


class LouderWithData(AdditiveBatch):
    """The same draws, used twice where there are more than a few rewards."""

    few = 0

    def release(self, counts, *, sampler, support=None):
        factor = 1 + int(counts.rewards.sum() > self.few)
        return noisy_batch(
            self,
            counts,
            lambda _, n: factor * self.noise.draw(sampler, n),
            secure=sampler.secure,
            support=support,
        )
