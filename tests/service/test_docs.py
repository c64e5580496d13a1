"""The service's pages: promises name tests that there are, commands are run as they stand."""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import discreet
from discreet.device.draws import WORD
from discreet.service.configs import AnalyserConfig, DeviceConfig, ShufflerConfig
from discreet.service.protocol import ticket
from discreet.service.protocol.charter import Charter
from helpers.studies import episodes_of, names

ROOT = Path(__file__).parents[2]
NAME = r"test_p\d\d_\w+"


def test_every_promise_is_listed_with_its_tests():
    table = (ROOT / "docs" / "understand" / "threat-model.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (P\d+) \| (.*) \|$", table, re.MULTILINE))
    assert list(rows) == [f"P{k}" for k in range(1, 32)]
    files = (ROOT / "tests" / "service").rglob("test_*.py")
    there = {name for file in files for name in re.findall(rf"def ({NAME})", file.read_text())}
    named = {name for row in rows.values() for name in re.findall(rf"`({NAME})`", row)}
    assert named <= there
    for k in range(1, 32):
        own = {name for name in there if name.startswith(f"test_p{k:02d}_")}
        assert own - named == set() or "more" in rows[f"P{k}"], own - named


def commands_of_the_guide():
    """The words of `init` and of `tickets`."""
    text = (ROOT / "docs" / "how-to" / "operator" / "deploy.md").read_text("utf-8")
    block = re.search(r"```\n( +discreet service init .*?)```", text, re.DOTALL)[1]
    return [shlex.split(line)[1:] for line in block.replace("\\\n", " ").strip().splitlines()]


def run(words):
    from discreet.cli.app import make_app

    done = CliRunner().invoke(make_app(), words)
    assert done.exit_code == 0, done.output


def reports_of_all(study, seed):
    """What the devices of a batch send, counted by group and cell: drawn all at once."""
    rng, device = np.random.default_rng(seed), study.encoder().device
    lives, reports = episodes_of(study, seed), []
    bits = rng.random(lives.rewards.shape) < lives.rewards
    for place, group in enumerate(device.groups):
        h = group.step
        played = lives.states[:, h] * device.sizes.actions + lives.actions[:, h]
        rows = np.searchsorted(device.sizes.pairs[h], played)
        cells = {"visits": rows, "rewards": 2 * rows + bits[:, h]}
        cells["transitions"] = rows * device.sizes.states + lives.states[:, h + 1]
        kept = group.weight / WORD
        chances = [kept / group.cells] * group.cells + [1 - kept]
        tally = rng.multinomial(len(rows) * group.noise, chances)
        tally += np.bincount(cells[group.statistic], minlength=group.cells + 1)
        reports += [(place, cell, times) for cell, times in enumerate(tally.tolist())]
    return np.array(reports)


def test_the_guides_study_with_small_batches_goes_on_to_its_end_24_of_24_times(tmp_path):
    """No batch below the least size ends it: only that fewer people are left."""
    init, _ = commands_of_the_guide()
    init[2] = str(tmp_path / "hospital")
    run([*init, "--min-users", "20", "--rehearsal"])
    begun = tmp_path / "hospital" / "analyser" / "study.db"
    for number in range(24):
        study = discreet.open_study(shutil.copy(begun, tmp_path / f"{number}.db"))
        while not study.finished:
            assert study.batch_size >= 20
            reports = reports_of_all(study, 1000 * number + study.batches)
            study.tell(reports, users=names(study), token=study.token)
        assert study.episodes == 20_000 and study.episodes - study.users < 20


def test_a_service_is_founded_with_the_words_of_the_guide(tmp_path, monkeypatch):
    commands = commands_of_the_guide()
    assert [words[1] for words in commands] == ["init", "tickets"]
    monkeypatch.chdir(tmp_path)
    for words in commands:
        run(words)
    folder = tmp_path / "hospital"
    of = Charter.from_bytes((folder / "charter.json").read_bytes())
    assert (float(of.epsilon), float(of.delta), float(of.honest)) == (1, 1e-6, 0.9)
    assert of.names["states"] == ("ill", "better", "well") and not of.rehearsal
    assert len(ticket.read_digests(folder / "shuffler" / "digests.txt")) == 25_000
    ShufflerConfig.read(folder / "shuffler" / "shuffler.toml")
    AnalyserConfig.read(folder / "analyser" / "analyser.toml")
    device = DeviceConfig.read(folder / "device" / "device.toml")
    assert device.study == of.id.hex() and device.url == "https://shuffler.example.org"
