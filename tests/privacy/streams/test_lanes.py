"""Users in lockstep: their generators do not depend on which runs go along."""

import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy
from discreet._seeds import RunSeeds
from discreet.errors import DiscreetError
from discreet.mdp import RandomMDP
from discreet.privacy.mechanisms._lane_noise import FLIPS, LAPLACE, ONE_STEP, SILENT, TABLE
from discreet.privacy.streams.lanes import lane_noise, lane_states, lane_users, side_by_side

MDP = RandomMDP(states=2, actions=2, horizon=2)


def plan_of(trust):
    return trust.calibrate(MDP.shape, rhythm="stream", episodes=50, stationary=True)


@pytest.mark.parametrize(
    ("trust", "kind"),
    [
        (NoPrivacy(), SILENT),
        (Local(2, mechanism="laplace"), LAPLACE),
        (Local(2, 1e-6, mechanism="gaussian"), TABLE),
        (Local(2, 1e-6, mechanism="bounded"), TABLE),
        (Local(2, mechanism="randomized-response"), FLIPS),
        (Local(2, mechanism="one-step"), ONE_STEP),
    ],
)
def test_every_local_randomiser_has_its_law(trust, kind):
    users = lane_users([MDP] * 3, plan_of(trust), [RunSeeds(0, run) for run in range(3)])
    assert users.law.kind == kind
    assert users.raw.table.shape == (16, 3)
    assert (len(users.asked) > 0) == (kind == FLIPS)


def test_central_noise_is_refused():
    with pytest.raises(DiscreetError, match="Lockstep"):
        lane_noise(plan_of(Central(1, 1e-6)))


def test_states_of_a_run_do_not_depend_on_the_others():
    seeds = [RunSeeds(7, run) for run in range(4)]
    all_runs, alone = lane_states(seeds, "noise", 5), lane_states(seeds[2:3], "noise", 5)
    assert np.array_equal(all_runs.reshape(4, 5, 4)[:, :, 2], alone)


def test_both_views_are_one_array():
    users = lane_users([MDP] * 2, plan_of(NoPrivacy()), [RunSeeds(0), RunSeeds(1)])
    users.public.flat[0] = 3.0
    assert users.public.table[0, 0] == 3.0


def test_runs_are_the_last_axis():
    joined = side_by_side([np.zeros((2, 3)), np.ones((2, 3))])
    assert joined.shape == (2, 3, 2)
    assert joined.flags.c_contiguous
    assert joined[..., 1].all()
