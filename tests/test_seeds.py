"""Seeds: named streams that never move each other."""

import numpy as np
import pytest

from discreet._seeds import PURPOSES, RunSeeds
from discreet.errors import InvalidInputError
from helpers.properties import given, st

pytestmark = pytest.mark.core


def draws(seeds, purpose):
    return tuple(seeds.generator(purpose).random(4))


@given(st.integers(0, 2**32), st.integers(0, 1000))
def test_every_purpose_of_every_run_is_a_stream_of_its_own(seed, run):
    streams = [
        draws(RunSeeds(seed + s, run + r), purpose)
        for s in (0, 1)
        for r in (0, 1)
        for purpose in PURPOSES
    ]
    assert len(set(streams)) == 4 * len(PURPOSES)


def test_a_generator_is_fresh_each_time():
    seeds = RunSeeds(3, 2)
    used = seeds.generator("noise")
    used.random(100)
    assert draws(seeds, "noise") == draws(RunSeeds(3, 2), "noise")


def test_the_streams_are_those_of_the_documented_spawn_key():
    expected = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(7, 2)))
    assert draws(RunSeeds(5, 7), "noise") == tuple(expected.random(4))


@pytest.mark.parametrize(("seed", "run"), [(-1, 0), (0, -1), (1.5, 0), (True, 0), ("1", 0)])
def test_seeds_are_counts(seed, run):
    with pytest.raises(InvalidInputError, match="integer >= 0"):
        RunSeeds(seed, run)


def test_an_unknown_purpose_is_named():
    with pytest.raises(InvalidInputError, match="one of 'environment', 'policy'"):
        RunSeeds(0).generator("weather")
