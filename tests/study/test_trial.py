"""Throwaway studies: twins, made-up users, and a watch that changes neither plan nor release."""

import logging

import numpy as np
import pytest

import discreet
from discreet.study import check

SIZE = {"states": 3, "actions": 2, "horizon": 3, "episodes": 60, "start_states": [0]}


@pytest.fixture
def make():
    def start(path, trust=None):
        trust = trust or discreet.Central(1)
        options = {"learner": "flow-ucb", "sampler": "simulation", "seed": 3}
        return discreet.start(path, trust=trust, **options, **SIZE)

    return start


def test_twins_are_copies_in_folders_of_their_own(tmp_path, make):
    place = check.Trial(tmp_path, make)
    study = place.fresh()
    twin = place.twin(study)
    assert twin.path != study.path and twin.head == study.head
    check.tell(twin, check.episodes(twin, 1))
    assert (twin.batches, study.batches) == (1, 0)


@pytest.mark.parametrize(
    ("trust", "takes"),
    [
        (discreet.Central(1), (True, False)),
        (discreet.Local(1, mechanism="laplace"), (True, True)),
        (discreet.Local(1, mechanism="one-step"), (False, True)),
    ],
    ids=str,
)
def test_a_watched_plan_keeps_its_capabilities(tmp_path, make, trust, takes):
    study = make(tmp_path / "study.db", trust)
    plan = study.learner.mechanism
    check.watch(study)
    watched = study.learner.mechanism
    assert watched is not plan and type(watched) is type(plan)
    assert (watched.takes_counts, watched.takes_reports) == takes


@pytest.mark.parametrize("trust", [discreet.Central(1), discreet.Local(1)], ids=str)
def test_a_watch_sees_the_release_and_does_not_touch_it(tmp_path, make, trust):
    place = check.Trial(tmp_path, lambda path: make(path, trust))
    study = place.fresh()
    alone, watched = place.twin(study), place.twin(study)
    data, seen = check.episodes(study, 1), check.watch(watched)
    check.tell(alone, data)
    check.tell(watched, data)
    assert seen.released is not None and seen.secure is False
    assert seen.released.guarantee.simulated
    assert (seen.counts is None) == study.encoded
    if not study.encoded:
        assert alone.head == watched.head


def test_a_frozen_release_stands_for_all_others(tmp_path, make):
    place = check.Trial(tmp_path, make)
    study = place.fresh()
    first, second = place.twin(study), place.twin(study)
    seen = check.watch(first)
    check.tell(first, check.episodes(study, 1))
    again = check.watch(second, seen.released)
    check.tell(second, check.episodes(study, 2))
    assert again.released is seen.released
    assert not np.array_equal(again.counts.visits, seen.counts.visits)


def test_strayed_users_leave_the_policy_and_the_others_do_not(tmp_path, make):
    study = make(tmp_path / "study.db")
    data, support = check.episodes(study, 1), check.support_of(study)
    assert data.followed(support).all()
    away = check.strayed(study, data, 2)
    assert not away.followed(support)[:2, -1].any()
    assert away.followed(support)[2:].all()
    assert data.followed(support).all()  # the caller's data stay as they were


def test_names_are_fresh_and_take_a_marker(tmp_path, make):
    study = make(tmp_path / "study.db")
    users = check.names(study, "marked")
    assert users[0] == "marked"
    assert len(set(users)) == study.batch_size


def test_a_log_hears_everything_while_it_listens():
    with check.Log() as log:
        logging.getLogger("discreet.somewhere").warning("heard")
    logging.getLogger("discreet.somewhere").warning("not heard")
    assert any("heard" in line for line in log.lines)
    assert not any("not heard" in line for line in log.lines)
