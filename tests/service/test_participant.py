"""A device: encodes once, sends the same bytes again, follows one chain; and as a process."""

import contextlib
import os
import signal
import stat
from types import SimpleNamespace

import pytest

from discreet.device.draws import ByteDraws
from discreet.device.histogram import HistogramDevice
from discreet.errors import InvalidInputError
from discreet.service import participant
from discreet.service.client import Client, UnreachableError
from discreet.service.configs import DeviceConfig
from discreet.service.participant import (
    Chain,
    Outbox,
    Participant,
    fetch_charter,
)
from discreet.service.protocol.problems import Refusal
from helpers.service_kills import forked
from helpers.services import TOKEN, MemoryOutbox, announced, charter, make_test_shuffler, serving

OF = charter()
LIFE = {"states": [0, 0, 1], "actions": [0, 1], "rewards": [0.0, 1.0]}


class Shuffler:
    """Answers what it was told to; remembers what it was sent."""

    def __init__(self, *answers, chain=None):
        self.answers, self.sent = list(answers), []
        self.chain = chain or [announced(OF)]

    def manifest(self):
        return self.chain[-1].signed

    def manifest_at(self, number):
        return self.chain[number].signed

    def send(self, data):
        self.sent.append(data)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer


@pytest.fixture(params=["memory", "files"])
def outbox(request, tmp_path):
    return MemoryOutbox() if request.param == "memory" else Outbox(tmp_path / "box")


def attempts(shuffler, outbox, count):
    """So many attempts, each after a restart of the device; what came, and how often it played."""
    plays, states = [], []
    for _ in range(count):
        user = Participant(Chain(OF, shuffler), shuffler, bytes(32), outbox)
        try:
            states.append(user.attempt(lambda _: plays.append(1) or LIFE))
        except UnreachableError:
            states.append("again")
    return states, len(plays)


def test_the_same_bytes_are_sent_until_somebody_answers(outbox):
    shuffler = Shuffler(UnreachableError("x"), Refusal("busy"), Refusal("broken"), None)
    assert attempts(shuffler, outbox, 4) == (["again", "again", "again", "accepted"], 1)
    assert len(shuffler.sent) == 4 and len(set(shuffler.sent)) == 1


def test_a_spent_ticket_is_an_answer_that_was_lost(outbox):
    shuffler = Shuffler(UnreachableError("x"), Refusal("ticketSpent"))
    assert attempts(shuffler, outbox, 2) == (["again", "ticketSpent"], 1)


@pytest.mark.parametrize("answer", [None, Refusal("ticketSpent")])
def test_what_was_answered_is_neither_encoded_nor_sent_again(outbox, answer):
    shuffler = Shuffler(answer)
    states, plays = attempts(shuffler, outbox, 3)
    assert states[1:] == ["ticketSpent"] * 2 and plays == 1
    assert len(shuffler.sent) == 1


def test_a_device_says_how_often_its_ticket_is_still_good(outbox):
    """Once in each batch; one that expired and is announced again does not count twice."""
    of = charter(participations=3)
    chain = [announced(of)]
    shuffler = Shuffler(None, UnreachableError("x"), Refusal("alreadyInBatch"), None, chain=chain)
    told = []

    def attempt():
        user = Participant(Chain(of, shuffler), shuffler, bytes(32), outbox)
        with contextlib.suppress(UnreachableError):
            told.append((user.attempt(lambda _: LIFE), user.left))

    attempt()
    attempt()  # nothing is sent for this manifest any more
    for batch in (0, 1):
        before = chain[-1].manifest
        chain.append(announced(of, before.number + 1, before=before, batch=batch))
        attempt()
        attempt()
    assert told == [
        ("accepted", 2),
        ("alreadyInBatch", 2),
        ("alreadyInBatch", 2),
        ("accepted", 1),
        ("alreadyInBatch", 1),
    ]
    assert len(shuffler.sent) == 4 and len(set(shuffler.sent)) == 3
    assert Participant(Chain(of, shuffler), shuffler, bytes([1]) * 32, outbox).left == 3


def test_a_shuffler_that_takes_a_refusal_back_gets_the_same_bytes(outbox):
    """Another encoding of the same episode would be a second look at it."""
    shuffler = Shuffler(Refusal("policyOutdated"), Refusal("noOpenBatch"), None)
    assert attempts(shuffler, outbox, 3) == (["policyOutdated", "noOpenBatch", "accepted"], 1)
    assert len(set(shuffler.sent)) == 1


def test_a_device_that_is_killed_sends_the_same_bytes_when_it_comes_back(tmp_path):
    """Killed while it sends: whatever has left it, nothing else will."""
    told = tmp_path / "told"

    class Watched(Shuffler):
        def send(self, data):
            with told.open("ab") as file:
                file.write(data)
            os.kill(os.getpid(), signal.SIGKILL)

    def life():
        attempts(Watched(), Outbox(tmp_path / "box"), 1)

    assert not forked(life) and not forked(life)
    shuffler = Shuffler(None)
    assert attempts(shuffler, Outbox(tmp_path / "box"), 1) == (["accepted"], 0)
    assert told.read_bytes() == 2 * shuffler.sent[0]
    (left,) = (tmp_path / "box").glob("*.report")
    assert left.read_bytes() == b""


def test_a_report_is_one_fresh_draw(outbox, monkeypatch):
    """Of the first and of later batches, after an answer was lost and after every start."""
    draws, encode = [], HistogramDevice._encode

    class Counted(ByteDraws):
        def _block(self, length):
            draws[-1] += (block := super()._block(length))
            return block

    def counted(device, steps, _):
        draws.append(b"")
        return encode(device, steps, Counted())

    monkeypatch.setattr(HistogramDevice, "_encode", counted)
    of = charter(participations=3)
    chain = [announced(of)]
    for number, batch in enumerate((0, 1, 2), 1):  # the first of them expired
        before = chain[-1].manifest
        chain.append(announced(of, number, before=before, batch=batch))
    for number in range(4):
        shuffler = Shuffler(UnreachableError("x"), Refusal("busy"), None, chain=chain[: number + 1])
        for _ in range(4):
            user = Participant(Chain(of, shuffler), shuffler, bytes(32), outbox)
            with contextlib.suppress(UnreachableError):
                user.attempt(lambda _: LIFE)
        assert len(set(shuffler.sent)) == 1 and len(shuffler.sent) == 3
        assert len(draws) == number + 1
    assert len(set(draws)) == 4 and len({len(block) for block in draws}) == 1


def test_an_outbox_tells_tickets_apart(outbox):
    shuffler = Shuffler(None, None)
    for pass_ in (bytes(32), bytes(range(32))):
        user = Participant(Chain(OF, shuffler), shuffler, pass_, outbox)
        assert user.attempt(lambda _: LIFE) == "accepted"
    assert [data[1:33] for data in shuffler.sent] == [bytes(32), bytes(range(32))]


def test_tickets_that_share_an_outbox_are_encoded_once_each(outbox):
    """At a clinic many take part at one device: what one of them has kept is not another's."""
    shuffler, plays = Shuffler(UnreachableError("x"), None, None), []
    for own in (bytes(32), bytes(range(32)), bytes(32), bytes(range(32))):
        user = Participant(Chain(OF, shuffler), shuffler, own, outbox)
        with contextlib.suppress(UnreachableError):
            user.attempt(lambda _: plays.append(1) or LIFE)
    assert len(plays) == 2 and len(shuffler.sent) == 3
    assert shuffler.sent[0] == shuffler.sent[2] != shuffler.sent[1]


def test_an_older_report_of_the_same_ticket_goes(tmp_path):
    box = Outbox(tmp_path / "box")
    for owner, name in (("one", "first"), ("two", "first"), ("one", "second")):
        box.write(owner, name, b"sealed")
    assert box.read("one", "first") is None
    assert box.read("one", "second") == box.read("two", "first") == b"sealed"


def test_of_two_devices_with_one_outbox_only_one_works(tmp_path):
    """Both would find nothing, and both would encode."""
    shuffler, box = Shuffler(None), Outbox(tmp_path / "box")

    def play(_):
        other = Participant(Chain(OF, shuffler), shuffler, bytes(32), Outbox(tmp_path / "box"))
        with pytest.raises(InvalidInputError, match="Another device"):
            other.attempt(lambda _: LIFE)
        return LIFE

    assert Participant(Chain(OF, shuffler), shuffler, bytes(32), box).attempt(play) == "accepted"
    assert len(shuffler.sent) == 1


@pytest.mark.parametrize("delay", [-5.0, float("inf"), float("nan"), 1e6])
def test_a_delay_that_nobody_can_wait_for_is_refused(outbox, delay):
    with pytest.raises(InvalidInputError, match="delay of 0 to 86400 seconds"):
        Participant(Chain(OF, Shuffler()), Shuffler(), bytes(32), outbox, delay=delay)


def test_a_shuffler_that_answers_something_else_is_no_crash(outbox):
    shuffler = Shuffler()

    def refuse():
        raise Refusal("ticketSpent")

    shuffler.manifest = refuse
    with pytest.raises(Refusal, match="ticketSpent"):
        attempts(shuffler, outbox, 1)


def test_another_manifest_is_another_report(outbox):
    first = announced(OF)
    shuffler = Shuffler(Refusal("policyOutdated"), None)
    states, plays = attempts(shuffler, outbox, 1)
    shuffler.chain.append(announced(OF, 1, before=first.manifest))
    more, again = attempts(shuffler, outbox, 1)
    assert states + more == ["policyOutdated", "accepted"] and plays + again == 2
    assert shuffler.sent[0][33:65] == first.hash and shuffler.sent[1][33:65] != first.hash


def test_what_should_never_happen_is_an_error(outbox):
    with pytest.raises(Refusal, match="wrongLength"):
        attempts(Shuffler(Refusal("wrongLength")), outbox, 1)


def test_a_chain_is_followed_from_its_beginning():
    one = announced(OF)
    two = announced(OF, 1, before=one.manifest)
    three = announced(OF, 2, before=two.manifest)
    shuffler = Shuffler(chain=[one, two, three])
    kept = []
    chain = Chain(OF, shuffler, keep=kept.append)
    assert chain.current().hash == three.hash and kept == [three.signed]
    assert Chain(OF, shuffler, one.manifest).current().hash == three.hash
    assert chain.current().hash == three.hash


def test_a_fork_a_gap_and_an_older_manifest_are_refused():
    one, other = announced(OF), announced(OF, users=4)
    two = announced(OF, 1, before=one.manifest)
    for chain, seen in (
        ([other, two], None),  # does not follow
        ([other], one.manifest),  # another one of this number
        ([one], two.manifest),  # older than what was seen
        ([one, announced(OF, 1, before=one.manifest, batch=5)], None),
        ([other, two, announced(OF, 2, before=two.manifest)], None),  # a fork among those missed
    ):
        with pytest.raises(Refusal, match="badManifest"):
            Chain(OF, Shuffler(chain=chain), seen).current()


def test_a_manifest_of_another_study_or_signer_is_refused():
    other = charter(purpose="another")
    with pytest.raises(Refusal, match="another study"):
        Chain(OF, Shuffler(chain=[announced(other)])).current()
    wrong = charter(signing_key=bytes(range(32)))
    with pytest.raises(Refusal, match="badSignature"):
        Chain(wrong, Shuffler(chain=[announced(OF)])).current()


def test_a_kept_report_is_its_owner_s_alone(tmp_path):
    """It begins with the ticket."""
    box = Outbox(tmp_path / "box")
    box.write("owner", "name", b"sealed")
    (kept,) = (tmp_path / "box").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_charter_is_compared_before_it_is_read():
    """A shuffler's own words are not even parsed."""
    served = SimpleNamespace(charter=lambda: b"[" * 100_000)
    with pytest.raises(InvalidInputError, match="ask who gave you the ticket"):
        fetch_charter(served, OF.id)
    assert fetch_charter(SimpleNamespace(charter=lambda: OF.data), OF.id) == OF


@pytest.mark.parametrize(
    ("own", "study", "sentence"),
    [
        ("", "00" * 32, "64 hexadecimal digits; give --ticket"),
        ("11" * 31, "00" * 32, "64 hexadecimal digits; give --ticket"),
        ("zz" * 32, "00" * 32, "hexadecimal digits"),
        ("11" * 32, "no name", "hexadecimal digits"),
    ],
)
def test_a_device_asks_nobody_before_ticket_and_study_are_right(tmp_path, own, study, sentence):
    config = DeviceConfig(folder=tmp_path, study=study, url="http://127.0.0.1:9")
    with pytest.raises(InvalidInputError, match=sentence):
        participant.make_participant(config, None, lambda _: None, own=own)


def test_a_device_remembers_the_last_manifest_it_has_checked(tmp_path):
    one = announced(OF)
    config = DeviceConfig(folder=tmp_path, study=OF.id.hex(), url="")
    with (
        serving(make_test_shuffler(tmp_path / "s.db", OF)) as url,
        Client(url, TOKEN) as client,
    ):
        client.announce(0, one.signed)
        chain, _ = participant.make_participant(config, client, lambda _: None, own="11" * 32)
        assert chain.seen is None and chain.current().manifest == one.manifest
        assert (tmp_path / "outbox" / "seen.manifest").read_bytes() == one.signed
        again, _ = participant.make_participant(config, client, lambda _: None, own="11" * 32)
        assert again.seen == one.manifest
