"""A path: its label, its neighbours, its kinds."""

from typing import get_args

import pytest

from discreet.privacy.auditing.paths import KINDS, Kind
from helpers import toys

pytestmark = pytest.mark.core


def test_the_kinds_are_those_of_the_type():
    assert get_args(Kind) == KINDS


@pytest.mark.parametrize(("note", "label"), [("", "toy"), ("3 users", "toy (3 users)")])
def test_labels(note, label):
    assert toys.toy(toys.laplace, path={"note": note}).label == label


def test_some_of_the_neighbours():
    path = toys.toy(toys.laplace, near=(1, 0), far=(9, 9), path={"note": "n", "releases": 4})
    near = path.only("near", "nobody")
    assert list(near.neighbours) == ["near"]
    assert near.neighbours["near"] is path.neighbours["near"]
    assert (near.label, near.releases, near.base) == (path.label, 4, path.base)
    assert list(path.neighbours) == ["near", "far"]


def test_both_samplers_unless_said_otherwise():
    path = toys.toy(toys.laplace)
    assert path.secure == (False, True)
    assert path.thorough and not path.blocks and not path.simulated and path.window is None
