"""The permutation: nothing is lost or doubled, no bucket is large, and ties are drawn again."""

import numpy as np
import pytest

from discreet.device import ENVELOPE
from discreet.service.shuffler.stores import base


def envelopes(count):
    """So many different ones."""
    found = np.zeros((count, ENVELOPE), np.uint8)
    found[:, :4] = np.arange(count, dtype=">u4").view(np.uint8).reshape(-1, 4)
    return found


def numbers(data):
    """Which envelopes these are, in their order."""
    rows = np.frombuffer(data, np.uint8).reshape(-1, ENVELOPE)
    return np.ascontiguousarray(rows[:, :4]).view(">u4").ravel().tolist()


@pytest.mark.parametrize("count", [0, 1, 80_659, 80_660, 1_000_000])
def test_buckets_are_a_power_of_two_that_keeps_each_small(count):
    buckets = base.buckets_for(count)
    assert buckets & (buckets - 1) == 0
    assert count * ENVELOPE / buckets <= base.BUCKET
    assert buckets == 1 or 2 * count * ENVELOPE / buckets > base.BUCKET


@pytest.mark.parametrize("buckets", [1, 2, 64])
def test_every_envelope_is_in_exactly_one_bucket(buckets):
    parts = dict(base.scatter(envelopes(500), buckets))
    assert set(parts) <= set(range(buckets))
    assert sorted(n for data in parts.values() for n in numbers(data)) == list(range(500))
    assert len(parts) > buckets / 2


def test_a_bucket_is_permuted_whole():
    data = envelopes(200).tobytes()
    once, twice = base.permuted(data), base.permuted(data)
    assert sorted(numbers(once)) == sorted(numbers(twice)) == list(range(200))
    assert once != twice != data


def test_equal_keys_are_drawn_again(monkeypatch):
    """A stable sort of equal keys would keep the order in which reports came."""
    draws = [np.array([5, 5, 1], np.uint64), np.array([9, 7, 8], np.uint64)]
    monkeypatch.setattr(base.os, "urandom", lambda _: draws.pop(0).tobytes())
    assert numbers(base.permuted(envelopes(3).tobytes())) == [1, 2, 0]
    assert not draws
