"""What a demonstration consists of."""

import json
import tomllib

import pytest

from discreet.errors import InvalidInputError
from discreet.service.configs import ShufflerConfig
from discreet.service.demo.run import NOT_PROTECTED, Arrangement, free_port, set_up


@pytest.mark.parametrize("wrong", [{"users": 99}, {"seed": -1}, {"world": "moon"}])
def test_what_cannot_be_shown_is_refused(wrong):
    with pytest.raises((InvalidInputError, Exception), match=r"Expected|Unknown|unknown"):
        Arrangement(**wrong)


def test_the_folder_holds_a_rehearsal_its_tickets_and_the_world(tmp_path):
    arrangement = Arrangement(users=100, spare=3)
    service = set_up(tmp_path / "all", arrangement, "http://127.0.0.1:1", free_port())
    assert service.charter.rehearsal and "SIMULATED" in service.charter.promise
    assert len((tmp_path / "all" / "enroller" / "tickets.txt").read_text().split()) == 103
    config = ShufflerConfig.read(service.config("shuffler"))
    world = json.loads(config.path(config.world).read_text())
    assert world == arrangement.home.description()
    assert tomllib.loads(service.config("device").read_text())["study"] == service.charter.id.hex()


def test_it_says_that_one_machine_holds_all_keys():
    assert any("every key" in line for line in NOT_PROTECTED)
    assert any("protects nobody" in line for line in NOT_PROTECTED)
