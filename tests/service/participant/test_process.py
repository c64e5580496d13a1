"""The device from its file: nobody is asked before all of it is right."""

import pytest

from discreet.errors import InvalidInputError
from discreet.service import participant
from discreet.service.client import Client
from discreet.service.configs import DeviceConfig
from helpers.services import TOKEN, announced, charter, make_test_shuffler, serving

OF = charter()


@pytest.mark.parametrize(
    ("own", "study", "sentence"),
    [
        ("", "00" * 32, "64 hexadecimal digits; give --ticket"),
        ("11" * 31, "00" * 32, "64 hexadecimal digits; give --ticket"),
        ("zz" * 32, "00" * 32, "hexadecimal digits"),
        ("11" * 32, "no name", "hexadecimal digits"),
    ],
)
def test_a_device_asks_nobody_before_ticket_and_study_are_right(tmp_path, own, study, sentence):
    config = DeviceConfig(folder=tmp_path, study=study, url="http://127.0.0.1:9")
    with pytest.raises(InvalidInputError, match=sentence):
        participant.make_participant(config, None, lambda _: None, own=own)


def test_a_device_remembers_the_last_manifest_it_has_checked(tmp_path):
    one = announced(OF)
    config = DeviceConfig(folder=tmp_path, study=OF.id.hex(), url="")
    with (
        serving(make_test_shuffler(tmp_path / "s.db", OF)) as url,
        Client(url, TOKEN) as client,
    ):
        client.announce(0, one.signed)
        chain, _ = participant.make_participant(config, client, lambda _: None, own="11" * 32)
        assert chain.current().manifest == one.manifest
    seen = tmp_path / "outbox" / "seen.manifest"
    assert seen.read_bytes() == one.signed
    assert participant._remembered(seen, OF)[0] == one.manifest
