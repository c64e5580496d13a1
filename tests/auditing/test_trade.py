"""Data traded against noise, bit by bit: sound toys pass, toys with low-order bits do not."""

import numpy as np
import pytest

from discreet.auditing.additive import Additive, _groups, _measured, _World, probe, trades
from helpers import toys


def traded(release, **options):
    path = toys.toy(release, **options)
    return trades(path, probe(path))


def tenth(data, sampler):
    """A function of the noisy integers: their tenth part."""
    return (data + sampler.discrete_laplace(20.0, data.size)) / 10


def tenths(data, sampler):
    """The same number, but summed after the division: low-order bits differ."""
    return data / 10 + sampler.discrete_laplace(20.0, data.size) / 10


def trace(data, sampler):
    """A trace of the data beside its noise."""
    return toys.laplace(data, sampler) + 1e-13 * data


def late_trace(data, sampler):
    """A trace that shows where the noise cancels the data."""
    noisy = toys.laplace(data, sampler)
    return noisy + 1e-13 * data * (np.abs(noisy) < 50)


def halves(data, sampler):
    """A dyadic grid: sums are exact whichever way they are taken."""
    return data / 2 + sampler.discrete_laplace(20.0, data.size) / 2


@pytest.mark.parametrize("release", [toys.laplace, toys.gaussian, tenth, halves])
def test_functions_of_noisy_integers_pass(release):
    assert traded(release)


@pytest.mark.parametrize("release", [tenths, trace, late_trace])
def test_low_order_bits_are_noticed(release):
    assert not traded(release)


def test_low_order_bits_for_one_kind_of_sampler_only():
    def branches(data, sampler):
        return (tenths if sampler.secure else tenth)(data, sampler)

    path = toys.toy(branches)
    assert trades(path, probe(path))
    assert not trades(path, probe(path, secure=True), secure=True)


def test_low_order_bits_of_one_neighbour_only():
    def rarely(data, sampler):
        return (tenths if data[0] == 3 else tenth)(data, sampler)

    assert traded(rarely, quiet=(1, -1))
    assert not traded(rarely, quiet=(1, -1), odd=(3, 0))


def test_numbers_without_noise_are_not_asked_to_trade():
    def stated(data, sampler):
        return np.append(toys.laplace(data, sampler), 0.1)

    assert traded(stated)


def test_bounded_noise_is_traded_inside_its_bounds():
    def bits(data, sampler):
        return (data + sampler.binomial(40, 0.5, data.size)) / 10

    def leaky(data, sampler):
        return data / 10 + sampler.binomial(40, 0.5, data.size) / 10

    many = {"base": [0] * 12, "other": [1, -1] * 6}  # most sums of two tenths are exact
    assert traded(bits, **many)
    assert not traded(leaky, **many)


def test_draws_that_cannot_occur_are_not_tried():
    """Code may rely on bits to stay below their number."""

    def looked_up(data, sampler):
        return (data + np.arange(3)[sampler.binomial(2, 0.5, data.size)]) / 10

    assert traded(looked_up, base=[0] * 6, other=[1, -1] * 3)


# --- coarse grids: shifts are measured -----------------------------------------------------------


GAINS = np.array([[0.75, 0.0], [0.3125, 0.75]])
"""An encoder whose inverse has no integers."""


def on_grid(data, sampler):
    """Data are encoded in steps of 1/64; what is published is rounded to whole numbers."""
    steps = 64 * data + sampler.discrete_gaussian(500.0, data.size)
    return np.floor(GAINS @ steps / 64 + 0.5)


def off_grid(data, sampler):
    """Rounded, but beside a trace of the data."""
    return on_grid(data, sampler) / 10 + 1e-12 * data


def test_a_rounded_release_of_a_finer_grid_passes():
    path = toys.toy(lambda d, s: on_grid(d, s) / 10, (0, 0), other=(1, -1))
    assert trades(path, probe(path))


def test_a_trace_beside_a_rounded_release_is_noticed():
    assert not traded(off_grid)


def test_shifts_are_measured_to_the_step():
    path = toys.toy(on_grid, (0, 0), other=(1, -2))
    seen = probe(path)
    one, other = (_World(run, seen, False) for run in (path.base, path.neighbours["other"]))
    assert _measured(one, other, 0).tolist() == [64, -128]


def test_nothing_is_measured_where_draws_cannot_be_told_apart():
    path = toys.toy(lambda d, s: d[:1] + s.discrete_laplace(2.0, 2).sum(), other=(1, 0))
    seen = probe(path)
    one, other = (_World(run, seen, False) for run in (path.base, path.neighbours["other"]))
    assert _measured(one, other, 0) is None
    assert not trades(
        toys.toy(lambda d, s: tenths(d[:1], s) + s.discrete_laplace(2.0, 1) / 7), seen
    )


def test_draws_that_disturb_each_other_are_measured_one_after_the_other():
    shows = np.array([[True, False, False], [False, True, False], [True, True, True]])
    groups = _groups(shows, np.array([0, 1, 2]))
    assert [group.tolist() for group in groups] == [[0, 1], [2]]


def test_draws_stand_where_the_code_asked_for_them():
    """Two sums of bits are one distribution: the second draw of the code stays zero."""

    def bits(data, sampler):
        return data + sampler.binomial(4, 0.5, 1) + 100 * sampler.binomial(9, 0.25, 1)

    path = toys.toy(bits, (0,), other=(1,))
    seen = probe(path)
    world = _World(path.base, seen, False)
    assert world(np.array([3, 2])).tolist() == [203]


# --- blocks --------------------------------------------------------------------------------------


def blocks(release):
    path = toys.toy(release, path={"blocks": True})
    return trades(path, probe(path))


def test_blocks_on_a_dyadic_grid_pass():
    assert blocks(toys.laplace)
    assert blocks(lambda d, s: d + s.discrete_laplace(20.0, d.size) / 1024)


def test_blocks_off_the_grid_do_not():
    assert not blocks(lambda d, s: d + s.discrete_laplace(20.0, d.size) / 10)
    assert not blocks(lambda d, s: d + s.discrete_laplace(20.0, d.size) * 2.0**-31)


def test_blocks_whose_data_are_not_whole_do_not():
    assert not blocks(lambda d, s: d / 2 + s.discrete_laplace(20.0, d.size))


def test_a_view_without_draws_is_whole():
    path = toys.toy(lambda d, s: np.array([3.0]))
    seen = probe(path)
    assert isinstance(seen, Additive) and seen.noises == ()
    assert trades(path, seen)
