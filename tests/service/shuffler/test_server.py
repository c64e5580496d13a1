"""The server: slow clients are cut, a port is taken, and the shuffler as a process."""

import asyncio
import os
import subprocess
import sys

import pytest
from uvicorn.server import ServerState

from discreet.errors import InvalidInputError
from discreet.service.configs import ShufflerConfig, listen
from discreet.service.protocol import ticket
from discreet.service.shuffler import server
from discreet.service.shuffler.server import (
    UNREAD_BYTES,
    PromptProtocol,
    make_server,
)
from helpers.services import charter, new_store


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x"})


class Line(asyncio.Transport):
    """A connection that remembers what became of it."""

    def __init__(self, port=1):
        super().__init__({"sockname": ("127.0.0.1", port), "peername": ("127.0.0.1", 2)})
        self.written, self.closed = b"", asyncio.Event()

    def write(self, data):
        self.written += data

    def close(self):
        self.closed.set()

    def abort(self):
        self.closed.set()

    def is_closing(self):
        return self.closed.is_set()

    def set_protocol(self, protocol):
        pass

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


async def connected(does=app, state=None, port=1):
    config = make_server(does, "127.0.0.1", 0).config
    config.load()
    protocol = PromptProtocol(config=config, server_state=state or ServerState(), app_state={})
    line = Line(port)
    protocol.connection_made(line)
    return protocol, line


def test_no_request_is_written_down_and_no_proxy_believed():
    config = make_server(app, "127.0.0.1", 8700).config
    assert not config.access_log
    assert config.log_config is None
    assert not config.server_header
    assert not config.proxy_headers
    assert config.http is PromptProtocol
    assert config.timeout_graceful_shutdown > 0
    assert config.limit_concurrency


@pytest.mark.parametrize("said", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: x\r\n"])
def test_who_never_ends_a_request_is_cut(said, monkeypatch):
    monkeypatch.setattr(PromptProtocol, "header_seconds", 0.01)

    async def wait():
        protocol, line = await connected()
        protocol.data_received(said)
        await line.closed.wait()
        protocol.connection_lost(None)
        return line.written

    assert asyncio.run(wait()) == b""


def test_a_whole_request_is_answered_and_the_next_one_has_its_own_time():
    async def talk():
        protocol, line = await connected()
        assert protocol._timer is not None
        protocol.data_received(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert protocol._timer is None
        while b"200 OK" not in line.written:
            await asyncio.sleep(0)
        protocol.data_received(b"GET / HT")
        assert protocol._timer is not None and not line.is_closing()
        protocol.connection_lost(None)
        assert protocol._timer is None

    asyncio.run(talk())


def test_headers_without_an_end_are_cut_before_they_fill_the_memory():
    async def talk():
        protocol, line = await connected()
        protocol.data_received(b"GET / HTTP/1.1\r\n")
        sent = 0
        while not line.is_closing():
            protocol.data_received(b"x: " + b"a" * 65_000 + b"\r\n")
            sent += 65_005
        protocol.connection_lost(None)
        return sent

    assert asyncio.run(talk()) <= UNREAD_BYTES + 65_005


def test_what_follows_a_request_that_is_still_answered_is_bounded_too():
    """A long body in many readings is not: the application bounds it."""

    async def never(scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        await asyncio.Event().wait()

    async def talk():
        protocol, line = await connected(never)
        protocol.data_received(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4000001\r\n\r\n")
        for _ in range(16):
            protocol.data_received(bytes(250_000))
        protocol.data_received(b"x")
        assert not line.is_closing()
        protocol.data_received(b"GET / HTTP/1.1\r\n")
        for _ in range(20):
            protocol.data_received(b"x: " + b"a" * 65_000 + b"\r\n")
        assert line.is_closing()
        protocol.connection_lost(None)

    asyncio.run(talk())


def test_where_all_places_are_taken_who_kept_us_waiting_longest_goes(monkeypatch):
    """Not who waits for an answer; and each address has places of its own."""
    monkeypatch.setattr(PromptProtocol, "places", 3)

    async def never(scope, receive, send):
        await asyncio.Event().wait()

    async def talk():
        state = ServerState()
        made = [await connected(never, state) for _ in range(3)]
        made[0][0].data_received(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")  # waits for us
        made[1][0].data_received(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n1")
        made += [await connected(never, state, port=2) for _ in range(3)]
        assert not any(line.is_closing() for _, line in made)
        made.append(await connected(never, state))
        cut = [line.is_closing() for _, line in made]
        for protocol, _ in made:
            protocol.connection_lost(None)
        for task in state.tasks:
            task.cancel()
        return cut

    assert asyncio.run(talk()) == [False, True, False, False, False, False, False]


def test_a_port_that_cannot_be_had_is_one_sentence():
    with listen("127.0.0.1", 0) as one:
        taken = one.getsockname()[1]
        with pytest.raises(InvalidInputError, match=rf"port={taken}: .*in use; .*choose another"):
            listen("127.0.0.1", taken)
    with pytest.raises(InvalidInputError, match="from 0 to 65535, got port=99999"):
        listen("127.0.0.1", 99_999)


def test_who_does_not_read_is_cut(monkeypatch):
    monkeypatch.setattr(PromptProtocol, "answer_seconds", 0.01)

    async def wait(reads):
        protocol, line = await connected()
        protocol.pause_writing()
        if reads:
            protocol.resume_writing()
        await asyncio.sleep(0.1)
        closed = line.closed.is_set()
        protocol.connection_lost(None)
        return closed

    assert asyncio.run(wait(False)) and not asyncio.run(wait(True))


OF = charter()


@pytest.fixture
def folder(tmp_path):
    """The charters of a study and of its rehearsal, and two tickets."""
    (tmp_path / "charter.json").write_bytes(OF.data)
    (tmp_path / "rehearsal.json").write_bytes(charter(rehearsal=True).data)
    digests = [ticket.digest(bytes([i]) * 32) for i in range(2)]
    ticket.write_digests(tmp_path / "digests.txt", digests)
    return tmp_path


def shuffler_of(folder, **changes):
    fields = {"charter": "charter.json", "digests": "digests.txt"} | changes
    return ShufflerConfig(folder=folder, analyser_token_sha256="00" * 32, **fields)


def test_the_shuffler_admits_the_tickets_of_its_file(folder):
    shuffler = server.make_shuffler(shuffler_of(folder))
    try:
        assert shuffler._thread.submit(shuffler._store.totals).result()["tickets"] == 2
    finally:
        shuffler._thread.submit(shuffler._store.close).result()
        shuffler._thread.shutdown()


def test_a_rehearsal_is_served_only_by_who_says_so(folder):
    with pytest.raises(InvalidInputError, match="--rehearsal"):
        server.make_shuffler(shuffler_of(folder, charter="rehearsal.json"))


def test_a_world_that_cannot_be_read_is_one_sentence(folder):
    assert shuffler_of(folder).model == b""
    (folder / "world.json").write_bytes(b"{}")
    assert shuffler_of(folder, world="world.json").model == b"{}"
    with pytest.raises(InvalidInputError, match=r"Cannot read the world '.*no\.json'"):
        _ = shuffler_of(folder, world="no.json").model


def test_a_store_of_another_study_learns_no_tickets_of_this_one(folder):
    """Who holds tickets of both would take part in one of them twice."""
    new_store(folder / "shuffler.db", charter(purpose="another")).close()
    with pytest.raises(InvalidInputError, match="another charter"):
        server.make_shuffler(shuffler_of(folder))
    store = new_store(folder / "shuffler.db", charter(purpose="another"))
    assert store.totals()["tickets"] == 0
    store.close()


BLOCKED = """
import sys
from numba.core import caching

def read_only(_):
    raise OSError(30, "Read-only file system")

for locator in (caching.InTreeCacheLocator, caching.UserWideCacheLocator):
    locator.ensure_cache_path = read_only
from discreet.cli.app import main
main()
"""


def on_a_read_only_disk(folder, **environment):
    """The command of the shuffler, where only NUMBA_CACHE_DIR can be written to."""
    (folder / "shuffler.toml").write_text(
        'charter = "rehearsal.json"\ndigests = "digests.txt"\nport = 0\n'
        f'analyser_token_sha256 = "{"00" * 32}"\n'
    )
    words = ["service", "shuffler", "--config", str(folder / "shuffler.toml"), "--rehearsal"]
    clean = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return subprocess.Popen(
        [sys.executable, "-c", BLOCKED, *words],
        stderr=subprocess.PIPE,
        text=True,
        env=clean | environment,
    )


def test_without_a_place_for_compiled_code_it_does_not_start(folder):
    """It would start, and be broken when the first batch is announced, and at every one after."""
    server = on_a_read_only_disk(folder)
    said = server.stderr.readline()
    if "listens on" in said:
        server.terminate()
    said += server.communicate()[1]
    assert server.returncode == 2 and said.count("\n") == 1
    assert "NUMBA_CACHE_DIR" in said and "can write to" in said
    assert not (folder / "shuffler.db").exists()


def test_with_a_place_for_compiled_code_it_serves(folder):
    server = on_a_read_only_disk(folder, NUMBA_CACHE_DIR=str(folder / "cache"))
    try:
        assert "listens on" in server.stderr.readline()
        assert list((folder / "cache").rglob("*poisson_curve*.nbi"))  # loaded before anybody asks
    finally:
        server.terminate()
        server.communicate()
