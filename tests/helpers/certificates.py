"""Certificates of releases that no plan has, and moves that no release has."""

from unittest import mock

from discreet.privacy.certificates import verify


def release(kind="central batch", mechanism="laplace", **changes):
    """A release: central, H = 6, all statistics, unless something else is asked for."""
    trust, _, schedule = kind.partition(" ")
    usual = {
        "trust": trust,
        "mechanism": mechanism,
        "schedule": schedule,
        "participations": 1,
        "states": 4,
        "actions": 2,
        "horizon": 6,
        "statistics": ["transitions", "visits", "rewards"],
        "last_transitions": True,
        "users": None,
        "honest": "1",
        "episodes": 100,
        "separation": 1,
        "stationary": False,
        "widths": [1, 1],
        "feedback": "full",
        "public_losses": False,
    }
    return {name: (usual | changes)[name] for name in verify.KINDS[kind][1].split()}


def recomputed(data, moves):
    """`verify.check` of any moves: the arithmetic without the derivation."""
    with mock.patch.object(verify, "derived", lambda entry: moves):
        return verify.check(data)


def resealed(data):
    """The same content with a fitting digest."""
    rest = {key: value for key, value in data.items() if key != "digest"}
    return rest | {"digest": verify.digest(rest)}
