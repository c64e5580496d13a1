"""The server process: nothing about requests is written down, and connections have to be used."""

import asyncio

import pytest
from uvicorn.server import ServerState

from discreet.errors import InvalidInputError
from discreet.service.shuffler.server import (
    UNREAD_BYTES,
    PromptProtocol,
    listen,
    make_server,
)


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x"})


class Line(asyncio.Transport):
    """A connection that remembers what became of it."""

    def __init__(self):
        super().__init__({"sockname": ("127.0.0.1", 1), "peername": ("127.0.0.1", 2)})
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


async def connected(does=app):
    config = make_server(does, "127.0.0.1", 0).config
    config.load()
    protocol = PromptProtocol(config=config, server_state=ServerState(), app_state={})
    line = Line()
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
