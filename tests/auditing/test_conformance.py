"""`check_mechanism`, check by check: what it says of sound plans, and of each planted bug."""

import copy
import dataclasses

import numpy as np
import pytest

from discreet.auditing import check_mechanism, conformance
from discreet.auditing.conformance import Conformance
from discreet.errors import UnknownNameError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, NoPrivacy, Shuffle
from discreet.privacy.mechanisms.additive import AdditiveBatch
from discreet.privacy.mechanisms.base import noisy_batch
from discreet.privacy.mechanisms.bits import BitsBatch, BitsEncoder
from helpers import toys
from helpers.mutations import as_type

SHAPE = Shape(states=2, actions=2, horizon=1)
TINY = Shape(states=1, actions=2, horizon=1)


@pytest.fixture(scope="module")
def pure():
    return Central(epsilon=1).calibrate(SHAPE, statistics=("visits",))


@pytest.fixture(scope="module")
def bits():
    return Shuffle(epsilon=2, delta=1e-3, mechanism="bits").calibrate(TINY)


def told(check, plan):
    return list(getattr(conformance, check)(plan))


def guaranteeing(plan, **changes):
    return dataclasses.replace(plan, guarantee=dataclasses.replace(plan.guarantee, **changes))


def drawing(draw):
    """A one-shot mechanism whose noise is ``draw(plan, sampler, n)``."""

    class Mutant(AdditiveBatch):
        def release(self, counts, *, sampler, support=None):
            noise = lambda _, n: draw(self, sampler, n)  # noqa: E731
            return noisy_batch(self, counts, noise, secure=sampler.secure, support=support)

    return Mutant


def spoiled(released, **changes):
    """A release with something changed after the fact."""
    out = copy.copy(released)
    for name, value in changes.items():
        object.__setattr__(out, name, value)
    return out


def test_no_problems_is_fit_for_use():
    assert Conformance("x", ()).ok
    assert not Conformance("x", ("one",)).ok


CHECKS = ["_guarantee", "_untouched", "_support_only", "_noise_as_stated", "_messages"]


@pytest.mark.parametrize("check", CHECKS)
def test_sound_plans_pass_every_check(pure, bits, check):
    stream = Central(1, mechanism="tree-laplace").calibrate_stream(TINY, episodes=4)
    for plan in (pure, bits, stream):
        assert told(check, plan) == []


def test_these_are_all_the_checks():
    assert [check.__name__ for check in conformance._CHECKS] == CHECKS


# --- the guarantee -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"assumptions": ()}, "names no assumptions"),
        ({"neighbours": "add-remove"}, "not about one user's whole episode"),
        ({"neighbours": "add-or-remove"}, "under replace-one"),
    ],
)
def test_a_guarantee_that_leaves_something_out(pure, changes, message):
    [text] = told("_guarantee", guaranteeing(pure, **changes))
    assert message in text


def test_a_simulation_that_is_not_stamped(pure):
    class Unstamped(AdditiveBatch):
        def release(self, counts, *, sampler, support=None):
            out = super().release(counts, sampler=sampler, support=support)
            return spoiled(out, guarantee=dataclasses.replace(out.guarantee, simulated=False))

    [text] = told("_guarantee", as_type(pure, Unstamped))
    assert "not stamped as a simulation" in text


def test_who_guarantees_nothing_is_not_held_to_it():
    plan = NoPrivacy().calibrate(SHAPE)
    assert told("_guarantee", plan) == told("_noise_as_stated", plan) == []
    assert check_mechanism(plan).ok


# --- the noise -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda p, s, n: 0 * p.noise.draw(s, n), "no noise at all"),
        (lambda p, s, n: p.noise.draw(s, n) + 40, "not mean zero"),
        (lambda p, s, n: 2 * p.noise.draw(s, n), "times the stated variance"),
        (lambda p, s, n: np.repeat(p.noise.draw(s, 1), n), "share noise"),
        (lambda p, s, n: p.noise.draw(s, n) // 2, "times the stated variance"),
    ],
)
def test_noise_of_another_distribution_than_stated(pure, draw, message):
    assert message in " ".join(told("_noise_as_stated", as_type(pure, drawing(draw))))


def test_noise_of_streams_is_measured_at_its_last_release():
    trust = Central(1, mechanism="tree-laplace")
    plan = trust.calibrate_stream(TINY, episodes=8, stationary=True)
    assert told("_noise_as_stated", plan) == []

    class Earlier(type(plan)):
        def noise_variance(self, users):
            return super().noise_variance(max(1, users - 1))  # other nodes are open

    [text] = told("_noise_as_stated", as_type(plan, Earlier))
    assert "times the stated variance" in text


# --- data ----------------------------------------------------------------------------------------


def test_counts_in_the_callers_arrays(pure):
    class Overwriting(AdditiveBatch):
        def release(self, counts, *, sampler, support=None):
            released = super().release(counts, sampler=sampler, support=support)
            counts.rewards[...] = 0
            return released

    [text] = told("_untouched", as_type(pure, Overwriting))
    assert "in place" in text


def test_counters_that_cannot_be_played(pure):
    class Everywhere(AdditiveBatch):
        def release(self, counts, *, sampler, support=None):
            return super().release(counts, sampler=sampler)

    [text] = told("_support_only", as_type(pure, Everywhere))
    assert "outside `support`" in text
    alone = Central(1).calibrate(Shape(states=2, actions=1, horizon=1))
    assert told("_support_only", alone) == []  # one action: everything is played


# --- messages ------------------------------------------------------------------------------------


def sending(encode):
    """A shuffle mechanism whose devices send ``encode(messages, actions)``."""

    class Device(BitsEncoder):
        def encode(self, states, actions, rewards, sampler):
            return encode(super().encode(states, actions, rewards, sampler), actions)

    class Mutant(BitsBatch):
        def encoder(self, users, *, support=None):
            return as_type(super().encoder(users, support=support), Device)

    return Mutant


def sums(sent, _):
    ones = np.bincount(sent[:, 0], weights=sent[:, 1]).astype(np.int64)
    return np.stack([np.arange(ones.size), ones], axis=1)


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (lambda sent, _: sent[:, 1][None], "stay linked"),
        (lambda sent, _: np.c_[sent, sent[:, 1]], "stay linked"),
        (sums, "not single bits"),
        (lambda sent, _: sent[np.unique(sent[:, 0], return_index=True)[1]], "not single bits"),
        (lambda sent, _: sent * [1, 2], "not single bits"),
        (lambda sent, actions: sent[actions[0] :], "number of messages per counter"),
    ],
)
def test_messages_that_say_too_much(bits, encode, message):
    [text] = told("_messages", as_type(bits, sending(encode)))
    assert message in text


def test_an_analyser_that_looks_at_the_order(bits):
    class Ordered(BitsBatch):
        def release_reports(self, reports, users, *, secure, support=None):
            out = super().release_reports(reports, users, secure=secure, support=support)
            odd = int(reports[0, 1]) + 2 * int(reports[-1, 0])
            return spoiled(out, row_visits=out.row_visits + 100 * odd)

    plan = Shuffle(epsilon=8, delta=1e-2, mechanism="bits").calibrate(TINY)
    few = len(plan.encoder(1000).encode(*episode(), sampler())) * 1000
    assert few <= 2_000_000
    assert told("_messages", plan) == []
    [text] = told("_messages", as_type(plan, Ordered))
    assert "order of the messages" in text


def episode():
    from discreet.auditing.neighbours import opposites

    usual, _ = opposites(TINY)
    return usual.states, usual.actions, usual.rewards


def sampler():
    from discreet.privacy import SimulationSampler

    return SimulationSampler(np.random.default_rng(0))


def test_messages_are_a_matter_of_shuffling(pure):
    assert told("_messages", pure) == []
    assert told("_messages", Local(1).calibrate(TINY)) == []


# --- the whole -----------------------------------------------------------------------------------


def test_problems_are_said_once_and_with_their_path(pure):
    halved = dataclasses.replace(pure, noise=pure.noise.scaled(0.5))
    found = check_mechanism(halved)
    assert found.mechanism == "laplace" and not found.ok
    assert len(set(found.problems)) == len(found.problems)
    said = [text for text in found.problems if "delivers" in text]
    assert said[0].startswith("release: The release delivers epsilon=2 at delta=0,")
    assert said[0].endswith("the guarantee says 1.")
    assert any(text.startswith("simulate (3 users): ") for text in said)


def test_a_guarantee_of_too_little_is_kept(pure):
    generous = guaranteeing(pure, epsilon=2.0)
    assert check_mechanism(generous).ok


def test_a_guarantee_a_hair_too_small_is_broken(pure):
    close, short = (guaranteeing(pure, epsilon=1 - part) for part in (1e-8, 1e-5))
    assert not [text for text in check_mechanism(close).problems if "delivers" in text]
    assert [text for text in check_mechanism(short).problems if "delivers" in text]


def test_progress_names_every_check_and_path(pure):
    heard = []
    check_mechanism(pure, progress=heard.append)
    assert heard[:5] == ["guarantee", "untouched", "support only", "noise as stated", "messages"]
    assert "release (batch)" in heard and "simulate (3 users) (batch)" in heard


def test_names_stand_for_plans():
    assert check_mechanism("central/laplace") == Conformance("central/laplace", ())
    assert [type(plan).__name__ for plan in conformance._named("central/laplace")] == [
        "AdditiveBatch"
    ]
    plain, pooled, long = conformance._named("central/tree-laplace")
    assert (plain.stationary, pooled.stationary, long.episodes) == (False, True, 256)
    with pytest.raises(UnknownNameError, match="did you mean"):
        check_mechanism("central/laplac")


@pytest.fixture
def many_outcomes(monkeypatch):
    """A path with 2^14 outcomes in place of all others."""
    path = toys.toy(toys.flipped, [0] * 14, other=[1] + [0] * 13)
    monkeypatch.setattr(conformance, "_all_paths", lambda plan: [(path, None)])


def test_what_is_too_large_to_list_is_not_called_fit(pure, many_outcomes):
    with pytest.raises(UnsupportedError, match="audit a smaller shape"):
        conformance._paths(pure, lambda _: None)


def test_problems_of_a_large_plan_are_said_all_the_same(pure, many_outcomes, monkeypatch):
    monkeypatch.setattr(conformance, "misfits", lambda _: ["It leaks."])
    assert conformance._paths(pure, lambda _: None) == ["toy: It leaks."] * 2  # both samplers


@pytest.mark.parametrize(("episodes", "long"), [(255, 0), (256, 2)])
def test_long_streams_are_followed(episodes, long):
    plan = Central(1, mechanism="tree-laplace").calibrate_stream(
        TINY, episodes=episodes, statistics=("visits",)
    )
    said = []
    assert check_mechanism(plan, progress=said.append).ok
    assert [text.split("(")[1] for text in said if "256" in text] == [
        "256 releases, simulated) ",
        "256 releases, secure) ",
    ][:long]


@pytest.mark.parametrize(("states", "long"), [(1, 2), (2, 0)])
def test_long_streams_of_many_counters_are_not(states, long):
    plan = Central(1, mechanism="tree-laplace").calibrate_stream(
        Shape(states, 2, 2), episodes=300, statistics=("visits", "rewards")
    )
    notes = [path.note for path, _ in conformance._all_paths(plan)]
    assert sum(note.startswith("256 releases") for note in notes) == long
