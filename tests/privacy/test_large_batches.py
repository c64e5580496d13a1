"""Batches of more users than 16 bits count: nobody is forgotten, neither counts nor names."""

import numpy as np
import pytest

from discreet.auditing.cases import entries
from discreet.auditing.neighbours import opposites, vector
from discreet.auditing.probes import PresetSampler
from discreet.errors import BudgetError, InvalidInputError
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.ledger import Budget, Cost, Ledger

USERS, LATE = 70_000, 4_464
"""The late ones come after the first 65,536."""
SHAPE = Shape(states=1, actions=2, horizon=2)
PLAYED = np.ones(SHAPE.visits, np.bool_)
BATCHES = [
    entry
    for entry in entries(epsilon=2.0, delta=1e-2)
    if (entry.schedule, entry.calibration) == ("batch", "exact")
]


class Still(PresetSampler):
    """No noise at all: false bits are rare and never drawn, true ones are always kept."""

    def binomial(self, trials, probability, size):
        return np.broadcast_to(trials, size) * int(probability >= 0.5)


def crowd(late):
    """Users who are all alike, but for the last ones, who do everything otherwise."""
    usual, other = (vars(user).values() for user in opposites(SHAPE))
    rows = [
        np.concatenate([np.tile(a, (USERS - late, 1)), np.tile(b, (late, 1))])
        for a, b in zip(usual, other, strict=True)
    ]
    return Trajectories(*rows)


def counted(people):
    return people.counts(SHAPE, np.random.default_rng(0), PLAYED)


def of_counts(plan, late):
    return vector(plan.release(counted(crowd(late)), sampler=Still.still()))


def of_simulated_users(plan, late):
    """Fresh users come in groups, one after the other."""
    people, taken = crowd(late), [0]

    def draw(users):
        some = slice(taken[0], taken[0] + users)
        taken[0] += users
        return counted(
            Trajectories(people.states[some], people.actions[some], people.rewards[some])
        )

    return vector(plan.simulate(draw, USERS, sampler=Still.still()))


def of_reports(plan, late):
    """Everybody's encoder does the same: all reports are one of two."""
    encoder = plan.encoder(USERS)
    usual, other = (
        encoder.encode(user.states, user.actions, user.rewards, Still.still())
        for user in opposites(SHAPE)
    )
    reports = np.concatenate([np.tile(usual, (USERS - late, 1)), np.tile(other, (late, 1))])
    added, _ = plan.add_up(reports, USERS, PLAYED)
    return np.concatenate([values.ravel() for values in added.values()])


def ways(plan):
    yield of_simulated_users
    if plan.takes_counts:
        yield of_counts
    if plan.takes_reports:
        yield of_reports


@pytest.mark.parametrize("entry", BATCHES, ids=lambda entry: entry.name)
def test_the_last_of_many_users_count_as_all_others_do(entry):
    mechanism = entry.model.calibrate(
        SHAPE, statistics=("transitions", "rewards"), last_transitions=entry.mechanism != "split"
    )
    for way in ways(mechanism):
        nobody, one, many = (way(mechanism, late) for late in (0, 1, LATE))
        assert (one != nobody).any()
        assert np.allclose(many - nobody, LATE * (one - nobody), rtol=1e-9, atol=0)


def test_sums_of_episodes_hold_everybody():
    usual, other = (user.counts(SHAPE) for user in opposites(SHAPE))
    found, early = counted(crowd(LATE)), USERS - LATE
    assert found.users == USERS
    moves = early * usual.transitions + LATE * other.transitions
    assert np.array_equal(found.transitions, moves)
    assert np.array_equal(found.rewards, early * usual.rewards + LATE * other.rewards)


def test_a_ledger_knows_the_last_of_many_users(tmp_path):
    """In its file, sorted by their digests: who is late is anywhere in it."""
    people = [f"user {i}" for i in range(USERS)]
    ledger = Ledger(tmp_path / "people.ledger", budget=Budget(1))
    assert ledger.record(1, users=people).before == Cost.of(0)
    for again in (people[:1], people[65_536:], people[-1:]):
        with pytest.raises(BudgetError, match=f"{len(again):,} of {len(again):,} people"):
            ledger.record(1, users=again)
    with pytest.raises(InvalidInputError, match="twice"):
        Ledger().record(1, users=[*people, people[-1]])
