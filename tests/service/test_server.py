"""The server process: nothing about requests is written down, and connections have to be used."""

import asyncio
import logging

import pytest
from uvicorn.server import ServerState

from discreet.service.server import PromptProtocol, make_server, set_up_logging


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

    def is_closing(self):
        return self.closed.is_set()

    def set_protocol(self, protocol):
        pass

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


async def connected():
    config = make_server(app, "127.0.0.1", 0).config
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


def test_our_lines_are_shown_and_the_server_s_requests_are_not():
    names = ("discreet", "uvicorn")
    before = {name: logging.getLogger(name).level for name in names}
    try:
        set_up_logging()
        assert logging.getLogger("discreet.service.web").isEnabledFor(logging.INFO)
        assert not logging.getLogger("uvicorn.access").isEnabledFor(logging.INFO)
        assert logging.getLogger("uvicorn.error").isEnabledFor(logging.WARNING)
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
