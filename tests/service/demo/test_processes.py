"""Roles as processes: killed, started again, never left behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

from discreet.errors import DiscreetError
from discreet.service.client import Client
from discreet.service.demo.run import Role, ending, wait_until_there

COUNT = "import pathlib, sys, time; p = pathlib.Path(sys.argv[1]); p.open('a').write('x'); "


def role(tmp_path, code):
    return Role("sleeper", ["-c", code, str(tmp_path / "starts")], tmp_path / "log")


def starts(tmp_path, number):
    """Wait until the process has said so many times that it began."""
    path = tmp_path / "starts"
    while not path.exists() or len(path.read_text()) < number:
        time.sleep(0.01)


def test_a_killed_role_comes_back_and_ends_with_the_block(tmp_path):
    one = role(tmp_path, COUNT + "time.sleep(600)")
    with ending([one]):
        one.start()
        starts(tmp_path, 1)
        assert one.kill() and one.kills == 1
        starts(tmp_path, 2)
        number = one._process.pid
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_role_that_has_ended_is_not_killed(tmp_path):
    one = role(tmp_path, COUNT)
    one.start()
    assert one.wait(300) and one.ended == 0
    one.check()
    assert not one.kill()


def test_a_role_that_fails_is_named_with_its_last_words(tmp_path, port):
    one = role(tmp_path, "import sys; sys.exit('no such file')")
    one.start()
    one.wait(300)
    with pytest.raises(DiscreetError, match="sleeper ended with code 1: no such file"):
        one.check()
    with (
        Client(f"http://127.0.0.1:{port}") as client,
        pytest.raises(DiscreetError, match="no such file"),
    ):
        wait_until_there(client, one)


SHOW = """
import pathlib, sys, time
from discreet.service.demo.run import Role, ending
folder = pathlib.Path(sys.argv[1])
sleeper = Role("sleeper", ["-c", "import time; time.sleep(600)"], folder / "log")
with ending([sleeper]):
    sleeper.start()
    (folder / "number").write_text(str(sleeper.number))
    time.sleep(600)
"""


def test_p20_sigterm_ends_a_demonstration_and_all_its_roles(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", SHOW, str(tmp_path)])
    path = tmp_path / "number"
    try:
        while not path.exists() or not path.read_text():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(int(path.read_text()), 0)
