"""Stream learners on real data: one user after the other, or many, across restarts."""

import numpy as np
import pytest

import discreet
from discreet.errors import StudyError, UnsupportedError
from discreet.privacy.sampling.samplers import SimulationSampler
from helpers.registries import learners_and_trusts
from helpers.studies import RIVER, advance, begin, episodes_of, names, reports_of

TRUSTS = {
    "central": discreet.Central(1, 1e-6),
    "local": discreet.Local(1),
    "none": discreet.NoPrivacy(),
}
STREAMS = learners_and_trusts("continual")


@pytest.mark.parametrize(("learner", "trust"), STREAMS)
def test_every_stream_learner_runs_the_same_with_and_without_restarts(tmp_path, learner, trust):
    finals = []
    for name in ("whole", "restarted"):
        study = begin(tmp_path / name, TRUSTS[trust], learner=learner, episodes=40)
        assert study.batch_size == 1
        for user in range(5):
            if name == "restarted":
                study = discreet.resume(study.path, study.head)
            advance(study, user)
        study.verify()
        released = study.driver.counts.transitions.tolist()
        finals.append((study.users, study.batches, study.ask().key, released))
    assert finals[0] == finals[1]
    assert finals[0][:2] == (5, 5)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "randomized-response", "one-step"])
def test_local_streams_of_every_mechanism_go_on(tmp_path, mechanism):
    trust = discreet.Local(2, 1e-6 if mechanism == "gaussian" else 0, mechanism=mechanism)
    study = begin(tmp_path / "study.db", trust, learner="dp-ucbvi", episodes=40)
    twin = begin(tmp_path / "twin.db", trust, learner="dp-ucbvi", episodes=40)
    for user in range(3):
        study = discreet.resume(study.path, study.head)
        for one in (study, twin):
            data = episodes_of(one, user)
            one.tell(reports_of(one, data, user), users=[user])
    np.testing.assert_array_equal(study.driver.counts.visits, twin.driver.counts.visits)
    assert study.driver.counts.visits.any()


def test_many_at_a_time_and_all_of_them(tmp_path):
    study = begin(tmp_path / "study.db", learner="dp-ucbvi", episodes=40)
    for users in (7, 1, 30):
        advance(study, users, users=users)
    with pytest.raises(StudyError, match="takes 1 to 2 users, got 3"):
        advance(study, 0, users=3)
    advance(study, 0, users=2)
    assert (study.finished, study.users, study.batches) == (True, 40, 4)


def test_without_privacy_the_counts_are_those_of_the_users(tmp_path):
    study = begin(tmp_path / "study.db", TRUSTS["none"], learner="ucbvi", episodes=60)
    data = episodes_of(study, 1, 50)
    study.tell(data, users=names(study, 50))
    expected = data.counts(RIVER.shape, np.random.default_rng(0))
    np.testing.assert_array_equal(study.driver.counts.transitions, expected.transitions)
    assert study.answer.defer.all()  # one policy says nothing about the other action


@pytest.mark.parametrize("trust", ["central", "local"])
def test_a_stream_that_another_process_closed_takes_nobody(tmp_path, trust):
    one = begin(tmp_path / "study.db", TRUSTS[trust], learner="dp-ucbvi", episodes=40)
    advance(one, 0)
    late, last = discreet.resume(one.path), discreet.resume(one.path)
    data = episodes_of(late, 1)
    data = reports_of(late, data) if late.encoded else data
    one.close()
    with pytest.raises(StudyError, match="was closed after 1 users"):
        late.tell(data, users=["late"])
    last.close()  # once is enough
    assert [entry["kind"] for entry in last.ledger] == ["start", "batch", "close"]
    assert one.head == late.head == last.head
    assert late.finished and str(late.value) == str(one.value) == str(last.value)
    discreet.resume(one.path, one.head).verify()


def test_two_processes_share_a_stream(tmp_path):
    one = begin(tmp_path / "study.db", learner="dp-ucbvi", episodes=40)
    two = discreet.resume(one.path)
    late = episodes_of(two, 1)  # ran a policy of before: every counter has noise anyway
    one.tell(episodes_of(one, 0), users=["a"])
    two.tell(late, users=["b"])
    with pytest.raises(StudyError, match="'b' has taken part already"):
        one.tell(episodes_of(one, 2), users=["b"])
    assert (one.users, two.users) == (2, 2)
    one.tell(episodes_of(one, 2), users=["c"])
    assert discreet.resume(one.path, two.head).users == 3


def test_an_unfit_report_changes_nothing(tmp_path):
    study = begin(tmp_path / "study.db", TRUSTS["local"], learner="dp-ucbvi", episodes=40)
    good = reports_of(study, episodes_of(study, 0))
    head, counts = study.head, study.driver.counts.users
    for bad in (good[:, :-1], np.concatenate([good, good]), good[0]):
        with pytest.raises(StudyError, match=r"Nothing was counted\."):
            study.tell(bad, users=["a"])
    assert (study.head, study.driver.counts.users) == (head, counts)
    study.tell(good, users=["a"])
    assert study.users == 1


def test_a_stream_that_is_resumed_draws_no_noise_of_its_own(tmp_path, monkeypatch):
    """It would be thrown away, and secure noise is slow."""
    study = begin(tmp_path / "study.db", learner="dp-ucbvi", episodes=40)
    advance(study)
    monkeypatch.setattr(SimulationSampler, "discrete_gaussian", lambda *_: 1 / 0)
    again = discreet.resume(study.path)
    np.testing.assert_array_equal(again.driver.running.open, study.driver.running.open)


def test_a_central_stream_releases_its_closed_nodes_and_nothing_else(tmp_path):
    """Whole numbers, bit for bit: nothing of the data is in what they leave over."""
    study = begin(tmp_path / "study.db", learner="dp-ucbvi", episodes=300)
    for users in (63, 1, 1, 200):
        advance(study, users, users=users)
        counts = study.driver.counts
        parts = [counts.transitions, counts.visits, counts.rewards]
        released = np.concatenate([part.ravel() for part in parts])
        np.testing.assert_array_equal(released, study.driver.running.release())
        written = discreet.resume(study.path).driver.counts
        np.testing.assert_array_equal(written.transitions, counts.transitions)


def test_streams_that_would_write_exact_sums_are_refused(tmp_path):
    for mechanism in ("toeplitz", "tree-honaker"):
        trust = discreet.Central(1, 1e-6, mechanism=mechanism)
        with pytest.raises(UnsupportedError, match="holds exact sums"):
            begin(tmp_path / "study.db", trust, learner="dp-ucbvi")
    with pytest.raises(UnsupportedError, match="runs only in simulations"):
        begin(tmp_path / "study.db", TRUSTS["none"], learner="private-uc-o-reps")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_tell_leaves_the_stream_as_it_was(tmp_path, monkeypatch):
    study = begin(tmp_path / "study.db", learner="dp-ucbvi", episodes=40)
    advance(study, 0)
    before = study.driver.running.open.copy()
    with monkeypatch.context() as broken:
        broken.setattr(study, "_write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            advance(study, 1)
    np.testing.assert_array_equal(study.driver.running.open, before)
    advance(study, 1)
    assert discreet.resume(study.path).users == 2
