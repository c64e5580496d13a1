"""docs/service/: its promises name tests that there are, its commands are run as they stand."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from discreet.service.configs import AnalyserConfig, DeviceConfig, ShufflerConfig
from discreet.service.protocol import ticket
from discreet.service.protocol.charter import Charter

ROOT = Path(__file__).parents[2]
NAME = r"test_p\d\d_\w+"


def test_every_promise_is_listed_with_its_tests():
    table = (ROOT / "docs" / "service" / "threat-model.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (P\d+) \| (.*) \|$", table, re.MULTILINE))
    assert list(rows) == [f"P{k}" for k in range(1, 31)]
    files = (ROOT / "tests" / "service").rglob("test_*.py")
    there = {name for file in files for name in re.findall(rf"def ({NAME})", file.read_text())}
    named = {name for row in rows.values() for name in re.findall(rf"`({NAME})`", row)}
    assert named <= there
    for k in range(1, 31):
        own = {name for name in there if name.startswith(f"test_p{k:02d}_")}
        assert own - named == set() or "more" in rows[f"P{k}"], own - named


def test_a_service_is_founded_with_the_words_of_the_guide(tmp_path, monkeypatch):
    from discreet.cli.app import make_app

    text = (ROOT / "docs" / "service" / "deploy.md").read_text("utf-8")
    block = re.search(r"```\n( +discreet service init .*?)```", text, re.DOTALL)[1]
    commands = block.replace("\\\n", " ").strip().splitlines()
    assert [shlex.split(line)[2] for line in commands] == ["init", "tickets"]
    monkeypatch.chdir(tmp_path)
    for line in commands:
        done = CliRunner().invoke(make_app(), shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
    folder = tmp_path / "hospital"
    of = Charter.from_bytes((folder / "charter.json").read_bytes())
    assert (float(of.epsilon), float(of.delta), float(of.honest)) == (1, 1e-6, 0.9)
    assert of.names["states"] == ("ill", "better", "well") and not of.rehearsal
    assert len(ticket.read_digests(folder / "shuffler" / "digests.txt")) == 25_000
    ShufflerConfig.read(folder / "shuffler" / "shuffler.toml")
    AnalyserConfig.read(folder / "analyser" / "analyser.toml")
    device = DeviceConfig.read(folder / "device" / "device.toml")
    assert device.study == of.id.hex() and device.url == "https://shuffler.example.org"
