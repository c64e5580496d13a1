"""Opening gives the same cells whoever does it."""

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
    return [[(place + i) % 5 for i in range(7)] for place in range(3)]


def test_in_slices_the_order_is_kept(tasks, monkeypatch):
    monkeypatch.setattr(opening, "_SLICE", 2)
    found = opening.opened(tasks, lambda pieces: [piece.open() for piece in pieces])
    assert [cells.tolist() for cells in found] == expected()


def test_in_processes(tasks, monkeypatch):
    monkeypatch.setattr(opening, "_SLICE", 4)
    found = opening.in_processes(2)(tasks)
    assert [cells.tolist() for cells in found] == expected()


def test_few_envelopes_are_opened_here(tasks):
    found = opening.in_processes(8)(tasks)
    assert [cells.tolist() for cells in found] == expected()
    empty = tasks[0]._replace(envelopes=b"")
    assert opening.opened([empty], lambda p: [t.open() for t in p])[0].dtype == np.int64


def test_on_ray(tasks, long_run, monkeypatch):
    pytest.importorskip("ray")
    if not long_run:
        pytest.skip("A Ray cluster is started in the long run only.")
    monkeypatch.setattr(opening, "_SLICE", 4)
    found = opening.on_ray(None, 1)(tasks)
    assert [cells.tolist() for cells in found] == expected()
