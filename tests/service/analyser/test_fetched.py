"""Batches on their way to the opener: complete, without copies, and never all in memory."""

import tracemalloc

import numpy as np
import pytest

from discreet.service.analyser import opening
from discreet.service.analyser.opening import AttackError, Fetched


def envelopes(*heads):
    """With these encapsulated keys, and other contents every time."""
    return b"".join(bytes([head]) * 32 + bytes([i]) * 20 for i, head in enumerate(heads))


def taken(folder, *groups, piece=1 << 20):
    """A batch of these groups, in pieces."""
    batch = Fetched(folder, [len(data) // 52 for data in groups])
    for place, data in enumerate(groups):
        batch.begin(place)
        for first in range(0, len(data), piece):
            batch.take(data[first : first + piece])
        batch.end()
    return batch


@pytest.fixture(params=[1, 7])
def buckets(request, monkeypatch):
    """All keys in one bucket, or a few in each."""
    if request.param > 1:
        monkeypatch.setattr(opening, "_BUCKET", 32)
        monkeypatch.setattr(opening, "_IN_MEMORY", 64)
    monkeypatch.setattr(opening, "SLICE", 2)


def opened(batch):
    """Which envelopes are left, class by class."""
    left = [b""] * batch.groups
    for place, part in batch.slices():
        left[place] += part
    return left


def test_the_first_of_several_copies_is_left_within_a_class_and_between_classes(tmp_path, buckets):
    with taken(tmp_path, envelopes(1, 2, 3), envelopes(4, 5), piece=50) as batch:
        assert batch.dummy_copies() == 0
        assert opened(batch) == [envelopes(1, 2, 3), envelopes(4, 5)]
    one, two = envelopes(1, 2, 1, 1), envelopes(3, 2)
    with taken(tmp_path, one, two) as batch:
        assert batch.dummy_copies() == 3
        assert batch.dummy_copies() == 3  # as often as one likes
        assert opened(batch) == [one[:104] + bytes(104), two[:52] + bytes(52)]


def test_any_two_envelopes_are_compared(tmp_path, monkeypatch):
    """Wherever the copy is, and with buckets of a few dozen keys each."""
    monkeypatch.setattr(opening, "_BUCKET", 1024)
    monkeypatch.setattr(opening, "SLICE", 64)
    rng = np.random.default_rng(0)
    for _ in range(20):
        table = rng.integers(1, 256, (500, 52), np.uint8)
        with taken(tmp_path, table[:200].tobytes(), table[200:].tobytes()) as batch:
            assert len(batch._buckets) == 32 and batch.dummy_copies() == 0
        two, one = sorted(rng.choice(500, 2, replace=False))
        table[one, :32] = table[two, :32]
        with taken(tmp_path, table[:200].tobytes(), table[200:].tobytes()) as batch:
            assert batch.dummy_copies() == 1
            table[one] = 0
            assert b"".join(opened(batch)) == table.tobytes()


@pytest.mark.parametrize("at", range(32))
def test_keys_that_differ_in_one_byte_are_no_copies(tmp_path, at):
    other = bytearray(52)
    other[at] = 1
    with taken(tmp_path, bytes(52) + bytes(other)) as batch:
        assert batch.dummy_copies() == 0


def test_a_group_of_another_size_is_refused(tmp_path):
    for change in (-52, -1, 1, 52):
        data = envelopes(*range(5))
        sent = data[:change] if change < 0 else data + bytes(change)
        batch = Fetched(tmp_path, [5])
        batch.begin(0)
        with batch, pytest.raises(AttackError, match=r"Group 0 has .*, expected 260 bytes"):
            batch.take(sent)
            batch.end()


def test_more_than_was_announced_is_not_even_kept(tmp_path):
    batch = Fetched(tmp_path, [1])
    batch.begin(0)
    with batch:
        batch.take(bytes(52))
        with pytest.raises(AttackError, match="has more"):
            batch.take(bytes(1))


def test_slices_are_all_of_it_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "SLICE", 3)
    groups = [envelopes(*range(7)), b"", envelopes(*range(3)), envelopes(9)]
    with taken(tmp_path, *groups) as batch:
        found = [b""] * 4
        for place, part in batch.slices():
            assert 0 < len(part) <= 3 * 52
            found[place] += part
    assert found == groups


def test_nothing_of_it_has_a_name_and_memory_does_not_grow(tmp_path, monkeypatch):
    """Ten megabytes of envelopes in a tenth of that, buckets included."""
    monkeypatch.setattr(opening, "_BUCKET", 1 << 17)
    monkeypatch.setattr(opening, "_IN_MEMORY", 1 << 16)
    monkeypatch.setattr(opening, "SLICE", 1000)
    rng, pieces = np.random.default_rng(0), 200
    tracemalloc.start()
    try:
        with Fetched(tmp_path, [1000 * pieces]) as batch:
            batch.begin(0)
            for _ in range(pieces):
                batch.take(rng.bytes(52_000))
            batch.end()
            assert batch.dummy_copies() == 0
            assert sum(len(part) for _, part in batch.slices()) == 52_000 * pieces
            assert not list(tmp_path.iterdir())
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1_500_000
