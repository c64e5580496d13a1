"""Mutations of mechanisms: other code behind the same promise."""

import dataclasses

from discreet.privacy import check_mechanism


def as_type(plan, kind, **changes):
    """The same plan with another class: a mutation of its code, not of its promise."""
    fields = {f.name: getattr(plan, f.name) for f in dataclasses.fields(plan)}
    return kind(**(fields | changes))


def said(plan):
    """What `check_mechanism` holds against a plan, in one line."""
    return " ".join(check_mechanism(plan).problems)
