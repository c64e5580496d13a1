"""Both samplers, on the path itself: what comes out has the law that was calculated.

The exact results rest on what a sampler was *asked* for. Here the real samplers draw, through the
real code: means and variances of all that is published are compared with the calculated ones
(additive noise), or the frequencies of all outcomes with their probabilities (randomised data).
"""

from collections.abc import Iterator

import numpy as np

from discreet.errors import MissingExtraError
from discreet.privacy.auditing.categories import Categorical
from discreet.privacy.auditing.examine import Finding, View
from discreet.privacy.auditing.linear import Additive
from discreet.privacy.auditing.paths.path import Path
from discreet.privacy.auditing.probes import PresetSampler
from discreet.privacy.auditing.reports import Outcomes
from discreet.privacy.sampling.samplers import Sampler, SecureSampler, SimulationSampler

SIGMAS = 8.0
"""Standard errors. Those of variances are measured, too, from few runs: where one Laplace draw is
all that is published, 0.3 % of simulated samples of 40 runs were beyond, and 2 of 600,000 samples
of 400 runs."""
_AGAIN = 10
"""What does not fit is measured once more, in so many times as many runs. False alarms: 1e-8."""


_TAIL = 20.0
"""False alarms of frequencies: exp(-20), 2e-9."""
_OFTEN = 5
"""Outcomes that are expected less often are counted together."""
_RUNS = {False: 120, True: 40}
"""With the simulation sampler, and with the secure one."""


def misfits(finding: Finding, seed: int = 0) -> Iterator[str]:
    """What the real sampler does otherwise than calculated, on a path that was examined."""
    if finding.view is None or not finding.path.thorough:
        return
    sampler = _sampler(finding.secure, seed)
    if sampler is None:
        return
    for times in (1, _AGAIN):
        runs = times * _RUNS[finding.secure]
        wrong = _measured(finding.path, finding.view, sampler, runs)
        if wrong is None:
            return
    yield f"With the {'secure' if finding.secure else 'simulation'} sampler {wrong}."


def _sampler(secure: bool, seed: int) -> Sampler | None:
    """The real one; None where the extra ``secure`` is not installed."""
    if not secure:
        return SimulationSampler(np.random.default_rng([seed, 2]))
    try:
        return SecureSampler()
    except MissingExtraError:
        return None


def _measured(path: Path, view: View, sampler: Sampler, runs: int) -> str | None:
    """What does not fit, if anything: frequencies of listed outcomes, else means and spreads."""
    if isinstance(view, Outcomes):
        return _frequencies(path, view, sampler, runs)
    return _moments(path, view, sampler, runs)


def _moments(path: Path, view: Additive | Categorical, sampler: Sampler, runs: int) -> str | None:
    drawn = np.array([path.base(sampler) for _ in range(runs)])
    still = path.base(PresetSampler.still(secure=sampler.secure))
    means, spreads = view.moments()
    noisy = spreads > 0
    means, spreads = means[noisy], spreads[noisy]
    standard = (drawn[:, noisy] - still[noisy] - means) / spreads
    slack = 1 / spreads.min(initial=np.inf)  # what is rounded is off by up to one
    if (np.abs(standard.mean(axis=0)) > SIGMAS / np.sqrt(runs) + slack).any():
        return "the noise has another mean than calculated"
    # Outputs of one run hang together: their average square is compared run by run.
    squares = (standard**2).mean(axis=1)
    error = SIGMAS * squares.std() / np.sqrt(runs) + slack
    if abs(squares.mean() - 1) > error:
        return f"the noise has {squares.mean():.2f} times the calculated variance"
    return None


def _frequencies(path: Path, view: Outcomes, sampler: Sampler, runs: int) -> str | None:
    seen: dict[bytes, int] = {}
    for _ in range(runs):
        key = path.base(sampler).tobytes()
        seen[key] = seen.get(key, 0) + 1
    if any(key not in view.base for key in seen):
        return "something is published that cannot be"
    expected = runs * np.array(list(view.base.values()))
    counted = np.array([seen.get(key, 0) for key in view.base], np.float64)
    often = expected >= _OFTEN  # the rest is taken together
    expected = np.append(expected[often], expected[~often].sum() + 1e-12)
    counted = np.append(counted[often], counted[~often].sum())
    # Chi-square of n cells exceeds n + 2·sqrt(n·x) + 2x with probability below exp(-x) (Laurent
    # and Massart 2000).
    excess = float(((counted - expected) ** 2 / np.maximum(expected, 1)).sum()) - expected.size
    if excess > 2 * np.sqrt(expected.size * _TAIL) + 2 * _TAIL:
        return "outcomes have other probabilities than calculated"
    return None
