"""`discreet service`: every command, what it refuses, and a demonstration with kills."""

import json

import pytest
from typer.testing import CliRunner

pytest.importorskip("cryptography")
pytest.importorskip("starlette")
from discreet.cli.app import make_app
from discreet.service.configs import AnalyserConfig, ShufflerConfig
from discreet.service.demo.users import answered
from discreet.service.protocol.charter import Charter
from discreet.service.shuffler.server import make_shuffler
from discreet.service.worker import make_analyser
from helpers.services import serving

SMALL = ("--states", "2", "--actions", "2", "--steps", "2", "--start", "0", "--episodes", "40")
GUARANTEE = ("--epsilon", "4", "--delta", "1e-4")


@pytest.fixture
def small():
    """Words for a study of a second."""
    return (*SMALL, *GUARANTEE)


@pytest.fixture
def folder(discreet, small, tmp_path):
    """Of a service that was just set up."""
    where = tmp_path / "service"
    code, out, err = discreet("service", "init", str(where), *small, "--rehearsal")
    assert code == 0, err
    assert "SIMULATED, protects nobody" in out and "together they see" in " ".join(out.split())
    return where


def test_a_folder_for_every_role(discreet, folder, small):
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
    code, _, err = discreet("service", "init", str(folder), *small)
    assert code == 2 and "exists already" in err


def test_what_is_refused_leaves_no_folder(discreet, small, tmp_path):
    where = tmp_path / "service"
    words = (*small, "--min-users", "100000")
    code, _, err = discreet("service", "init", str(where), *words)
    assert code == 2 and "Expected episodes >= 100000" in err
    assert not where.exists()
    assert discreet("service", "init", str(where), *small)[0] == 0


DESIGN = """
states = ["ill", "well"]
actions = ["wait", "treat"]
steps = 2
episodes = 40

[[allowed]]
states = ["well"]
actions = ["wait"]

[trust]
model = "shuffle"
epsilon = 4
delta = 1e-4
"""


def test_a_service_is_founded_by_the_file_of_a_design(discreet, tmp_path):
    (tmp_path / "d.toml").write_text(DESIGN)
    words = ("--design", str(tmp_path / "d.toml"), "--rehearsal")
    code, _, err = discreet("service", "init", str(tmp_path / "a"), *words)
    assert code == 0, err
    charter = Charter.read(tmp_path / "a" / "charter.json")
    assert charter.names["states"] == ("ill", "well") and len(charter.allowed) == 1
    code, _, err = discreet("service", "init", str(tmp_path / "b"), *words, "--trust", "central")
    assert code == 2 and 'Expected model = "shuffle" in [trust] of a service' in err
    (tmp_path / "d.toml").write_text(DESIGN.replace("epsilon = 4", ""))
    code, _, err = discreet("service", "init", str(tmp_path / "b"), *words)
    assert code == 2 and "Expected an epsilon" in err
    assert not (tmp_path / "b").exists()


def test_the_help_of_init_offers_what_a_service_takes(discreet):
    shown = " ".join(discreet("service", "init", "-h")[1].replace("│", " ").split())
    assert "at most 0.95, the default" in shown and "shuffle, which is all" in shown
    assert "central, local" not in shown


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


def test_tickets_add_up_and_the_shuffler_gets_digests_only(discreet, folder):
    for count in (3, 2):
        assert discreet("service", "tickets", str(folder), "--count", str(count))[0] == 0
    tickets = (folder / "enroller" / "tickets.txt").read_text().split()
    digests = (folder / "shuffler" / "digests.txt").read_text().split()
    assert len(tickets) == len(digests) == 5 and all(line.startswith("sha256:") for line in digests)
    assert not {line.removeprefix("sha256:") for line in digests} & set(tickets)


@pytest.mark.parametrize("role", ["shuffler", "analyser"])
def test_a_rehearsal_is_not_run_by_mistake(discreet, folder, role):
    config = str(folder / role / f"{role}.toml")
    code, _, err = discreet("service", role, "--config", config)
    assert code == 2 and "--rehearsal" in err


def test_a_person_takes_part_and_everything_is_verified(discreet, folder, tmp_path):
    discreet("service", "tickets", str(folder), "--count", "2")
    pass_ = (folder / "enroller" / "tickets.txt").read_text().split()[0]
    shuffler = make_shuffler(
        ShufflerConfig.read(folder / "shuffler" / "shuffler.toml"), rehearsal=True
    )
    with serving(shuffler) as url:
        for role in ("analyser", "device"):
            path = folder / role / f"{role}.toml"
            text = path.read_text().replace("http://127.0.0.1:8700", url)
            path.write_text(text.replace("delay = 60.0", "delay = 0.0"))
        config = AnalyserConfig.read(folder / "analyser" / "analyser.toml")
        analyser = make_analyser(config, rehearsal=True)
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
        assert json.loads(discreet(*device, *episode)[1]) == {"state": "accepted", "left": 0}
        assert json.loads(discreet(*device, *episode)[1]) == {"state": "ticketSpent", "left": 0}
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


def test_a_shuffler_says_what_is_public(discreet, folder):
    discreet("service", "tickets", str(folder), "--count", "3")
    config = ShufflerConfig.read(folder / "shuffler" / "shuffler.toml")
    with serving(make_shuffler(config, rehearsal=True)) as url:
        _, out, _ = discreet("service", "status", "--url", url, "--json")
        _, words, _ = discreet("service", "status", "--url", url)
    said = json.loads(out)
    assert said["totals"]["tickets"] == 3 and "shuffler with analyser" in said["collusion"]
    assert "What collusion gives" in words and "tickets spent" in words


def test_a_charter_proves_its_guarantee(discreet, folder):
    code, out, _ = discreet("service", "verify", str(folder / "charter.json"), "--json")
    assert code == 0 and 0 < json.loads(out)["delta_proven"] <= 1e-4


def test_a_ledger_alone_is_not_enough(discreet, folder):
    words = (str(folder / "charter.json"), "--study", str(folder / "analyser" / "study.db"))
    code, _, err = discreet("service", "verify", *words)
    assert code == 2 and "give --manifests or --url" in err


def test_a_small_demonstration_with_kills(tmp_path):
    for attempt in range(5):  # on a busy machine a study may be over before its second kill
        folder = tmp_path / f"demo-{attempt}"
        words = ["--users", "100", "--kills", "2", "--runs", "4", "--json", "--output", str(folder)]
        done = CliRunner().invoke(make_app(), ["service", "demo", *words])
        if "kills; ask for fewer" not in f"{done.output} {done.exception}":
            break
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["users"] == 100 and said["kills"] == 2 and said["rehearsal"]
    assert said["counted_once"] and said["ledger_verified"] and said["forgotten"]
    assert answered(folder / "users", 1) >= 98
    assert not list((folder / "analyser" / "keys").iterdir())


@pytest.mark.parametrize("words", [["--kills", "-1"], ["--runs", "1"], ["--users", "5"]])
def test_bad_numbers_are_refused_before_anything_starts(tmp_path, words):
    done = CliRunner().invoke(
        make_app(), ["service", "demo", "--output", str(tmp_path / "x"), *words]
    )
    assert done.exit_code != 0 and not (tmp_path / "x").exists()


def test_in_a_log_of_json_the_last_line_is_one_too(tmp_path, caplog):
    path = tmp_path / "analyser.toml"
    names = {"charter": "none.json", "study": "s.db", "signing_key": "k", "token_file": "t"}
    fields = names | {"url": "http://127.0.0.1:9"}
    path.write_text("".join(f'{name} = "{value}"\n' for name, value in fields.items()))
    words = ["service", "analyser", "--config", str(path), "--log-format", "json"]
    done = CliRunner().invoke(make_app(), words)
    assert done.exit_code == 2 and done.output == ""
    assert [record.code for record in caplog.records] == ["ended"] and "none.json" in caplog.text
