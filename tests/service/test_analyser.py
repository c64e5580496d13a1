"""The analyser: what it does next, whatever happened before; and as a process."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import discreet
from discreet.errors import DiscreetError, InvalidInputError
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy
from discreet.service.analyser import (
    Analyser,
    make_analyser,
    opener_of,
    policy_of,
    working_alone,
)
from discreet.service.client import UnreachableError
from discreet.service.configs import AnalyserConfig
from discreet.service.opening import AttackError
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol.problems import Refusal
from helpers.clocks import ManualClock
from helpers.service_analysers import running_study, start_study
from helpers.services import NOW, charter


def asking(policy):
    return SimpleNamespace(ask=lambda: policy)


def test_a_policy_is_plain_lists_of_numbers():
    plain = policy_of(asking(DeterministicPolicy(np.array([[0, 1], [1, 1]]))))
    assert plain == [[0, 1], [1, 1]]
    assert {type(action) for row in plain for action in row} == {int}


def test_a_mixture_is_refused_with_a_remedy():
    with pytest.raises(DiscreetError, match="'flow-ucb'"):
        policy_of(asking(StochasticPolicy(np.full((2, 2, 2), 0.5))))


def test_a_key_of_another_charter_is_refused_before_it_signs(tmp_path):
    of, folder, _ = start_study(tmp_path)
    study = discreet.resume(folder / "study.db")
    with pytest.raises(InvalidInputError, match="one and the same `discreet service init`"):
        Analyser(of, study, Nobody(), Ed25519PrivateKey.generate(), folder)
    assert not list((folder / "manifests").iterdir())


class Scripted(Analyser):
    """One whose steps are known beforehand."""

    def __init__(self, *states, rehearsal=False):
        self.left = list(states)
        self.charter = charter(rehearsal=rehearsal)
        self.study = SimpleNamespace(batches=2, users=7)

    def step(self):
        state = self.left.pop(0)
        if isinstance(state, Exception):
            raise state
        return state


def test_it_waits_between_steps_and_not_after_a_batch():
    pauses = []
    one = Scripted("waiting", "counted", "expired", "finished", "never")
    assert one.run(pauses.append, lambda: False) == "finished"
    assert pauses == [0.2, 0.2] and one.left == ["never"]


def test_a_shuffler_that_is_away_or_busy_is_tried_again(caplog):
    pauses = []
    away = (UnreachableError("away"), Refusal("busy"), Refusal("broken"))
    assert Scripted(*away, "finished").run(pauses.append, lambda: False) == "finished"
    assert pauses == [1.0] * 3
    assert [record.message for record in caplog.records] == [
        "trying again until the shuffler answers: away"  # not once a second, for a whole night
    ]


@pytest.mark.parametrize("error", [Refusal("unauthorised"), AttackError("copies")])
def test_what_waiting_does_not_mend_ends_it(error):
    with pytest.raises(type(error)):
        Scripted(error, "finished").run(lambda _: None, lambda: False)


def test_it_ends_when_it_is_told_to():
    answers = iter([False, True])
    one = Scripted("waiting", "waiting")
    assert one.run(lambda _: None, lambda: next(answers)) == "waiting"
    assert one.left == ["waiting"]


def test_progress_of_a_rehearsal_says_so():
    assert Scripted().progress() == "2 batches counted, 7 users in all"
    assert Scripted(rehearsal=True).progress().startswith("SIMULATED, protects nobody")


class Nobody:
    """A shuffler that takes every announcement and has lost every batch."""

    def announce(self, number, signed):
        self.signed = signed

    def messages(self, number, place, take):
        raise Refusal("batchExpired")

    def manifest_at(self, number):
        raise Refusal("unknownBatch")

    def state(self, number):
        return "expired"


def test_a_key_goes_although_its_analyser_was_stopped_after_the_batch_expired(tmp_path):
    of, folder, key = start_study(tmp_path)

    def stop(name):
        if name == "reissue.after":
            raise KeyboardInterrupt

    def analyser(at):
        study = discreet.resume(folder / "study.db")
        return Analyser(of, study, Nobody(), key, folder, clock=ManualClock(NOW), at=at)

    with pytest.raises(KeyboardInterrupt):
        analyser(stop).step()
    assert (folder / "keys" / "000000.key").exists()
    assert analyser(lambda _: None).step() == "expired"
    assert not list((folder / "keys").iterdir())


def test_a_study_put_back_from_a_copy_changes_nothing(tmp_path):
    """The open batch's key stays, and no second manifest for an older batch is signed."""
    with running_study(tmp_path) as running:
        study = running.folder / "study.db"
        analyser = running.analyser()
        analyser.step()
        copies = [study.read_bytes()]
        passes = iter(running.passes)
        for _ in range(2):
            running.send(passes)
            while analyser.step() != "counted":
                threading.Event().wait(0.02)
            analyser.step()
            copies.append(study.read_bytes())
        analyser.close()
        kept = {p.name: p.read_bytes() for p in running.folder.rglob("*.*") if p.suffix != ".lock"}
        kept.pop("study.db")
        for older in copies[:-1]:
            study.write_bytes(older)
            again = running.analyser()
            with pytest.raises(InvalidInputError, match="older copy of the study"):
                again.step()
            again.close()
            assert (
                kept.items()
                <= {p.name: p.read_bytes() for p in running.folder.rglob("*.*")}.items()
            )
        study.write_bytes(copies[-1])
        latest = running.analyser()
        running.send(passes)
        while (state := latest.step()) == "waiting":
            threading.Event().wait(0.02)
        assert state == "counted"
        latest.close()


def test_a_batch_below_the_least_size_is_raised_and_the_study_goes_on(tmp_path):
    """It ends only when the people who are left are fewer than any batch may have."""
    with running_study(tmp_path, episodes=70, min_users=12) as running:
        analyser = running.analyser()
        running.to_the_end(analyser, iter(running.passes))
        sizes = [entry["users"] for entry in analyser.study.ledger if entry["kind"] == "batch"]
        assert len(sizes) > 2 and min(sizes) >= 12 and 70 - sum(sizes) < 12
        analyser.close()


def test_a_deadline_leaves_room_for_a_shuffler_whose_clock_is_behind(tmp_path):
    of, folder, key = start_study(tmp_path)
    client, study = Nobody(), discreet.resume(folder / "study.db")
    Analyser(of, study, client, key, folder, clock=ManualClock(NOW)).step()
    deadline = manifests.read(client.signed, of).manifest.deadline
    assert NOW + of.patience * 8 // 10 < deadline <= NOW + of.patience * 9 // 10


OF = charter()


@pytest.fixture
def folder(tmp_path):
    """The charters of a study and of its rehearsal."""
    (tmp_path / "charter.json").write_bytes(OF.data)
    (tmp_path / "rehearsal.json").write_bytes(charter(rehearsal=True).data)
    return tmp_path


def analyser_of(folder, **changes):
    fields = {"charter": "charter.json", "study": "s.db", "signing_key": "k", "token_file": "t"}
    return AnalyserConfig(folder=folder, url="http://127.0.0.1:9", **(fields | changes))


def test_a_rehearsal_is_analysed_only_by_who_says_so(folder):
    with pytest.raises(InvalidInputError, match="--rehearsal"):
        make_analyser(analyser_of(folder, charter="rehearsal.json"))


def test_engines_are_known_by_name(folder):
    assert callable(opener_of(analyser_of(folder)))
    with pytest.raises(InvalidInputError, match="'processes' or 'ray', got 'dask'"):
        opener_of(analyser_of(folder, engine="dask"))


def test_a_second_analyser_on_one_study_is_refused(folder):
    config = analyser_of(folder)
    refused = pytest.raises(InvalidInputError, match="Another analyser")
    with working_alone(config), refused, working_alone(config):
        pass
    with working_alone(config):
        pass
