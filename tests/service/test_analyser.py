"""The analyser: what it does next, whatever happened before; and as a process."""

import json
import shutil
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import discreet
from discreet.errors import DiscreetError, InvalidInputError
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy
from discreet.service.analyser import Analyser, policy_of
from discreet.service.client import UnreachableError
from discreet.service.configs import AnalyserConfig
from discreet.service.opening import AttackError
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol.problems import Refusal
from discreet.service.worker import make_analyser, opener_of, working_alone
from discreet.study.dossier.review import check_participants
from helpers.clocks import ManualClock
from helpers.service_analysers import make_analyser as make_test_analyser
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
    study = discreet.open_study(folder / "study.db")
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
    one, seen = Scripted(*away, "finished"), []
    assert one.run(pauses.append, lambda: False, lambda _: seen.append(one.trouble)) == "finished"
    assert pauses == [1.0] * 3
    assert [trouble.partition(":")[0] for trouble in seen] == ["", "busy", "broken", ""]
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
    assert Scripted().progress() == "2 batches counted, 7 reports in all"
    assert Scripted(rehearsal=True).progress().startswith("SIMULATED, protects nobody")


class Nobody:
    """A shuffler that takes every announcement and has lost every batch."""

    def announce(self, number, signed):
        self.signed = signed

    def messages(self, number, place, take):
        raise Refusal("batchExpired")

    def manifests(self):
        return []

    def state(self, number):
        return "expired"


def test_a_key_goes_although_its_analyser_was_stopped_after_the_batch_expired(tmp_path):
    of, folder, key = start_study(tmp_path)

    def stop(name):
        if name == "reissue.after":
            raise KeyboardInterrupt

    def analyser(at):
        study = discreet.open_study(folder / "study.db")
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


def test_a_service_counts_uses_of_tickets_and_a_bundle_says_so(tmp_path):
    """Two batches may be of the same people: no name is known here."""
    with running_study(tmp_path, episodes=200, participations=2) as running:
        analyser = running.analyser()
        for _ in range(2):
            count_one(running, analyser, iter(running.passes))
        study = analyser.study
        _, people, design = study.record
        said = SimpleNamespace(
            design=json.loads(design),
            batches=[entry for entry in study.ledger if entry["kind"] == "batch"],
        )
        bundle = SimpleNamespace(read=lambda _: people, said=said)
        assert check_participants(bundle).startswith(f"{study.users:,} uses of tickets, each")
        analyser.close()


def count_one(running, analyser, passes):
    """The next batch, filled by whoever comes next."""
    analyser.step()
    running.send(passes)
    running.until(analyser, "counted")


def copied(running, to, *keys):
    """The analyser's folder as a backup holds it, or (``"keys"``) as a disk does."""
    left_out = shutil.ignore_patterns(*({"keys"} - set(keys)))
    return shutil.copytree(running.folder, to, ignore=left_out)


def test_of_two_copies_the_one_that_was_given_up_changes_nothing(tmp_path):
    """A machine that was thought lost comes back, after a copy of an older day has gone on."""
    with running_study(tmp_path, episodes=200) as running:
        passes = iter(running.passes)
        first = running.analyser()
        count_one(running, first, passes)
        older = copied(running, tmp_path / "older")
        count_one(running, first, passes)
        first.step()
        second = make_test_analyser(running.of, older, running.url, running.key)
        assert second.abandon() == (
            "Manifests 1 to 2 are abandoned; tickets: those of manifest 2 are free again."
        )
        with pytest.raises(InvalidInputError, match="Another copy of this study has gone on"):
            first.step()  # it runs, and learns it from the shuffler
        first.close()
        running.send(passes)
        while running.client.state(3) != "sealed":
            threading.Event().wait(0.02)
        kept = {p.name: p.read_bytes() for p in running.folder.rglob("*.manifest")}
        for job in ("step", "abandon"):
            back = running.analyser()
            with pytest.raises(InvalidInputError, match="Another copy") as caught:
                getattr(back, job)()
            assert "recover" not in str(caught.value)
            back.close()
        assert running.client.state(3) == "sealed"
        assert kept == {p.name: p.read_bytes() for p in running.folder.rglob("*.manifest")}
        assert second.step() == "counted" and second.study.batches == 2
        second.close()


def test_a_copy_whose_manifest_another_copy_has_written_does_not_go_on(tmp_path):
    """Both have counted the same batches: the shuffler has the next manifest of one of them."""
    with running_study(tmp_path, episodes=200) as running:
        passes = iter(running.passes)
        first = running.analyser()
        count_one(running, first, passes)
        twin = copied(running, tmp_path / "twin")
        second = make_test_analyser(running.of, twin, running.url, running.key)
        first._rebuild()
        second.step()
        with pytest.raises(InvalidInputError, match="Another copy of this study has gone on"):
            first.step()
        first.close()
        second.close()


def test_all_keys_of_what_is_given_up_go(tmp_path):
    """Also that of a manifest after which another copy has signed one."""
    with running_study(tmp_path, episodes=200) as running:
        first = running.analyser()
        first.step()
        first.close()
        twin = copied(running, tmp_path / "twin")
        second = make_test_analyser(running.of, twin, running.url, running.key)
        second.abandon()
        second.close()
        assert (running.folder / "keys" / "000000.key").exists()
        back = running.analyser()
        with pytest.raises(InvalidInputError, match="older copy of the study"):
            back.step()
        assert back.abandon().startswith("Manifests 0 to 1 are abandoned")
        assert [path.name for path in (running.folder / "keys").iterdir()] == ["000002.key"]
        count_one(running, back, iter(running.passes))
        back.close()


def test_a_manifest_that_nobody_has_seen_does_not_stop_an_older_study(tmp_path):
    with running_study(tmp_path, episodes=200) as running:
        passes, study = iter(running.passes), running.folder / "study.db"
        analyser = running.analyser()
        count_one(running, analyser, passes)
        older = study.read_bytes()
        count_one(running, analyser, passes)
        analyser.close()
        ahead = running.analyser(clock=ManualClock(NOW + 3_456_000))
        with pytest.raises(InvalidInputError, match="clock"):
            ahead.step()
        assert ahead.latest().manifest.number == 2
        ahead.close()
        study.write_bytes(older)
        again = running.analyser()
        with pytest.raises(InvalidInputError, match="`discreet service abandon --config FILE`"):
            again.step()
        assert again.abandon() == "Manifests 1 to 1 are abandoned; tickets: used."
        assert again.study.ledger[-1]["returning"] == "nobody"
        count_one(running, again, passes)
        again.close()


def test_a_manifest_that_was_rewritten_after_the_backup_is_taken_from_the_shuffler(tmp_path):
    with running_study(tmp_path, episodes=200) as running:
        passes = iter(running.passes)
        analyser = running.analyser()
        count_one(running, analyser, passes)
        analyser.close()
        ahead = running.analyser(clock=ManualClock(NOW + 3_456_000))
        with pytest.raises(InvalidInputError, match="clock"):
            ahead.step()
        ahead.close()
        backup = copied(running, tmp_path / "backup")
        right = running.analyser()
        assert right.step() == "waiting"
        right.close()
        again = make_test_analyser(running.of, backup, running.url, running.key)
        with pytest.raises(InvalidInputError, match="The key of manifest 1 is not in the folder"):
            again.step()
        assert again.latest().signed == running.client.manifest_at(1)
        assert again.abandon().startswith("Manifests 1 to 1 are abandoned")
        count_one(running, again, passes)
        again.close()


def test_a_kill_while_a_manifest_is_made_anew_voids_no_batch(tmp_path):
    """The new key is there, the new manifest is not, and then the old one's deadline fits."""
    clock, points = ManualClock(NOW + 3_456_000), []

    def stop(point):
        points.append(point)
        if points.count("manifest.before") == 2:
            raise KeyboardInterrupt

    with running_study(tmp_path, episodes=200, clock=clock) as running:
        killed = running.analyser(at=stop)
        with pytest.raises(KeyboardInterrupt):
            killed.step()
        killed.close()
        clock.move(-3_456_000)
        again = running.analyser()
        count_one(running, again, iter(running.passes))
        assert again.study.ledger[-1]["note"]["unreadable"] == "0"
        again.close()


@pytest.mark.parametrize("state", ["open", "full", "sealed", "handed", "done"])
def test_only_an_expired_batch_is_over_although_nobody_has_counted_it(tmp_path, state):
    of, folder, key = start_study(tmp_path)
    study, shuffler = discreet.open_study(folder / "study.db"), Nobody()
    analyser = Analyser(of, study, shuffler, key, folder, clock=ManualClock(NOW))
    analyser._next(None)
    study.reissue(returning="nobody")
    shuffler.state = lambda _: state
    with pytest.raises(InvalidInputError, match="did not expire"):
        analyser.step()
    assert (folder / "keys" / "000000.key").exists()


def test_tickets_of_a_batch_that_the_shuffler_has_lost_are_void(tmp_path):
    of, folder, key = start_study(tmp_path)
    study, shuffler = discreet.open_study(folder / "study.db"), Nobody()

    def lost(*_):
        raise Refusal("batchAbandoned")

    def state(number):
        if number:
            raise Refusal("unknownBatch")
        return "abandoned"

    shuffler.messages, shuffler.state = lost, state
    analyser = Analyser(of, study, shuffler, key, folder, clock=ManualClock(NOW))
    assert analyser.step() == "expired"
    entry = study.ledger[-1]
    assert (entry["returning"], entry["note"]["tickets"]) == ("nobody", "used")


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
    client, study = Nobody(), discreet.open_study(folder / "study.db")
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
