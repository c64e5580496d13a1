"""Real samplers against the calculated law: planted bugs are seen, sound toys are not accused."""

import numpy as np
import pytest

from discreet.privacy import SimulationSampler
from discreet.privacy.auditing import draws
from discreet.privacy.auditing.draws import misfits
from discreet.privacy.auditing.examine import Finding, examine
from discreet.privacy.sampling.samplers import SecureSampler
from helpers import toys

REAL = (SimulationSampler, SecureSampler)


def complaints(release, *, secure=False, seed=0, **options):
    return list(misfits(examine(toys.toy(release, **options), secure=secure), seed))


def wide(data, sampler):
    return data + sampler.discrete_laplace(50.0, data.size)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("release", [wide, toys.flipped, toys.shared])
def test_sound_toys_fit(release, seed):
    assert complaints(release, seed=seed) == []


@pytest.mark.parametrize("release", [wide, toys.flipped])
def test_sound_toys_fit_with_the_secure_sampler(release):
    pytest.importorskip("opendp")
    assert complaints(release, secure=True) == []


def only_when_real(bug):
    """A bug that shows with real samplers only; probes see a sound mechanism."""

    def release(data, sampler):
        noise = sampler.discrete_laplace(50.0, data.size)
        return data + (bug(noise) if isinstance(sampler, REAL) else noise)

    return release


def test_half_the_noise_is_a_quarter_of_the_variance():
    [text] = complaints(only_when_real(lambda z: z // 2), base=[0] * 8, other=[1] * 8)
    assert text.startswith("With the simulation sampler the noise has 0.2")
    assert text.endswith("times the calculated variance.")


def test_twice_the_noise_is_a_misfit_too():
    [text] = complaints(only_when_real(lambda z: 2 * z), base=[0] * 8, other=[1] * 8)
    assert "times the calculated variance" in text


def test_a_shifted_mean_is_noticed():
    [text] = complaints(only_when_real(lambda z: z + 200))
    assert text == "With the simulation sampler the noise has another mean than calculated."


def test_one_sided_noise_is_noticed():
    [text] = complaints(only_when_real(np.abs), base=[0] * 8, other=[1] * 8)
    assert "another mean" in text


def test_bits_that_are_flipped_less_often():
    def lazy(data, sampler):
        chance = 0.01 if isinstance(sampler, REAL) else 0.25
        return np.abs(data) % 2 ^ sampler.binomial(1, chance, data.size)

    [text] = complaints(lazy)
    assert text == "With the simulation sampler outcomes have other probabilities than calculated."


def test_outcomes_that_cannot_be():
    def odd(data, sampler):
        return toys.flipped(data, sampler) + 2 * isinstance(sampler, REAL)

    [text] = complaints(odd)
    assert "something is published that cannot be" in text


def test_what_was_not_examined_is_not_measured():
    path = toys.toy(wide)
    assert list(misfits(Finding(path, False, None, ()))) == []
    brief = examine(
        toys.toy(only_when_real(lambda z: 0 * z), path={"thorough": False}), secure=False
    )
    assert brief.view is not None
    assert list(misfits(brief)) == []


def test_what_does_not_fit_is_measured_once_more(monkeypatch):
    """Of few runs some are unlucky."""
    asked = []

    def unlucky(path, view, sampler, runs):
        asked.append(runs)
        return "the noise is bad luck" if len(asked) == 1 else None

    monkeypatch.setattr(draws, "_moments", unlucky)
    assert complaints(wide) == []
    assert asked == [120, 1200]


def test_the_seed_decides_what_is_drawn():
    drawn = []

    def watched(data, sampler):
        out = wide(data, sampler)
        drawn.append(out.tolist())
        return out

    runs = {}
    for seed in (0, 0, 1):
        finding = examine(toys.toy(watched), secure=False)
        drawn.clear()
        list(misfits(finding, seed))
        runs.setdefault(seed, []).append(drawn.copy())
    assert runs[0][0] == runs[0][1] != runs[1][0]


def test_without_the_extra_the_secure_sampler_is_left_out(monkeypatch):
    from discreet.errors import MissingExtraError

    def missing():
        raise MissingExtraError("opendp", "secure")

    monkeypatch.setattr(draws, "SecureSampler", missing)
    assert complaints(only_when_real(lambda z: 0 * z), secure=True) == []
