"""Mechanisms that are broken on one path only: each must be caught, and the path named."""

import dataclasses
import re

import numpy as np
import pytest

from discreet.adversarial.mechanism import (
    LayeredMechanism,
    LayeredNoise,
    LayeredSize,
    calibrate_layered,
)
from discreet.auditing import check_mechanism
from discreet.auditing.additive import probe
from discreet.auditing.cases import Audited, cases
from discreet.auditing.examine import examine
from discreet.auditing.paths import honest_path, long_path, stream_path
from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle
from discreet.privacy.mechanisms._devices import SplitEncoder, plain_flip
from discreet.privacy.mechanisms.additive import (
    AdditiveBatch,
    AdditiveContinual,
    AdditiveRelease,
)
from discreet.privacy.mechanisms.base import noisy_batch
from discreet.privacy.mechanisms.bits import BitsBatch, BitsEncoder
from discreet.privacy.mechanisms.split import SplitBatch
from discreet.privacy.mechanisms.tree import TreeNoise
from discreet.privacy.sampling.samplers import SecureSampler, SimulationSampler
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.statistics import flatten
from discreet.privacy.vectors import calibrate_vectors
from helpers.mutations import LouderWithData, as_type, said

SMALL = Shape(states=1, actions=2, horizon=2)
TINY = Shape(states=1, actions=2, horizon=1)


def stream(trust, shape=SMALL, *, episodes=4, statistics=("rewards",), stationary=False):
    return trust.calibrate_stream(
        shape, episodes=episodes, statistics=statistics, stationary=stationary
    )


class RewardedStep(SplitEncoder):
    """Reports rewarded steps more often."""

    def encode(self, states, actions, rewards, sampler):
        kept = sampler.table
        weights = 2 + np.asarray(rewards, np.int64)
        sampler.table = lambda even, size: kept(weights if len(even) == 2 else even, size)
        try:
            return super().encode(states, actions, rewards, sampler)
        finally:
            del sampler.table


def split_of(device):
    """Split batches with this encoder on devices."""

    class Batch(SplitBatch):
        def encoder(self, users=1, *, support=None):
            return as_type(super().encoder(users, support=support), device)

    return Batch


def test_the_step_of_split_depends_on_rewards():
    plan = Local(1).calibrate(SMALL)
    problems = said(as_type(plan, split_of(RewardedStep)))
    assert "release_reports: Which noise is drawn depends on the data" in problems
    assert "release_reports: The release delivers epsilon=1." in problems
    assert "simulate:" not in problems  # only devices are broken


def test_randomised_response_with_half_the_units_when_stationary():
    trust = Local(1, mechanism="randomized-response")
    twice = stream(Local(2, mechanism="randomized-response"), stationary=True, episodes=1)
    plan = stream(trust, stationary=True, episodes=1)
    problems = said(dataclasses.replace(plan, flip=twice.flip))
    for path in ("add", "block"):
        assert f"{path}: The release delivers epsilon=2" in problems


def tree_of(release):
    """A Laplace tree that runs this release."""

    class Tree(AdditiveContinual):
        def open(self, sampler):
            return release(self, sampler)

    return Tree


class ForgetfulNoise(TreeNoise):
    """Draws the oldest node again at every 64th release, when draws come one at a time."""

    def rows(self, first, rows, state, sampler):
        nodes, total = state
        if rows == 1 and first and first % 64 == 0:
            top = min(first.bit_length(), len(nodes)) - 1
            fresh = self.distribution.draw(sampler, total.size)
            total += fresh - nodes[top, 0]
            nodes[top, 0] = fresh
        return super().rows(first, rows, state, sampler)


class ForgetfulRelease(AdditiveRelease):
    def __init__(self, plan, sampler):
        noise = ForgetfulNoise(**vars(plan.noise))
        super().__init__(dataclasses.replace(plan, noise=noise), sampler)


def test_a_node_redrawn_every_64_releases_on_the_secure_stream():
    trust = Central(1, mechanism="tree-laplace")
    plan = stream(trust, TINY, episodes=256, statistics=("visits",))
    broken = as_type(plan, tree_of(ForgetfulRelease))
    hint = probe(long_path(broken, "block", secure=False))
    assert hint.epsilon(0.0) == pytest.approx(1.0)  # simulations are fine
    finding = examine(long_path(broken, "add", secure=True), secure=True, hint=hint)
    assert finding.view.epsilon(0.0) > 1.3
    fine = examine(long_path(plan, "add", secure=True), secure=True, hint=hint)
    assert fine.view.epsilon(0.0) == pytest.approx(1.0) and not fine.problems


class LeakyRelease(AdditiveRelease):
    """Adds a trace of the data after the noise."""

    def _take(self, counts):
        trace = 1e-13 * counts.rewards.sum()
        return super()._take(counts) + trace


class UnrewardedRelease(AdditiveRelease):
    """Twice the noise at the release of a user without any reward."""

    true = 0

    def _take(self, counts):
        noisy = super()._take(counts)
        self.true = self.true + flatten(counts, self.mechanism.statistics, stationary=False)
        return noisy if counts.rewards.any() else 2 * noisy - self.true


@pytest.mark.parametrize(
    ("release", "sentence"),
    [
        (LeakyRelease, "Floating-point noise is released"),
        (UnrewardedRelease, "The noise of this release depends on the data it hides"),
    ],
)
def test_a_stream_that_tells_something_in_add_alone(release, sentence):
    plan = stream(Central(1, mechanism="tree-laplace"))
    problems = said(as_type(plan, tree_of(release)))
    assert f"add: {sentence}" in problems
    assert "block:" not in problems


class SharedInBlocks(AdditiveRelease):
    def noise_block(self, episodes):
        return np.repeat(super().noise_block(episodes)[:, :1], self.mechanism.cells, axis=1)


def test_noise_shared_in_blocks_only():
    plan = stream(Central(1, mechanism="tree-laplace"))
    problems = said(as_type(plan, tree_of(SharedInBlocks)))
    assert "block: The release delivers epsilon=inf" in problems
    assert "add:" not in problems


class OnlyWhereVisited(AdditiveBatch):
    """Draws noise for counters that somebody touched."""

    def release(self, counts, *, sampler, support=None):
        raw = {name: getattr(counts, f"row_{name}").ravel() for name in self.statistics}

        def draw(name, cells):
            noise = np.zeros(cells, np.int64)
            touched = raw[name] > 0
            noise[touched] = self.noise.draw(sampler, int(touched.sum()))
            return noise

        return noisy_batch(self, counts, draw, secure=sampler.secure, support=None)


def test_noise_only_where_data_are():
    plan = Central(1).calibrate(SMALL)
    assert "Which noise is drawn depends on the data" in said(as_type(plan, OnlyWhereVisited))


def test_noise_that_grows_with_the_data():
    plan = Central(1).calibrate(SMALL)
    problems = said(as_type(plan, LouderWithData))
    assert "release: The noise of this release depends on the data it hides" in problems


class QuieterForReal(AdditiveBatch):
    """Half of the noise, once the sampler is not a simulation and not a probe either."""

    def release(self, counts, *, sampler, support=None):
        share = 0.5 if isinstance(sampler, SecureSampler) else 1.0
        return noisy_batch(
            self,
            counts,
            lambda _, n: self.noise.scaled(share).draw(sampler, n),
            secure=sampler.secure,
            support=support,
        )


def test_half_of_the_noise_with_the_real_sampler_only():
    plan = Central(1).calibrate(SMALL)
    problems = said(as_type(plan, QuieterForReal))
    found = re.search(r"release: With the secure sampler the noise has (\d\.\d+) times", problems)
    # A quarter, up to six standard errors: draws of the secure sampler cannot be seeded.
    assert 0.1 < float(found.group(1)) < 0.4
    assert "simulation sampler" not in problems


class OddEncoder(SplitEncoder):
    """Flips less often than it says, once the sampler is a real one."""

    def encode(self, states, actions, rewards, sampler):
        flip = self.flip / 4 if isinstance(sampler, SimulationSampler) else self.flip
        odd = SplitEncoder.from_dict(self.to_dict() | plain_flip(flip))
        return odd.encode(states, actions, rewards, sampler)


def test_frequencies_of_reports_with_the_real_sampler_only():
    plan = Local(1).calibrate(TINY, statistics=("rewards",))
    problems = said(as_type(plan, split_of(OddEncoder)))
    assert "release_reports: With the simulation sampler outcomes have other" in problems
    assert "secure sampler" not in problems


class Chatty(BitsEncoder):
    """One message more for every reward."""

    def encode(self, states, actions, rewards, sampler):
        sent = super().encode(states, actions, rewards, sampler)
        return np.concatenate([sent, sent[: int(np.sum(rewards))]])


class ChattyShuffle(BitsBatch):
    def encoder(self, users=1, *, support=None):
        return as_type(super().encoder(users, support=support), Chatty)

    def add_up(self, reports, users, support):
        each = 1 + self.bits(users).bits
        kept = [np.flatnonzero(reports[:, 0] == c)[: users * each] for c in set(reports[:, 0])]
        return super().add_up(reports[np.sort(np.concatenate(kept))], users, support)


def test_the_number_of_messages_depends_on_rewards():
    plan = Shuffle(2, 1e-3, mechanism="bits").calibrate(TINY)
    problems = said(as_type(plan, ChattyShuffle))
    assert "release_reports" in problems and "depends on the data" in problems


class RefusingEncoder(SplitEncoder):
    def encode(self, states, actions, rewards, sampler):
        sizes = self.device.sizes
        taken = (np.asarray(states)[:-1] * sizes.actions + actions).tolist()
        if any(pair not in sizes.pairs[h] for h, pair in enumerate(taken)):
            raise InvalidInputError("Expected users who follow the policy.")
        return super().encode(states, actions, rewards, sampler)


def test_a_refusal_off_the_policy_on_devices():
    plan = Local(1).calibrate(SMALL)
    problems = said(as_type(plan, split_of(RefusingEncoder)))
    assert "release_reports: An episode that leaves the policy is refused" in problems


class EverybodyHonest(BitsBatch):
    def reliable(self, users):
        return users


def test_the_honest_fraction_ignored():
    plan = Shuffle(1, 1e-6, honest=0.5, mechanism="bits").calibrate(TINY, statistics=("visits",))
    delivered = examine(honest_path(plan, 2, 4), secure=True).view.epsilon(1e-6)
    assert delivered <= 1 + 1e-7
    broken = as_type(plan, EverybodyHonest)
    assert examine(honest_path(broken, 2, 4), secure=True).view.epsilon(1e-6) > 1.2


def test_the_pile_of_pooled_counters_ignored():
    trust = Central(1, 1e-6, mechanism="toeplitz")
    plan, apart = (stream(trust, stationary=pooled) for pooled in (True, False))
    problems = said(dataclasses.replace(plan, noise=apart.noise))
    assert "add: The release delivers epsilon=1.4" in problems


class SilentLosses(LayeredNoise):
    def block(self, episodes):
        transitions, visits, losses = super().block(episodes)
        return transitions, visits, 0 * losses


class SilentPlan(LayeredMechanism):
    def open(self, sampler):
        return SilentLosses(self, sampler)


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_layered_losses_without_noise(feedback):
    size = LayeredSize(widths=(1, 1, 1), actions=2)
    plan = calibrate_layered(Central(1, mechanism="tree-laplace"), size, 3, feedback=feedback)
    assert check_mechanism(plan).ok
    assert "delivers epsilon=inf" in said(as_type(plan, SilentPlan))


def test_a_vector_release_of_half_the_reach():
    trust = Central(1, mechanism="tree-laplace")
    plan, half = (
        calibrate_vectors(trust, {"losses": 4}, Sensitivity(units=units), episodes=4)
        for units in (4, 2)
    )
    assert check_mechanism(plan).ok
    problems = said(dataclasses.replace(plan, noise=half.noise))
    assert "add (sensitivity 4): The release delivers epsilon=2" in problems


class BentSplit(SplitBatch):
    """Takes out the bias of the data at hand."""

    def simulate(self, draw, users, **options):
        def seen(group):
            counts = draw(group)
            self.__dict__["bent"] = 1e-9 * float(counts.rewards[0, 0, 0])
            return counts

        return super().simulate(seen, users, **options)

    def _estimated(self, cells, groups):
        found, plain = super()._estimated(cells, groups)
        centres = {n: c + self.__dict__.get("bent", 0.0) for n, c in plain.centres.items()}
        return found, dataclasses.replace(plain, centres=centres)


def test_a_centre_that_depends_on_the_data():
    plan = Local(1).calibrate(SMALL, statistics=("rewards",))
    problems = said(as_type(plan, BentSplit))
    assert "simulate: The release delivers epsilon=inf" in problems


def test_long_streams_go_through_the_secure_branch():
    found = list(cases([Audited("central", "tree-laplace", "continual")], quick=True))
    [long] = [c for c in found if c.path == "add (256 releases, secure)"]
    assert [path.releases for path in long.paths] == [256] and long.paths[0].secure == (True,)


@pytest.mark.parametrize("name", ["add", "block"])
def test_users_are_replaced_at_every_place(name):
    plan = stream(Local(1, mechanism="laplace"))
    path = stream_path(plan, name)
    assert [label for label in path.neighbours if label.startswith("everything")] == [
        f"everything, user {place}" for place in (1, 2, 3, 4)
    ]
    assert {"rewards only, user 4", "one step only, user 4", "last step only, user 4"} <= set(
        path.neighbours
    )
