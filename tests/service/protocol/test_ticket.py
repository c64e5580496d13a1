"""Tickets and their files."""

import pytest

from discreet.errors import InvalidInputError
from discreet.service.protocol import ticket


def test_tickets_are_random_and_written_in_private(tmp_path):
    made = ticket.make(50)
    assert len(set(made)) == 50 and {len(one) for one in made} == {32}
    ticket.write(tmp_path / "t", made)
    assert ticket.read(tmp_path / "t") == made
    assert (tmp_path / "t").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["ab", "zz" * 32, "é"])
def test_a_bad_line_is_named(tmp_path, text):
    (tmp_path / "t").write_text(f"{'00' * 32}\n{text}\n")
    with pytest.raises(InvalidInputError, match=r"line 2|Cannot read"):
        ticket.read(tmp_path / "t")


def test_bad_numbers_and_missing_files(tmp_path):
    with pytest.raises(InvalidInputError, match="at least one"):
        ticket.make(0)
    with pytest.raises(InvalidInputError, match="Cannot read"):
        ticket.read(tmp_path / "none")


def test_tickets_are_not_taken_for_digests_nor_digests_for_tickets(tmp_path):
    """Who hands the shuffler the wrong file would hand it every ticket."""
    made = ticket.make(3)
    digests = [ticket.digest(one) for one in made]
    ticket.write(tmp_path / "tickets", made)
    ticket.write_digests(tmp_path / "digests", digests)
    assert ticket.read_digests(tmp_path / "digests") == digests
    assert (tmp_path / "digests").stat().st_mode & 0o077 == 0
    with pytest.raises(InvalidInputError, match="digest of a ticket in line 1") as caught:
        ticket.read_digests(tmp_path / "tickets")
    assert made[0].hex() not in str(caught.value)
    with pytest.raises(InvalidInputError, match="Expected a ticket in line 1"):
        ticket.read(tmp_path / "digests")
