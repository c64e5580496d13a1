"""The real samplers on every path: fresh draws, and the calculated distribution."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.auditing import draws
from discreet.auditing.cases import entries, vector_cases
from discreet.auditing.draws import (
    ANOTHER_DISTRIBUTION,
    CORRELATED,
    OTHERWISE,
    TWICE,
    RecordingSampler,
    ReplayingSampler,
    misfits,
    unsound_draws,
)
from discreet.auditing.examine import FORGOTTEN, TOLERANCE, UNUSED, Finding, examine
from discreet.auditing.layered import layered_cases
from discreet.auditing.paths import BLOCK, episodes_path, short_paths
from discreet.privacy import SimulationSampler
from discreet.privacy.sampling.samplers import SecureSampler
from helpers import toys

EXACT = [e for e in entries(epsilon=2.0, delta=1e-2) if e.calibration == "exact"]


def ways(plan):
    """One path of each name, through the secure branch."""
    found = {path.name: path for path in short_paths(plan) if True in path.secure}
    if len(found) > 1:
        found.pop("simulate", None)  # draws as `release` or the devices do
    return found


@pytest.mark.parametrize("entry", EXACT, ids=lambda e: e.name)
def test_secure_noise_is_fresh_once_each_and_published_on_every_route(entry):
    """One shot, trees, Toeplitz, reports of local and shuffle encoders."""
    plan = entry.small()
    for path in ways(plan if entry.spec.randomises else entry.target()).values():
        finding = examine(path, secure=True)
        assert finding.problems == ()
        if not finding.unlisted:
            assert finding.view.epsilon(entry.claimed[1]) <= 2 * (1 + TOLERANCE)
    for name, path in ways(plan).items():  # many draws in a release: none comes again by chance
        if name != "block":
            assert list(unsound_draws(path)) == []


VECTORS = [case for entry in EXACT if entry.adds_noise for case in vector_cases(entry)]
OTHERS = {
    f"{case.kind}-{case.mechanism}-{case.path}": case.paths[0]
    for case in (*VECTORS, *layered_cases(EXACT))
    if not case.path.startswith(BLOCK)
}


@pytest.mark.parametrize("name", OTHERS)
def test_secure_noise_of_vectors_and_layers_is_fresh(name):
    finding = examine(OTHERS[name], secure=True)
    assert finding.problems == ()
    assert finding.view.epsilon(1e-2) <= 2 * (1 + TOLERANCE)
    assert list(unsound_draws(OTHERS[name])) == []


def noisy(data, sampler):
    return data + sampler.discrete_gaussian(20.0, data.size)


def said(release, **options):
    options = {"base": [0] * 8, "other": [1] * 8} | options
    return list(unsound_draws(toys.toy(release, **options)))


@pytest.mark.parametrize("release", [toys.laplace, toys.gaussian, toys.flipped, noisy])
def test_sound_toys_are_not_accused(release):
    assert said(release) == []


@pytest.fixture
def gaussian(monkeypatch):
    """Replaces the secure sampler's Gaussian draws."""
    real = SecureSampler.discrete_gaussian

    def put(broken):
        monkeypatch.setattr(
            SecureSampler,
            "discrete_gaussian",
            lambda self, sigma, size: broken(lambda: real(self, sigma, size)),
        )

    return put


def reused(every):
    """Every so many calls the draw before."""
    kept = []

    def broken(draw):
        kept.append(kept[-1] if kept and len(kept) % every == every - 1 else draw())
        return kept[-1].copy()

    return broken


@pytest.mark.parametrize("every", [2, 7, 50])
def test_a_vector_that_is_used_again(gaussian, every):
    gaussian(reused(every))
    assert said(noisy) == [TWICE]


def test_every_second_number_is_an_old_one(gaussian):
    kept = []

    def broken(draw):
        new = draw()
        if len(kept) % 2:
            new[::2] = kept[-1][::2]
        kept.append(new)
        return new.copy()

    gaussian(broken)
    assert said(noisy) == [CORRELATED]


def test_one_draw_for_two_statistics(gaussian):
    def broken(draw):
        drawn = draw()
        half = drawn.size // 2
        drawn[half:] = -drawn[:half]  # not the same, and not independent
        return drawn

    gaussian(broken)
    assert said(noisy) == [CORRELATED]


@pytest.mark.parametrize("bug", [lambda z: -np.abs(z), lambda z: z // 2])
def test_draws_that_lack_their_upper_half_or_are_halved(gaussian, bug):
    gaussian(lambda draw: bug(draw()))
    assert said(noisy) == [ANOTHER_DISTRIBUTION]


def test_integers_without_their_upper_half(monkeypatch):
    real = draws.SecureSampler.table
    monkeypatch.setattr(
        SecureSampler, "table", lambda self, weights, size: real(self, weights, size) // 2
    )
    weights = np.ones(16, np.int64)
    assert said(lambda data, sampler: data + sampler.table(weights, data.size)) == [
        ANOTHER_DISTRIBUTION
    ]


def test_another_branch_for_the_real_sampler():
    def release(data, sampler):
        again = 2 if isinstance(sampler, SecureSampler) else 1
        return data + again * sampler.discrete_gaussian(20.0, data.size) // again + (again - 1)

    assert said(release) == [OTHERWISE]


def test_more_draws_for_the_real_sampler():
    def release(data, sampler):
        if isinstance(sampler, SecureSampler):
            noisy(data, sampler)
        return noisy(data, sampler)

    assert said(release) == [OTHERWISE]


def test_the_nearer_of_two_draws_is_no_release():
    def nearer(data, sampler):
        one, other = (sampler.discrete_laplace(9.0, data.size) for _ in range(2))
        return data + (one if np.abs(one).sum() < np.abs(other).sum() else other)

    [problem] = examine(toys.toy(nearer), secure=True).problems
    assert "depends on the data" in problem


def test_a_draw_that_is_thrown_away():
    def second(data, sampler):
        toys.laplace(data, sampler)
        return toys.laplace(data, sampler)

    assert UNUSED in examine(toys.toy(second), secure=True).problems
    assert examine(toys.toy(second), secure=False).problems == ()


def test_what_does_not_fit_is_measured_once_more(monkeypatch):
    answers = iter([CORRELATED, None])
    monkeypatch.setattr(draws, "_wrong", lambda _: next(answers))
    assert said(noisy) == []


def test_all_kinds_of_draws_are_recorded_and_replayed():
    def all_of_them(sampler):
        weights = np.array([1, 2, 3])
        return np.concatenate(
            [
                sampler.discrete_laplace(3.0, 2),
                sampler.discrete_gaussian(3.0, (1, 2)).ravel(),
                sampler.binomial(5, 0.5, 2),
                sampler.binomial(np.array([[3], [4]]), 0.5, (2, 1)).ravel(),
                sampler.laplace_sum(2.0, 3, 2),
                sampler.gaussian_sum(2.0, 3, 2),
                sampler.table(weights, 2),
                sampler.table_sum(weights, 3, 2),
                sampler.scatter(10, 0.5, 3),
                sampler.permutation(4),
            ]
        )

    recording = RecordingSampler()
    first = all_of_them(recording)
    assert [draw.asked[0] for draw in recording.draws] == [
        "discrete_laplace",
        "discrete_gaussian",
        "binomial",
        "binomial",
        "laplace_sum",
        "gaussian_sum",
        "table",
        "table_sum",
        "scatter",
        "permutation",
    ]
    replaying = ReplayingSampler(recording.draws)
    assert np.array_equal(all_of_them(replaying), first)
    assert not replaying.waiting
    assert all(np.isfinite(draw.standard).all() for draw in recording.draws)


def test_a_user_who_is_not_counted_is_missed():
    """Beyond 65,536, for instance."""
    [entry] = [e for e in EXACT if e.name == "central/laplace"]
    path = episodes_path(entry.target(), 3)
    assert examine(path, secure=True).problems == ()
    forgetful = replace(path, neighbours=dict.fromkeys(path.neighbours, path.base))
    assert FORGOTTEN in examine(forgetful, secure=True).problems


# Real samplers against the calculated distribution: planted bugs are seen, sound toys are not
# accused.
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


def test_what_does_not_fit_is_measured_once_more_in_more_runs(monkeypatch):
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
