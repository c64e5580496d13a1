"""Reports on the wire: every byte has its place, and what is wrong is refused by its name."""

import pytest

from discreet.service.analyser.opening import open_cells
from discreet.service.protocol import report, ticket
from discreet.service.protocol.problems import Refusal
from helpers.services import announced, batch_key, charter, fake_report, real_report

ONE = announced(charter())
PASS = bytes(range(32))


def refused(data):
    with pytest.raises(Refusal) as caught:
        report.read(data)
    return caught.value.code


def test_version_ticket_manifest_and_one_envelope_per_message():
    data = real_report(ONE, PASS)
    assert data[0] == report.VERSION == 1
    assert data[1:33] == PASS
    assert data[33:65] == ONE.hash
    assert len(data) == report.HEADER + ONE.body


def test_what_the_shuffler_keeps_holds_no_ticket():
    taken = report.read(real_report(ONE, PASS))
    assert taken.digest == ticket.digest(PASS)
    assert taken.manifest == ONE.hash
    assert PASS not in b"".join(taken)


def test_cells_open_in_the_order_of_their_classes():
    cells = ONE.device.encode({"states": [0, 0, 1], "actions": [0, 1], "rewards": [0.0, 1.0]})
    body = report.read(report.seal(cells, ONE, PASS)).body
    at = 0
    for place, one in enumerate(cells):
        part = body[at : at + 52 * len(one)]
        dummy = ONE.device.groups[place].cells
        assert open_cells(part, batch_key(0), ONE.hash, place, dummy).tolist() == list(one)
        at += len(part)
    assert at == len(body)


@pytest.mark.parametrize("cut", [1, 51, 53])
def test_half_an_envelope_is_refused(cut):
    assert refused(fake_report(ONE, PASS)[:-cut]) == "wrongLength"


def test_nothing_and_a_header_alone_are_refused():
    whole = fake_report(ONE, PASS)
    assert refused(b"") == "wrongLength"
    assert refused(whole[: report.HEADER]) == "wrongLength"


@pytest.mark.parametrize("version", [0, 2, 255])
def test_other_versions_are_refused_before_anything_is_read(version):
    assert refused(bytes([version])) == "unknownVersion"


def test_an_envelope_twice_is_refused_wherever_it_stands():
    whole = fake_report(ONE, PASS)
    head, first, rest = whole[:65], whole[65:117], whole[117:]
    assert refused(head + first + rest[:-52] + first) == "copiedEnvelope"
