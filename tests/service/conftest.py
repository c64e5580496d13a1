"""Stores of both kinds, and a private database server."""

import importlib.util

import pytest

if any(importlib.util.find_spec(n) is None for n in ("cryptography", "starlette", "httpx")):
    collect_ignore_glob = ["*"]  # the extra `service` is not installed: nothing here can run


@pytest.fixture(scope="session")
def postgres_server():
    """One server for all tests of a run; skips where none is installed."""
    pytest.importorskip("psycopg")
    from helpers.postgres import Server

    server = Server()
    yield server
    server.stop()


@pytest.fixture
def port():
    """Of a server in another process."""
    from helpers.services import kept_port

    with kept_port() as number:
        yield number


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where a store can be: a file, or a database of its own."""
    if request.param == "sqlite":
        return str(tmp_path / "shuffler.db")
    return request.getfixturevalue("postgres_server").database()
