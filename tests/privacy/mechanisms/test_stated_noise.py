"""Every mechanism draws the noise that it states, on every path: in counters of nobody."""

import numpy as np
import pytest

from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy import Central, Local, Shuffle
from discreet.privacy.mechanisms.registry import everything
from discreet.privacy.sampling.samplers import SimulationSampler

pytestmark = pytest.mark.core

SHAPE = Shape(states=6, actions=2, horizon=3)
USERS = 40
TRUSTS = {"central": Central, "local": Local, "shuffle": Shuffle}
BATCHES = [spec for spec in everything() if spec.schedule == "batch" and spec.trust in TRUSTS]
STREAMS = [spec for spec in everything() if spec.schedule == "continual" and spec.trust in TRUSTS]
STAYS = Trajectories(np.zeros((USERS, 4), int), np.zeros((USERS, 3), int), np.ones((USERS, 3)))


def trust_of(spec):
    return TRUSTS[spec.trust](8.0 if spec.trust == "shuffle" else 2.0, 1e-4, mechanism=spec.name)


def counts_of(users):
    every = np.ones(SHAPE.visits, bool)
    return STAYS[np.arange(users) % USERS].counts(SHAPE, np.random.default_rng(0), every)


def by_release(mechanism, sampler):
    if not mechanism.takes_counts:
        pytest.skip("users report different things")
    return mechanism.release(counts_of(USERS), sampler=sampler)


def by_simulation(mechanism, sampler):
    return mechanism.simulate(counts_of, USERS, sampler=sampler)


def by_reports(mechanism, sampler):
    if not mechanism.takes_reports:
        pytest.skip("a curator adds the noise")
    encoder = mechanism.encoder(USERS)
    parts = zip(STAYS.states, STAYS.actions, STAYS.rewards, strict=True)
    sent = np.concatenate([encoder.encode(*one, sampler) for one in parts])
    return mechanism.release_reports(sent, USERS, secure=False)


def unvisited(values):
    """Counters of states that nobody sees; what leads to them is nothing, too."""
    return np.asarray(values)[:, 1:].ravel()


def check(found, stated, name):
    """Half of the noise has a quarter of the variance, or half of it where bits are false."""
    apart = np.concatenate(found)
    ratio = (apart**2).mean() / stated
    assert 0.75 < ratio < 1.3, f"{name}: {ratio:.2f} of the stated variance"


@pytest.mark.parametrize("path", [by_release, by_simulation, by_reports])
@pytest.mark.parametrize("statistics", [("transitions", "rewards"), ("visits", "rewards")], ids=str)
@pytest.mark.parametrize("spec", BATCHES, ids=lambda spec: f"{spec.trust}-{spec.name}")
def test_a_batch_has_the_noise_that_it_states(spec, statistics, path):
    mechanism = trust_of(spec).calibrate(SHAPE, statistics=statistics)
    sampler = SimulationSampler(np.random.default_rng(0))
    made = [path(mechanism, sampler) for _ in range(12)]
    for name in statistics:
        check(
            [unvisited(getattr(one, name)) for one in made],
            made[0].noise_variance[name],
            name,
        )


def by_users(running, number):
    for _ in range(number):
        released = running.add(counts_of(1))
    return {name: getattr(released, name) for name in ("visits", "rewards")}


def by_block(running, number):
    block = running.block(number)
    noise = block.scale * (block.noise - block.centres if block.centres.size else block.noise)
    cells = noise[-1].reshape(2, *SHAPE.visits)
    return dict(zip(("visits", "rewards"), cells, strict=True))


def by_noise_block(running, number):
    if running.mechanism.response != "unit":
        pytest.skip("randomises the data, and adds nothing")
    cells = running.noise_block(number)[-1].reshape(2, *SHAPE.visits)
    return dict(zip(("visits", "rewards"), cells, strict=True))


@pytest.mark.parametrize("path", [by_users, by_block, by_noise_block])
@pytest.mark.parametrize("spec", STREAMS, ids=lambda spec: f"{spec.trust}-{spec.name}")
def test_a_stream_has_the_noise_that_it_states(spec, path):
    mechanism = trust_of(spec).calibrate_stream(SHAPE, episodes=7, statistics=("visits", "rewards"))
    rng = np.random.default_rng(0)
    made = [path(mechanism.open(SimulationSampler(rng)), 7) for _ in range(40)]
    for name in ("visits", "rewards"):
        check([unvisited(one[name]) for one in made], mechanism.noise_variance(7)[name], name)
