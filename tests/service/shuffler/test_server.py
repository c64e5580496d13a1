"""The server: never without a proxy, a port is taken, and the shuffler as a process."""

import os
import subprocess
import sys

import pytest

from discreet.errors import InvalidInputError
from discreet.service.configs import ShufflerConfig, listen
from discreet.service.protocol import ticket
from discreet.service.shuffler import server
from discreet.service.shuffler.server import make_server
from helpers.services import charter, new_store


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x"})


def test_no_request_is_written_down_and_no_proxy_believed():
    config = make_server(app, "127.0.0.1", 8700).config
    assert not config.access_log
    assert config.log_config is None
    assert not config.server_header
    assert not config.proxy_headers
    assert config.timeout_graceful_shutdown > 0
    assert config.limit_concurrency


def test_a_port_that_cannot_be_had_is_one_sentence():
    with listen("127.0.0.1", 0) as one:
        taken = one.getsockname()[1]
        with pytest.raises(InvalidInputError, match=rf"port={taken}: .*in use; .*choose another"):
            listen("127.0.0.1", taken)
    with pytest.raises(InvalidInputError, match="from 0 to 65535, got port=99999"):
        listen("127.0.0.1", 99_999)


@pytest.mark.parametrize("changes", [{"host": "0.0.0.0"}, {"private": "10.0.0.7:8701"}])
def test_a_shuffler_is_never_without_a_proxy(folder, changes):
    """A bare one outside this machine does not start, and says how to put one before it."""
    with pytest.raises(InvalidInputError, match=r"never without .* proxy.*behind_proxy = true"):
        server.serve(shuffler_of(folder, port=0, **changes))
    assert not (folder / "shuffler.db").exists()
    server.check_proxied([("0.0.0.0", 1)], behind_proxy=True)
    server.check_proxied([("127.0.0.1", 1), ("::1", 2), ("localhost", 3)], behind_proxy=False)


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
        assert shuffler._thread.submit(shuffler.store.totals).result()["tickets"] == 2
    finally:
        shuffler._thread.submit(shuffler.store.close).result()
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
