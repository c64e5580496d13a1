"""`discreet service`: init, tickets, status, device, verify, and what is refused."""

import json

import pytest

pytest.importorskip("cryptography")
pytest.importorskip("starlette")
pytest.importorskip("flint")

from discreet.service import roles
from discreet.service.configs import AnalyserConfig, ShufflerConfig
from helpers.services import serving

SMALL = ("--states", "2", "--actions", "2", "--steps", "2", "--start", "0", "--episodes", "40")
PROMISE = ("--epsilon", "4", "--delta", "1e-4")


@pytest.fixture
def folder(discreet, tmp_path):
    where = tmp_path / "service"
    code, out, err = discreet("service", "init", str(where), *SMALL, *PROMISE, "--rehearsal")
    assert code == 0, err
    assert "SIMULATED, protects nobody" in out and "together they see" in " ".join(out.split())
    return where


def test_a_folder_for_every_role(discreet, folder):
    names = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert {
        "charter.json",
        "shuffler/shuffler.toml",
        "analyser/analyser.toml",
        "analyser/signing.key",
        "analyser/token",
        "device/device.toml",
    } <= names
    for secret in ("analyser/signing.key", "analyser/token", "analyser/study.db"):
        assert (folder / secret).stat().st_mode & 0o077 == 0
    code, _, err = discreet("service", "init", str(folder), *SMALL, *PROMISE)
    assert code == 2 and "exists already" in err


def test_what_is_refused_leaves_no_folder(discreet, tmp_path):
    where = tmp_path / "service"
    words = (*SMALL, *PROMISE, "--least-users", "100000")
    code, _, err = discreet("service", "init", str(where), *words)
    assert code == 2 and "fewer than least_users" in err
    assert not where.exists()
    assert discreet("service", "init", str(where), *SMALL, *PROMISE)[0] == 0


def test_tickets_add_up_and_the_shuffler_gets_digests_only(discreet, folder):
    for count in (3, 2):
        assert discreet("service", "tickets", str(folder), "--count", str(count))[0] == 0
    tickets = (folder / "enroller" / "tickets.txt").read_text().split()
    digests = (folder / "shuffler" / "tickets.txt").read_text().split()
    assert len(tickets) == len(digests) == 5 and not set(tickets) & set(digests)


def test_a_rehearsal_is_not_run_by_mistake(discreet, folder):
    for role in ("shuffler", "analyser"):
        config = str(folder / role / f"{role}.toml")
        code, _, err = discreet("service", role, "--config", config)
        assert code == 2 and "--rehearsal" in err


def test_a_person_takes_part_and_everything_is_verified(discreet, folder, tmp_path):
    discreet("service", "tickets", str(folder), "--count", "2")
    pass_ = (folder / "enroller" / "tickets.txt").read_text().split()[0]
    shuffler = roles.make_shuffler(
        ShufflerConfig.read(folder / "shuffler" / "shuffler.toml"), rehearsal=True
    )
    with serving(shuffler) as url:
        for role in ("analyser", "device"):
            path = folder / role / f"{role}.toml"
            text = path.read_text().replace("http://127.0.0.1:8700", url)
            path.write_text(text.replace("delay = 60.0", "delay = 0.0"))
        config = AnalyserConfig.read(folder / "analyser" / "analyser.toml")
        analyser = roles.make_analyser(config, rehearsal=True)
        assert analyser.step() == "waiting"
        analyser.close()
        device = ("service", "device", "--config", str(folder / "device" / "device.toml"))
        device = (*device, "--rehearsal", "--ticket", pass_)
        _, out, _ = discreet(*device)
        shown = json.loads(out)
        assert len(shown["policy"]) == 2 and shown["actions"] == ["0", "1"]
        life = {"states": [0, 0, 0], "actions": [0, 0], "rewards": [0, 1]}
        (tmp_path / "life.json").write_text(json.dumps(life))
        episode = ("--episode", str(tmp_path / "life.json"))
        (tmp_path / "slip.json").write_text(json.dumps(life | {"rewards": [0, 7]}))
        code, _, err = discreet(*device, "--episode", str(tmp_path / "slip.json"))
        assert code == 2 and "rewards in [0, 1]. Nothing was sent; mend" in err
        assert json.loads(discreet(*device, *episode)[1]) == {"state": "accepted"}
        assert json.loads(discreet(*device, *episode)[1]) == {"state": "ticketSpent"}
        _, out, _ = discreet("service", "status", "--url", url, "--json")
        assert json.loads(out)["totals"]["received"] == 1
        assert "SIMULATED" in discreet("service", "status", "--url", url)[1]
    charter, manifests = str(folder / "charter.json"), str(folder / "analyser" / "manifests")
    study = str(folder / "analyser" / "study.db")
    command = ("service", "verify", charter, "--manifests", manifests, "--study", study)
    code, out, _ = discreet(*command, "--json")
    found = json.loads(out)
    assert code == 0 and found["manifests"] == 1 and found["batches_counted"] == 0
    assert 0 < found["delta_proven"] <= 1e-4
    (folder / "charter.json").write_bytes((folder / "charter.json").read_bytes() + b" ")
    code, _, err = discreet(*command)
    assert code == 2 and "canonical JSON" in err


def test_bad_input_is_one_sentence(discreet, folder, tmp_path):
    for arguments, sentence in (
        (("status", "--url", "http://127.0.0.1:9"), "Cannot reach"),
        (("shuffler", "--config", str(tmp_path / "none.toml")), "Cannot read"),
        (("verify", str(tmp_path / "none.json")), "Cannot read"),
        (("tickets", str(folder), "--count", "0"), "at least one ticket"),
        (("tickets", str(tmp_path), "--count", "1"), "tickets are the enroller's"),
        (("init", str(tmp_path / "new"), "--url", "example.org"), "such as 'https://"),
    ):
        code, _, err = discreet("service", *arguments)
        assert code == 2 and sentence in err and err.count("\n") == 1
