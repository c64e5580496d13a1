"""P24 and P25: slow connections deny nobody, and a private authority vouches for the shuffler.

With the shipped nginx configuration where nginx is installed.
"""

import asyncio
import contextlib
import json
import pathlib
import re
import ssl
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from discreet.cli.app import make_app
from discreet.errors import InvalidInputError
from discreet.service.client import Client, UnreachableError
from discreet.service.configs import listen
from discreet.service.protocol import ticket
from discreet.service.shuffler import server
from helpers.nginx import SHIPPED, needs_nginx, nginx, private_authority
from helpers.services import (
    TOKEN,
    announced,
    charter,
    fake_report,
    kept_port,
    make_test_shuffler,
    serving,
)

OF = charter()
HONEST = 20
HEAD = b"POST /v1/reports HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 500\r\n\r\n\1"


async def slow(count, port, tls=None):
    """So many connections that have sent the beginning of a report, from 50 addresses."""
    writers = []
    for i in range(count):
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=tls, local_addr=(f"127.0.1.{i % 50 + 1}", 0)
        )
        writer.write(HEAD)
        await writer.drain()
        writers.append(writer)
    return writers


async def among_slow_ones(count, port, job, tls=None):
    """What a job finds while so many slow connections are open."""
    writers = await slow(count, port, tls)
    try:
        return await asyncio.to_thread(job)
    finally:
        for writer in writers:
            writer.transport.abort()


def honest(url, reports, **options):
    """How many of these reports are taken, each on a connection of its own."""
    taken = 0
    for one in reports:
        with contextlib.suppress(UnreachableError), Client(url, **options) as client:
            client.send(one)
            taken += 1
    return taken


@contextlib.contextmanager
def two_listeners(tmp_path):
    """A shuffler with an open batch; its ports for devices and for the analyser, and reports."""
    passes = ticket.make(HONEST)
    one = announced(OF, users=HONEST + 1)
    shuffler = make_test_shuffler(tmp_path / "s.db", OF, passes)
    with (
        listen("127.0.0.1", 0) as public,
        listen("127.0.0.1", 0) as private,
        serving(shuffler, sockets=[public, private]) as url,
    ):
        with Client(url, TOKEN) as client:
            client.announce(0, one.signed)
        ports = [listener.getsockname()[1] for listener in (public, private)]
        yield *ports, [fake_report(one, x) for x in passes]


@needs_nginx
def test_p24_slow_connections_deny_nobody_behind_nginx(tmp_path, monkeypatch, long_run):
    """They wait at the proxy, which hands on whole requests only: none reaches the shuffler."""
    count = 2000 if long_run else 150
    monkeypatch.setattr(server, "PLACES", 16)
    with (
        two_listeners(tmp_path) as (devices, analyser, reports),
        kept_port() as port,
        nginx(tmp_path / "nginx", devices, analyser, port) as url,
    ):
        trusted = tmp_path / "nginx" / "ca.pem"
        tls = ssl.create_default_context(cafile=trusted)

        def job():
            with Client(url, TOKEN, ca_file=trusted) as client:
                client.announce(0, client.manifest())
            return honest(url, reports, ca_file=trusted)

        assert asyncio.run(among_slow_ones(count, port, job, tls)) == HONEST


@needs_nginx
def test_p24_nginx_keeps_nothing_and_bounds_what_one_address_holds(tmp_path):
    """No log, no file of a report; from one address some connections and no more."""
    with (
        two_listeners(tmp_path) as (devices, analyser, reports),
        kept_port() as port,
        nginx(tmp_path / "nginx", devices, analyser, port) as url,
    ):
        trusted = tmp_path / "nginx" / "ca.pem"
        tls = ssl.create_default_context(cafile=trusted)

        async def one(writers):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
            writers.append(writer)
            writer.write(HEAD)
            return await reader.readline()

        async def crowd():
            writers = []
            tasks = [asyncio.create_task(one(writers)) for _ in range(200)]
            try:
                for answer in asyncio.as_completed(tasks):
                    if b" 429 " in await answer:
                        return True
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for writer in writers:
                    writer.transport.abort()
            return False

        assert any(
            asyncio.run(crowd()) for _ in range(3)
        )  # a busy machine may open too few in time
        while not honest(url, reports[:1], ca_file=trusted):  # until nginx has seen them go
            pass
        with Client(url, ca_file=trusted) as client:
            with pytest.raises(UnreachableError, match="404"):
                client._ask("GET", "/readyz")
            with pytest.raises(UnreachableError, match="401"):  # of a stranger it collects nothing
                client.announce(0, bytes(16 << 20))
    files = {path.name for path in (tmp_path / "nginx").rglob("*") if path.is_file()}
    bounds = re.findall(
        r"^    client_(?:max_body|body_buffer)_size (\w+);", SHIPPED.read_text(), re.M
    )
    assert len(bounds) == 2 and len(set(bounds)) == 1  # whatever is taken fits into memory
    assert files <= {"ca.pem", "certificate.pem", "key.pem", "nginx.conf", "nginx.pid"}


@needs_nginx
def test_p25_a_private_authority_vouches_for_the_shuffler(tmp_path):
    other = private_authority(tmp_path / "other") / "ca.pem"
    with (
        two_listeners(tmp_path) as (devices, analyser, _),
        kept_port() as port,
        nginx(tmp_path / "nginx", devices, analyser, port) as url,
    ):
        trusted = tmp_path / "nginx" / "ca.pem"
        with Client(url, ca_file=trusted) as client:
            assert client.charter() == OF.data
        for ca_file in (None, other):
            with (
                Client(url, ca_file=ca_file) as client,
                pytest.raises(UnreachableError, match=r"^TLS: the certificate .* ca_file"),
            ):
                client.charter()
        with (
            Client(f"https://127.0.0.1:{devices}", ca_file=trusted) as client,
            pytest.raises(UnreachableError, match=r"^TLS: no secure connection"),
        ):
            client.charter()
        words = ["service", "status", "--url", url, "--ca-file", str(trusted)]
        done = CliRunner().invoke(make_app(), words)
        assert done.exit_code == 0 and OF.purpose in done.output


def test_p25_a_file_of_certificates_that_is_none_is_one_sentence(tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(InvalidInputError, match="no certificate in PEM"):
        Client("https://127.0.0.1:1", ca_file=tmp_path / "ca.pem")
    with pytest.raises(InvalidInputError, match="No such file"):
        Client("https://127.0.0.1:1", ca_file=tmp_path / "none.pem")


@needs_nginx
def test_a_study_to_which_much_happens_and_what_its_operators_see(tmp_path):
    """A bounded sample of `python -m tests.soak.operations`, whose full form is for `make soak`."""
    sizes = ["--users", "100", "--kills", "2", "--ages", "0", "--log", str(tmp_path / "log")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.operations", *sizes],
        cwd=pathlib.Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    stages = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [one["stage"] for one in stages][-1] == "finished" and len(stages) >= 8
    assert all(one["right"] for one in stages)
