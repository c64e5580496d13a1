"""Keys on disk, envelopes between shuffler and opener, and who opens them."""

import stat
import tracemalloc

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.service import opening
from discreet.service.opening import (
    AttackError,
    BatchKeys,
    Fetched,
    make_signing_key,
    read_signing_key,
)
from discreet.service.protocol import report
from helpers.services import batch_key


@pytest.fixture(scope="module")
def tasks():
    key = batch_key(0)
    made = []
    for place in range(3):
        cells = [(place + i) % 5 for i in range(7)]
        data = b"".join(report.seal_cell(c, key.public_key(), bytes(32), place) for c in cells)
        made.append(opening.Task(data, key.private_bytes_raw(), bytes(32), place, 5))
    return made


def expected():
    return [
        (place, [2 if (k - place) % 5 < 2 else 1 for k in range(5)] + [0, 0]) for place in range(3)
    ]


def plain(tallies):
    return [(place, tally.tolist()) for place, tally in tallies]


def test_a_task_counts_its_cells(tasks):
    assert plain(task.open() for task in tasks) == expected()
    place, tally = tasks[1]._replace(envelopes=bytes(52)).open()
    assert place == 1 and tally.tolist() == [0, 0, 0, 0, 0, 0, 1] and tally.dtype == np.int64


def test_in_processes_the_order_is_kept(tasks, monkeypatch):
    monkeypatch.setattr(opening, "_FEW", 10)
    assert plain(opening.in_processes(2)(iter(tasks))) == expected()


def test_few_envelopes_are_opened_here(tasks, monkeypatch):
    monkeypatch.setattr(opening, "ProcessPoolExecutor", None)
    for jobs in (1, 8):
        assert plain(opening.in_processes(jobs)(iter(tasks))) == expected()


def test_only_a_few_tasks_are_begun_before_the_first_is_done():
    begun = []
    found = opening._ahead((begun.append(i) or i for i in range(10)), 3)
    assert next(found) == 0 and begun == [0, 1, 2]
    assert list(found) == list(range(1, 10))


def test_on_ray(tasks, long_run):
    pytest.importorskip("ray")
    if not long_run:
        pytest.skip("A Ray cluster is started in the long run only.")
    assert plain(opening.on_ray(None, 1)(iter(tasks))) == expected()


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


def test_a_signing_key_is_kept_in_private(tmp_path):
    key = make_signing_key(tmp_path / "k")
    assert read_signing_key(tmp_path / "k").private_bytes_raw() == key.private_bytes_raw()
    assert (tmp_path / "k").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "00", "zz" * 32])
def test_what_is_no_key_is_refused(tmp_path, text):
    (tmp_path / "k").write_text(text)
    with pytest.raises(InvalidInputError, match="key"):
        read_signing_key(tmp_path / "k")
    with pytest.raises(InvalidInputError, match="Cannot read the key"):
        read_signing_key(tmp_path / "none")


def test_a_key_of_zeros_is_refused_and_one_that_others_may_read_is_said(tmp_path, caplog):
    path = tmp_path / "signing.key"
    path.write_text("00" * 32)
    with pytest.raises(InvalidInputError, match="all zeros"):
        read_signing_key(path)
    path.unlink()
    make_signing_key(path)
    read_signing_key(path)
    assert not caplog.records
    path.chmod(0o644)
    read_signing_key(path)
    assert "chmod 600" in caplog.text


def test_batch_keys_differ_and_go(tmp_path):
    keys = BatchKeys(tmp_path / "keys")
    one, two = keys.make(0), keys.make(1)
    assert one.private_bytes_raw() != two.private_bytes_raw() == keys.read(1)
    link = tmp_path / "link"
    link.hardlink_to(tmp_path / "keys" / "000000.key")  # to see what is left of the file
    keys.destroy(0)
    keys.destroy(0)
    assert set(link.read_bytes()) == {ord("0")}
    assert [p.name for p in (tmp_path / "keys").iterdir()] == ["000001.key"]
    with pytest.raises(InvalidInputError):
        keys.read(0)


def test_batch_keys_are_their_owner_s_alone(tmp_path):
    keys = BatchKeys(tmp_path / "keys")
    keys.make(0)
    paths = (tmp_path / "keys", tmp_path / "keys" / "000000.key")
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o700, 0o600]
