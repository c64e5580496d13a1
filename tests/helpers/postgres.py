"""A private PostgreSQL server from the installed binaries: in a folder of its own, on no port."""

import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

_PLACES = ("/usr/lib/postgresql/*/bin/postgres", "/usr/local/pgsql/bin/postgres")


def binaries():
    """The folder of the newest server, or a skipped test."""
    found = [p for place in _PLACES for p in sorted(pathlib.Path("/").glob(place[1:]))]
    if not found:
        pytest.skip("PostgreSQL is not installed: its store is not tested here.")
    return found[-1].parent


def _as_somebody(folder):
    """A server refuses to run as root: the rest of a command line that makes it somebody else."""
    if os.getuid():
        return []
    try:
        other = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("There is no user 'postgres' as whom root could run a server.")
    os.chown(folder, other.pw_uid, other.pw_gid)
    ids = [f"--reuid={other.pw_uid}", f"--regid={other.pw_gid}", "--clear-groups"]
    return ["setpriv", *ids]


class Server:
    """Runs until `stop`; `database` makes a new one.

    Args:
        largest: bytes of a file of its, from 1 MB: what is larger is refused as on a full disk.
    """

    def __init__(self, largest="unlimited"):
        bin_, self.folder = binaries(), pathlib.Path(tempfile.mkdtemp(prefix="discreet-pg-"))
        who = _as_somebody(self.folder)
        self.data = self.folder / "data"
        init = [bin_ / "initdb", "-D", self.data, "-U", "test", "-A", "trust", "--no-sync"]
        init += ["--wal-segsize=1"]
        subprocess.run([*who, *init], check=True, stdout=subprocess.DEVNULL, cwd=self.folder)
        options = ("listen_addresses=", "fsync=off", "shared_buffers=16MB", "max_connections=40")
        flags = [part for option in options for part in ("-c", option)]
        self.log = (self.folder / "log").open("wb")
        self._process = subprocess.Popen(
            [
                *who,
                "prlimit",
                f"--fsize={largest}",
                bin_ / "postgres",
                "-D",
                self.data,
                "-k",
                self.folder,
                *flags,
            ],
            stdout=self.log,
            stderr=self.log,
            cwd=self.folder,
        )
        self._made = 0
        self._wait()

    def _wait(self):
        import psycopg

        for _ in range(6_000):  # minutes: on however busy a machine
            try:
                psycopg.connect(self.address("public")).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        raise RuntimeError((self.folder / "log").read_text())

    def address(self, schema):
        path = f"-csearch_path%3D{schema}"
        return f"postgresql://test@/postgres?host={self.folder}&options={path}"

    def database(self):
        """The address of a new, empty place for tables (a schema: quicker than a database)."""
        import psycopg

        self._made += 1
        name = f"d{self._made}"
        with psycopg.connect(self.address("public"), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return self.address(name)

    def stop(self):
        self._process.send_signal(signal.SIGINT)  # at once, whoever is still connected
        self._process.wait()
        self.log.close()
        shutil.rmtree(self.folder)
