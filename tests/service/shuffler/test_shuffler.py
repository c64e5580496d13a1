"""The shuffler without a server: whom it believes, what it announces, what became of a report."""

import asyncio

import pytest

from discreet.errors import InvalidInputError
from discreet.service.protocol import ticket
from discreet.service.protocol.charter import Charter
from discreet.service.protocol.problems import Refusal
from discreet.service.shuffler.store import StoreBusyError
from helpers.clocks import ManualClock
from helpers.services import NOW, TOKEN, announced, charter, fake_report, make_test_shuffler

OF = charter()


@pytest.fixture
def shuffler(tmp_path):
    """One that lives while a coroutine runs: `lived`."""
    return make_test_shuffler(tmp_path / "s.db", OF, clock=ManualClock(NOW))


def lived(shuffler, job):
    async def life():
        async with shuffler.life():
            return await job()

    return asyncio.run(life())


def refused(shuffler, number, signed):
    """The code of an announcement that is refused."""

    async def announce():
        with pytest.raises(Refusal) as caught:
            await shuffler.announce(number, signed)
        assert await shuffler.run(shuffler.store.live) is None
        return caught.value.code

    return lived(shuffler, announce)


@pytest.mark.parametrize(
    ("said", "believed"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer {TOKEN}", True),
        (f"Basic {TOKEN}", False),
        (f"Bearer {TOKEN} ", False),
        ("Bearer ", False),
        (TOKEN, False),
        ("", False),
        ("Bearer \udcff", False),
    ],
)
def test_only_the_token_makes_an_analyser(shuffler, said, believed):
    async def ask():
        try:
            shuffler.check_analyser(said)
        except Refusal:
            return False
        return True

    assert lived(shuffler, ask) is believed


def test_a_batch_from_its_first_report_to_its_last_word(shuffler):
    one, passes = announced(OF), ticket.make(3)

    async def batch():
        await shuffler.run(shuffler.store.admit, [ticket.digest(x) for x in passes])
        assert await shuffler.announce(0, one.signed)
        assert not await shuffler.announce(0, one.signed)  # this very manifest, once more
        assert (
            await shuffler.manifest()
            == await shuffler.run(shuffler.store.manifest, 0)
            == one.signed
        )
        codes = [await shuffler.take(fake_report(one, x)) for x in (*passes[:2], passes[0])]
        assert codes == ["accepted", "accepted", "ticketSpent"]
        with pytest.raises(Refusal, match="notFull"):
            await shuffler.length(0, 0)
        assert await shuffler.take(fake_report(one, passes[2])) == "accepted"
        await shuffler.tick()
        for place, size in enumerate(one.sizes):
            parts = [part async for part in shuffler.messages(0, place)]
            assert len(b"".join(parts)) == await shuffler.length(0, place) == 3 * 52 * size
        assert await shuffler.run(shuffler.store.done, 0)
        with pytest.raises(Refusal, match="batchDone"):
            await shuffler.length(0, 0)
        with pytest.raises(Refusal, match="noOpenBatch"):
            await shuffler.manifest()
        return await shuffler.totals()

    totals = lived(shuffler, batch)
    assert (totals["batches_done"], totals["tickets_spent"]) == (1, 3)


def test_an_announcement_under_another_number_is_refused(shuffler):
    assert refused(shuffler, 1, announced(OF).signed) == "batchPending"


@pytest.mark.parametrize("seconds", [0, -1, OF.patience + 1])
def test_a_deadline_is_ahead_and_within_the_charter_s_patience(shuffler, seconds):
    late = announced(OF, deadline=int(NOW) + seconds)
    assert refused(shuffler, 0, late.signed) == "badDeadline"


def test_a_batch_expires_after_its_deadline_and_not_before(tmp_path):
    clock, one = ManualClock(NOW), announced(OF)
    shuffler = make_test_shuffler(tmp_path / "s.db", OF, clock=clock)

    async def wait():
        await shuffler.announce(0, one.signed)
        clock.move(500)
        await shuffler.tick()
        before = (await shuffler.run(shuffler.store.live)).state
        clock.move(0.5)
        await shuffler.tick()
        return before, await shuffler.run(shuffler.store.live)

    assert lived(shuffler, wait) == ("open", None)


def test_an_accident_in_the_store_is_told_to_all_and_the_next_group_goes_on(shuffler):
    one, passes = announced(OF), ticket.make(3)

    async def break_once():
        await shuffler.run(shuffler.store.admit, [ticket.digest(x) for x in passes])
        await shuffler.announce(0, one.signed)
        submit = shuffler.store.submit
        shuffler.store.submit = lambda _: 1 / 0
        first = await asyncio.gather(*(shuffler.take(fake_report(one, x)) for x in passes))
        shuffler.store.submit = submit
        return first, await shuffler.take(fake_report(one, passes[0]))

    assert lived(shuffler, break_once) == (["broken"] * 3, "accepted")


def test_nobody_is_taken_before_it_lives_or_without_being_asked(tmp_path):
    shuffler = make_test_shuffler(tmp_path / "s.db", OF)
    one = announced(OF)
    assert asyncio.run(shuffler.take(fake_report(one, bytes(32)))) == "busy"

    async def close():
        pass

    lived(shuffler, close)
    with pytest.raises(InvalidInputError, match="--rehearsal"):
        make_test_shuffler(tmp_path / "r.db", charter(rehearsal=True))


def test_a_store_that_is_busy_has_taken_nothing(shuffler):
    """Its disk is full, its server away: nobody is told that a report is safe."""
    one, passes = announced(OF), ticket.make(2)

    def full(_):
        raise StoreBusyError("SQLite: database or disk is full")

    async def ask():
        await shuffler.run(shuffler.store.admit, [ticket.digest(x) for x in passes])
        await shuffler.announce(0, one.signed)
        submit, shuffler.store.submit = shuffler.store.submit, full
        first = await asyncio.gather(*(shuffler.take(fake_report(one, x)) for x in passes))
        shuffler.store.submit = submit
        return first, (await shuffler.run(shuffler.store.live)).received

    assert lived(shuffler, ask) == (["busy"] * 2, 0)


def test_a_batch_whose_noise_is_not_covered_is_not_opened(shuffler, monkeypatch):
    """Nobody knows such a batch: the check is told to find one."""

    def refuse(*_):
        raise InvalidInputError("above the limit")

    monkeypatch.setattr(Charter, "check_noise", refuse)
    assert refused(shuffler, 0, announced(OF).signed) == "badManifest"


def test_a_log_is_tidied_at_the_next_tick(shuffler):
    async def wait():
        shuffler.store.untidy = True
        await shuffler.tick()
        return shuffler.store.untidy

    assert lived(shuffler, wait) is False


def test_reports_that_wait_are_bounded_in_bytes_too(shuffler, monkeypatch):
    monkeypatch.setattr("discreet.service.shuffler.shuffler._WAITING_BYTES", 1)
    one = announced(OF)

    async def flood():
        await shuffler.announce(0, one.signed)
        reports = [fake_report(one, x) for x in ticket.make(3)]
        first = await asyncio.gather(*(shuffler.take(data) for data in reports))
        return first, await shuffler.take(reports[0])

    first, later = lived(shuffler, flood)
    assert first == ["unknownTicket", "busy", "busy"] and later == "unknownTicket"


def test_strangers_are_few_in_a_second_and_guests_are_not_kept_waiting(tmp_path):
    """Before anything of a report but its ticket is looked at."""
    (guest,) = ticket.make(1)
    shuffler = make_test_shuffler(tmp_path / "s.db", OF, [guest], clock=ManualClock(NOW))

    async def knock():
        codes = []
        for one in ticket.make(300):
            try:
                shuffler.look(one)
                codes.append("read")
            except Refusal as refusal:
                codes.append(refusal.code)
            shuffler.look(guest)
        return codes

    codes = lived(shuffler, knock)
    assert set(codes[:100]) == {"read"}
    assert codes[100:].count("busy") > 150
