"""Opening gives the same tallies whoever does it."""

import numpy as np
import pytest

from discreet.service.analyser import opening
from discreet.service.protocol import envelope
from helpers.services import batch_key


@pytest.fixture(scope="module")
def tasks():
    key = batch_key(0)
    made = []
    for place in range(3):
        cells = [(place + i) % 5 for i in range(7)]
        data = b"".join(envelope.seal(c, key.public_key(), bytes(32), place) for c in cells)
        made.append(opening.Task(data, key.private_bytes_raw(), bytes(32), place, 5))
    return made


def expected():
    return [
        (place, [2 if (k - place) % 5 < 2 else 1 for k in range(5)] + [0]) for place in range(3)
    ]


def plain(tallies):
    return [(place, tally.tolist()) for place, tally in tallies]


def test_a_task_counts_its_cells(tasks):
    assert plain(task.open() for task in tasks) == expected()
    place, tally = tasks[1]._replace(envelopes=bytes(52)).open()
    assert place == 1 and tally.tolist() == [0, 0, 0, 0, 0, 1] and tally.dtype == np.int64


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
