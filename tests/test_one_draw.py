"""Whatever releases draws exactly once, freshly, and shows its counts plus that draw.

Through every door that people's data enter, by the sampler that protects them: for one person, for
a few, for many, in first and later releases. A draw too many could be chosen by looking at the
data, one too few is noise of which somebody else knows the difference.
"""

import importlib
import itertools

import numpy as np
import pytest

import discreet
from discreet.learners.base import BatchLearner
from discreet.mdp import Shape, Trajectories
from discreet.mdp.simulation import sample_trajectories
from discreet.offline.release import Slots
from discreet.privacy.sampling.samplers import Sampler, SecureSampler, SimulationSampler
from helpers.studies import RIVER, begin, names

SIZES = (1, 50, 51, 70_000)
METHODS = [name for name in vars(Sampler) if name[0] != "_" and name != "secure"]
GAUSSIAN = discreet.Central(1, 1e-6, mechanism="gaussian")
LAPLACE = discreet.Central(1, mechanism="laplace")


class Tape:
    """Draws, as they were asked for and answered; a sampler that gives them back in their order."""

    secure = True

    def __init__(self):
        self.draws = []

    def over(self, name, draw):
        """The same method of a sampler, noted; what it uses of its own is part of one draw."""

        def noted(sampler, *asked):
            number = len(self.draws)
            values = draw(sampler, *asked)
            self.draws[number:] = [(name, asked, values.copy())]
            return values

        return noted

    def __getattr__(self, name):
        if name not in METHODS:
            raise AttributeError(name)

        def answer(*asked):
            was, wanted, values = self.draws.pop(0)
            assert (was, str(wanted)) == (name, str(asked))
            return values

        return answer

    @property
    def values(self):
        return [values for _, _, values in self.draws]

    def taken(self):
        """What was drawn since the last time."""
        given = Tape()
        given.draws, self.draws = self.draws, []
        return given


def tape_of(monkeypatch, kind):
    tape = Tape()
    for name in METHODS:
        monkeypatch.setattr(kind, name, tape.over(name, getattr(kind, name)))
    return tape


@pytest.fixture
def tape(monkeypatch):
    """Of all that the secure sampler draws."""
    return tape_of(monkeypatch, SecureSampler)


def parts(released):
    """All numbers of a release."""
    rows = [released.row_transitions, released.row_visits, released.row_rewards]
    found = [row for row in rows if row is not None] + list((released.dropped_out or {}).values())
    return np.concatenate([np.ravel(part) for part in found])


def check_drawn_once(used, tape, mechanism, counts, support):
    """``used`` is what this mechanism makes of the counts with these draws, and they are as many
    as it has integers: worked out here from the support alone."""
    rows, horizon = np.nonzero(support)[0], len(support)
    moving = rows.size if mechanism.last_transitions else (rows < horizon - 1).sum()
    cells = counts.row_transitions.shape[1] * moving
    if mechanism.centred:  # rewards of zero and of one, and who dropped out of either group
        cells += 2 * rows.size + horizon + horizon - (not mechanism.last_transitions)
    assert sum(values.size for values in tape.values) == cells
    again = mechanism.release(counts, sampler=tape, support=support)
    assert np.array_equal(parts(again), parts(used))
    assert not tape.draws


def check_fresh(releases):
    """No two releases have the same noise."""
    long = [values.ravel() for draws in releases for values in draws if values.size >= 12]
    assert len(long) >= len(releases)
    for one, other in itertools.combinations(long, 2):
        least = min(one.size, other.size)
        assert not np.array_equal(one[:least], other[:least])


# --- studies: before and after everything that can happen to one


def stages(study, users):
    """A study whose next batch is told now, four times."""
    yield study
    study.extend(study.episodes + 1_000_000)
    yield study
    study.reissue(users)
    yield study
    yield discreet.open_study(study.path)


@pytest.fixture
def learnt(monkeypatch):
    """What learners of studies are told."""
    seen, usual = [], BatchLearner.reading
    monkeypatch.setattr(
        BatchLearner, "reading", lambda self, made: [seen.append(made), usual(self, made)][1]
    )
    return seen


def episodes_for(study, users, seed):
    """People who follow the policy; few are drawn, many are the same few over and over."""
    few = sample_trajectories(RIVER, study.ask(), min(users, 500), np.random.default_rng(seed))
    data = few[np.arange(users) % len(few)]
    return Trajectories(data.states, data.actions, np.rint(data.rewards))  # bits: nothing to round


LARGE = {"learner": "trial", "episodes": 100_000_000, "batches": 6}
SECURE = {"sampler": "secure", "seed": None}


@pytest.mark.parametrize("users", SIZES)
@pytest.mark.parametrize("trust", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def test_every_batch_of_a_study_is_drawn_once(tmp_path, tape, learnt, trust, users):
    begun, releases = begin(tmp_path / "study.db", trust, **LARGE, **SECURE), []
    for seed, study in enumerate(stages(begun, users)):
        data, support = episodes_for(study, users, seed), support_of(study)
        counts = data.counts(RIVER.shape, np.random.default_rng(0), support)
        study.tell(data, users=names(study, users))
        drawn = tape.taken()
        releases.append(drawn.values)
        check_drawn_once(learnt.pop(), drawn, study.mechanism, counts, support)
    assert not learnt
    check_fresh(releases)


ENCODED = {
    "split": discreet.Local(20, mechanism="split"),
    "shuffle": discreet.Shuffle(2, 1e-6),
}


@pytest.mark.parametrize("users", [2, 50, 51, 70_000])
@pytest.mark.parametrize("name", ENCODED)
def test_batches_of_reports_have_the_noise_of_the_devices_alone(
    tmp_path, tape, learnt, name, users
):
    """Each device draws the same number of times, and nobody draws again behind it."""
    begun = begin(tmp_path / "study.db", ENCODED[name], **LARGE, **SECURE)
    for seed, study in enumerate(stages(begun, users)):
        if study.guarantee.notion == "SDP" and study.batch_size != users:
            study.reissue(users)
        encoder, made = study.encoder(), []
        for i in range(min(users, 3)):
            (states, actions, rewards), _ = one_of(study, seed, i), tape.taken()
            report = encoder.encode(states, actions, rewards, SecureSampler())
            drawn = tape.taken()
            made.append((report, drawn.values))
            assert np.array_equal(encoder.encode(states, actions, rewards, drawn), report)
            assert not drawn.draws
        sent = np.concatenate([made[i % len(made)][0] for i in range(users)])
        study.tell(sent, users=names(study, users), token=study.token)
        assert not tape.taken().draws
        used = learnt.pop()
        expected = study.mechanism.release_reports(sent, users, support=used.support)
        assert np.array_equal(parts(used), parts(expected))


def support_of(study):
    return study.ask().support(RIVER.shape, study.problem.start)


def one_of(study, seed, i):
    data = episodes_for(study, 3, seed)
    return data.states[i], data.actions[i], data.rewards[i]


# --- logged episodes: first and later releases, and those that a ledger kept

TAKEN = Shape(states=3, actions=2, horizon=4)
NOWHERE = np.zeros(TAKEN.visits[:2], int)
ANYHOW = np.full(TAKEN.visits, 0.5)
FIT = {"fit": (), "evaluate": (NOWHERE,)}


@pytest.mark.parametrize("users", SIZES)
@pytest.mark.parametrize("known", [False, True], ids=["rewards", "known"])
@pytest.mark.parametrize("door", FIT)
def test_every_release_of_logged_episodes_is_drawn_once(
    tmp_path, tape, monkeypatch, door, known, users
):
    module, used = importlib.import_module(f"discreet.offline.{door}"), []
    usual = module.logged
    monkeypatch.setattr(module, "logged", lambda made: [used.append(made), usual(made)][1])
    call = module.fit if door == "fit" else module.evaluate_policy
    few = sample_trajectories(RIVER, ANYHOW, min(users, 500), np.random.default_rng(users))
    few = few[np.arange(users) % len(few)]
    data = Trajectories(few.states, few.actions, np.rint(few.rewards))
    declared = np.ones(TAKEN.visits, bool) if door == "fit" else np.arange(2) == NOWHERE[..., None]
    slots = Slots.of(declared, np.ones(3, bool))
    counts = slots.episodes(data, last_transitions=False).counts(
        slots.shape, np.random.default_rng(0)
    )
    options = {"shape": TAKEN, "users": range(users), "ledger": tmp_path / "ledger"}
    statistics, releases = ("transitions", "rewards"), []
    if known and door == "fit":  # an evaluation releases those of what its policy does not take
        options["rewards"], statistics = np.full((3, 2), 0.5), ("transitions",)
    for trust in (GAUSSIAN, LAPLACE, discreet.Central(0.5, 1e-6), discreet.Central(0.5, 1e-6)):
        call(data, *FIT[door], trust, **options)
        drawn, mechanism = tape.taken(), trust.calibrate(slots.shape, statistics=statistics)
        if len(releases) == 3:  # asked for before, and kept
            assert not drawn.draws
            assert np.array_equal(parts(used[-1]), parts(used[-2]))
            break
        releases.append(drawn.values)
        check_drawn_once(used[-1], drawn, mechanism, counts, slots.support)
    check_fresh(releases)


# --- mechanisms, from the sums of all their users

MECHANISMS = {
    "gaussian": GAUSSIAN,
    "laplace": LAPLACE,
    "bits": discreet.Shuffle(2, 1e-6, mechanism="bits"),
    "histogram": discreet.Shuffle(2, 1e-6, mechanism="histogram"),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_however_many_people_are_in_a_batch_as_much_is_drawn(monkeypatch, name):
    tape, asked = tape_of(monkeypatch, SimulationSampler), []
    mechanism = MECHANISMS[name].calibrate(TAKEN)
    sampler, every = SimulationSampler(np.random.default_rng(0)), np.ones(TAKEN.visits, bool)
    for users in (max(mechanism.min_users, 1), 50, 51, 70_000, 50):
        few = sample_trajectories(RIVER, ANYHOW, 1, np.random.default_rng(users))
        counts = few[np.zeros(users, int)].counts(TAKEN, np.random.default_rng(0), every)
        tape.taken()
        released = mechanism.release(counts, sampler=sampler)
        drawn = tape.taken()
        asked.append([(method, values.shape) for method, _, values in drawn.draws])
        assert asked[-1] == asked[0]
        assert np.array_equal(parts(mechanism.release(counts, sampler=drawn)), parts(released))
        assert not drawn.draws
