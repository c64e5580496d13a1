"""`discreet service demo`: all roles as processes, one killed; and refusals before any of them."""

import json

import pytest
from typer.testing import CliRunner

pytest.importorskip("starlette")
from discreet.cli.app import make_app
from discreet.service.demo.users import diaries


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
    assert len(diaries(folder)) >= 98
    assert (folder / "demo.html").exists()
    assert not list((folder / "analyser" / "keys").iterdir())


@pytest.mark.parametrize("words", [["--kills", "-1"], ["--runs", "1"], ["--users", "5"]])
def test_bad_numbers_are_refused_before_anything_starts(tmp_path, words):
    done = CliRunner().invoke(
        make_app(), ["service", "demo", "--output", str(tmp_path / "x"), *words]
    )
    assert done.exit_code != 0 and not (tmp_path / "x").exists()
