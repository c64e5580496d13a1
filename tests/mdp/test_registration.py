"""Gymnasium ids of our environments."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from discreet.errors import UnsupportedError
from discreet.mdp import make
from discreet.mdp.environments.registry import environment_names
from discreet.mdp.registration import register_environments


@pytest.mark.parametrize("name", environment_names())
def test_every_environment_has_an_id_that_makes_it(name):
    register_environments()
    env = gymnasium.make(f"discreet/{name}-v0", horizon=3)
    np.testing.assert_array_equal(env.unwrapped.mdp.rewards, make(name, horizon=3).rewards)


def test_registering_twice_does_no_harm():
    register_environments()
    before = dict(gymnasium.registry)
    register_environments()
    assert dict(gymnasium.registry) == before


def test_nothing_can_be_rendered():
    register_environments()
    with pytest.raises(UnsupportedError, match="RiverSwim cannot be rendered"):
        gymnasium.make("discreet/RiverSwim-v0", render_mode="human", disable_env_checker=True)


@pytest.mark.parametrize("first", ["gymnasium", "discreet"])
def test_ids_work_whichever_package_comes_first(first):
    second = {"gymnasium": "discreet", "discreet": "gymnasium"}[first]
    code = f"import {first}, {second}; print('discreet/SixArms-v0' in gymnasium.registry)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
