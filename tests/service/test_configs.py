"""Files of the roles, clocks, and what every process does."""

import signal
import time

import pytest

from discreet.errors import InvalidInputError, UnknownNameError
from discreet.service import configs
from discreet.service.configs import (
    AnalyserConfig,
    DeviceConfig,
    SystemClock,
    check_url,
    template,
)
from discreet.service.configs import ShufflerConfig as Shuffler
from helpers.clocks import ManualClock

FIELDS = {
    "charter": "../charter.json",
    "digests": "t.txt",
    "token": "ab" * 32,
    "store": "s.db",
    "port": 9,
    "private": "127.0.0.1:10",
    "page": "127.0.0.1:11",
    "url": "https://x",
    "study": "cd" * 32,
}


def write(tmp_path, text):
    path = tmp_path / "role.toml"
    path.write_text(text)
    return path


def test_the_templates_are_read_back(tmp_path):
    one = Shuffler.read(write(tmp_path, template("shuffler", **FIELDS)))
    assert (one.port, one.token_digests, one.where) == (9, [b"\xab" * 32], str(tmp_path / "s.db"))
    two = AnalyserConfig.read(write(tmp_path, template("analyser", **FIELDS)))
    assert two.path(two.study) == tmp_path / "study.db" and two.jobs == 1
    three = DeviceConfig.read(write(tmp_path, template("device", **FIELDS)))
    assert three.study == "cd" * 32 and three.delay == 60


def test_an_address_is_no_path(tmp_path):
    text = template("shuffler", **(FIELDS | {"store": "postgresql://u@h/d"}))
    assert Shuffler.read(write(tmp_path, text)).where == "postgresql://u@h/d"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("port = 9", "prot = 9", r"role\.toml' 'prot'; did you mean 'port'"),
        ("port = 9", 'port = "9"', "Expected port to be an integer, got port='9'"),
        ("port = 9", "port = true", "Expected port to be an integer"),
        ('store = "s.db"', "store =", "Cannot read"),
        ('charter = "../charter.json"', "", "Expected the key 'charter' in"),
    ],
)
def test_a_slip_is_named(tmp_path, old, new, sentence):
    text = template("shuffler", **FIELDS)
    assert old in text
    with pytest.raises((InvalidInputError, UnknownNameError), match=sentence):
        Shuffler.read(write(tmp_path, text.replace(old, new)))


def test_a_token_is_a_digest(tmp_path):
    text = template("shuffler", **(FIELDS | {"token": "secret"}))
    with pytest.raises(InvalidInputError, match="64 hexadecimal digits"):
        _ = Shuffler.read(write(tmp_path, text)).token_digests


@pytest.mark.parametrize("url", ["shuffler.example.org", "ftp://x", "http://", "https://a b"])
def test_an_address_without_a_scheme_is_refused(tmp_path, url):
    with pytest.raises(InvalidInputError, match=r"such as 'https://.*got url="):
        DeviceConfig.read(write(tmp_path, template("device", **(FIELDS | {"url": url}))))


def test_a_token_that_cannot_be_read_names_its_file(tmp_path):
    config = AnalyserConfig.read(write(tmp_path, template("analyser", **FIELDS)))
    with pytest.raises(InvalidInputError, match=r"Cannot read the token .*token': No such file"):
        _ = config.token
    (tmp_path / "token").write_text("secret\n")
    assert config.token == "secret"


@pytest.mark.parametrize("url", ["http://127.0.0.1:8700", "http://localhost/x", "http://[::1]:1"])
def test_on_one_machine_no_tls_is_needed(url):
    check_url(url)


@pytest.mark.parametrize("url", ["http://example.org", "http://10.0.0.1:87", "http://127.0.0.1.x"])
def test_secrets_do_not_travel_in_the_open(url):
    with pytest.raises(InvalidInputError, match="Expected https://"):
        check_url(url)


def test_the_system_clock_counts_seconds_since_1970():
    before = time.time()
    assert before <= SystemClock().now() <= time.time()


def test_a_manual_clock_stands_still_and_moves_both_ways():
    clock = ManualClock(100.0)
    assert clock.now() == clock.now() == 100.0
    clock.move(50)
    clock.move(-70.5)
    assert clock.now() == 79.5


def test_both_signals_end_things_in_order():
    before = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT)}
    ended = []
    try:
        configs.on_signals(lambda: ended.append(1))
        for name in before:
            signal.raise_signal(name)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
    assert ended == [1, 1]
