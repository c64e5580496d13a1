"""Paths of vector streams: users as far apart as the plan's reach allows, and no further."""

import numpy as np
import pytest

from discreet.privacy import Central
from discreet.privacy.auditing.additive import probe
from discreet.privacy.auditing.paths import VECTOR_ADD, VECTOR_BLOCK, furthest, vector_paths
from discreet.privacy.auditing.probes import PresetSampler
from discreet.privacy.mechanisms._cumulative import Reach
from discreet.privacy.vectors import vector_stream

TRUST = Central(1, mechanism="tree-laplace")


def plan_of(units, pile=1, cells=4, episodes=3):
    return vector_stream(TRUST, {"losses": cells}, Reach(units=units, pile=pile), episodes=episodes)


def still(run):
    return run(PresetSampler.still())


@pytest.mark.parametrize(
    ("units", "pile", "cells"), [(4, 1, 4), (4, 2, 4), (8, 2, 4), (2, 1, 4), (6, 3, 2), (4, 1, 9)]
)
def test_users_are_as_far_apart_as_the_reach_allows(units, pile, cells):
    usual, others = furthest(plan_of(units, pile, cells))
    distance = np.abs(usual - others["everything"])
    assert distance.sum() == units
    assert distance.max() <= pile
    assert all(np.abs(usual - other).sum() <= units for other in others.values())
    assert all(user.min() >= 0 and user.max() <= pile for user in (usual, *others.values()))


def test_full_and_empty_where_one_user_may_fill_everything():
    usual, others = furthest(plan_of(4))
    assert usual.tolist() == [1, 1, 1, 1]
    assert others["everything"].tolist() == [0, 0, 0, 0]
    assert others["one cell only"].tolist() == [1, 1, 1, 0]


def test_different_cells_where_the_reach_is_half_up_and_half_down():
    usual, others = furthest(plan_of(4, cells=9))
    assert usual.tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert others["everything"].tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 1]
    assert not others["nothing"].any()


def test_every_user_is_replaced_at_every_place():
    paths = list(vector_paths(plan_of(4)))
    assert [path.name for path in paths] == [VECTOR_ADD, VECTOR_BLOCK]
    for path in paths:
        assert list(path.neighbours) == [
            f"{label}, user {place}"
            for label in ("everything", "one cell only")
            for place in (1, 2, 3)
        ]
        assert (path.releases, path.cells, path.kind) == (3, 4, "vector")
        assert path.blocks == (path.name == VECTOR_BLOCK)


def test_no_more_releases_are_watched_than_there_are():
    assert [path.releases for path in vector_paths(plan_of(4, episodes=3), watch=2)] == [2, 2]
    assert [path.releases for path in vector_paths(plan_of(4, episodes=9))] == [6, 6]


def test_notes():
    assert next(vector_paths(plan_of(4))).note == "reach 4"
    assert next(vector_paths(plan_of(4, 2))).note == "reach 4, 2 in one cell"


def test_cumulative_sums_are_published():
    usual, others = furthest(plan_of(4))
    for path in vector_paths(plan_of(4)):
        seen = still(path.base).reshape(3, 4)
        assert np.array_equal(seen, np.cumsum([usual] * 3, axis=0))
        second = still(path.neighbours["everything, user 2"]).reshape(3, 4)
        users = [usual, others["everything"], usual]
        assert np.array_equal(second, np.cumsum(users, axis=0))


def test_both_ways_deliver_the_same_epsilon():
    found = [probe(path).epsilon(0.0) for path in vector_paths(plan_of(4))]
    assert found == pytest.approx([1.0, 1.0])
