"""What the real samplers draw on a path.

The exact results rest on what a sampler was *asked* for, and on samplers that answer with
prescribed numbers. Here the real ones draw, through the real code. `misfits`: what comes out has
the distribution that was calculated, by means and variances of all that is published (additive
noise), or by the frequencies of all outcomes (randomised data). `unsound_draws`: the secure sampler
draws, and every draw is written down. Three things must hold:

* *Nothing else is published.* A sampler of another type that answers with the same numbers is asked
  for the same draws and leads to the same publication, bit by bit: not another branch for real
  people, not a choice among several draws.
* *No draw is used twice.* No sequence of draws of one distribution comes again that is too long to
  do so by chance, and draws are not correlated with those before them, whatever the distance: noise
  that is shared between releases, statistics or users vanishes in their difference.
* *The distribution is the one asked for*: the mean of each, and the mean square of all.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.auditing.additive import Additive
from discreet.auditing.categories import Categorical
from discreet.auditing.examine import Finding, Outcomes
from discreet.auditing.paths import Path
from discreet.auditing.probes import Noise, PresetSampler
from discreet.errors import UnsupportedError
from discreet.privacy.sampling.samplers import Sampler, SecureSampler, SimulationSampler

OTHERWISE = (
    "With the secure sampler something else is published than the same draws of another sampler "
    "lead to."
)
TWICE = "The secure sampler's draws are used twice: some come again that cannot by chance."
CORRELATED = "The secure sampler's draws are not independent: they hang together at a distance."
ANOTHER_DISTRIBUTION = (
    "The secure sampler's draws have another mean or variance than was asked for."
)

_ENOUGH = 3000
"""Draws. Where every fourth one is an old one, their correlation is 14 standard errors."""
_RUNS = 400
_SIGMAS = 8.0
"""Standard errors; and whatever does not fit is measured once more."""
_CLIPPED = 4.0
_LEAST_SPREAD = 0.04
"""Variance of a draw that is looked at: rare bits say nothing about each other."""
_CHANCE = 1e-6
"""That draws come again by chance; and whatever does is measured once more."""

Asked = tuple[object, ...]
"""What a sampler was asked for: the method and its arguments."""


@dataclass(frozen=True, eq=False)
class Draw:
    """One call of a sampler, and what it answered."""

    asked: Asked
    values: IntArray

    @property
    def standard(self) -> FloatArray:
        """The draws with mean zero and variance one, those that vary too little left out.

        Balls in cells hang together: of them only the first cell is looked at, and only the first
        place of a permutation.
        """
        name = self.asked[0]
        if name == "binomial":
            trials, probability = np.asarray(self.asked[1]), _number(self.asked[2])
            mean = trials * probability
            return _standard(self.values.ravel(), mean, mean * (1 - probability))
        if name == "scatter":
            balls, cells = _number(self.asked[1]), _number(self.asked[3])
            share = _number(self.asked[2]) / cells
            return _standard(self.values[:1], balls * share, balls * share * (1 - share))
        if name == "permutation":
            length = self.values.size
            return _standard(self.values[:1], (length - 1) / 2, (length**2 - 1) / 12)
        noise = self.noise
        return _standard(self.values, noise.mean, noise.variance)

    @property
    def noise(self) -> Noise:
        """Of Laplace, Gaussian and table draws, and of their sums."""
        name, parameter = str(self.asked[0]), self.asked[1]
        copies = int(_number(self.asked[2])) if name.endswith("_sum") else 1
        if isinstance(parameter, tuple):
            weights = np.array(parameter)
            return Noise("table", 1.0, copies, table=(weights / weights.sum()).tobytes())
        return Noise("laplace" if "laplace" in name else "gaussian", _number(parameter), copies)

    @property
    def again(self) -> float | None:
        """At most how likely two draws of this distribution are equal; None where it is likely."""
        name = str(self.asked[0])
        if "laplace" not in name and "gaussian" not in name:
            return None
        # No value is likelier than zero: tanh(1/2b) of Laplace draws, 1/(sigma·sqrt(2·pi)) and a
        # little more of Gaussian ones.
        scale = _number(self.asked[1])
        return math.tanh(0.5 / scale) if "laplace" in name else min(1.0, 0.5 / scale)


def _number(value: object) -> float:
    return float(value)  # type: ignore[arg-type]


def _standard(
    values: IntArray, mean: FloatArray | float, variance: FloatArray | float
) -> FloatArray:
    spread = np.broadcast_to(variance, values.shape)
    kept = spread > _LEAST_SPREAD
    apart = values - np.broadcast_to(mean, values.shape)
    standard: FloatArray = (apart[kept] / np.sqrt(spread[kept])).ravel()
    return standard


class RecordingSampler(SecureSampler):
    """The secure sampler, with a record of what it was asked and what it drew."""

    def __init__(self) -> None:
        super().__init__()
        self.draws: list[Draw] = []

    def __getattribute__(self, name: str) -> Any:
        """Methods that draw are a plain secure sampler's, and noted."""
        if name not in _METHODS:
            return super().__getattribute__(name)

        def noted(*arguments: object) -> IntArray:
            values: IntArray = getattr(SecureSampler(), name)(*arguments)
            self.draws.append(Draw(_asked(name, arguments), values.copy()))
            return values

        return noted


class ReplayingSampler:
    """Answers with recorded draws, in their order; refuses another question."""

    secure = True

    def __init__(self, draws: Sequence[Draw]) -> None:
        self.waiting = list(draws)

    def __getattr__(self, name: str) -> Any:
        """Any method that draws."""
        if name not in _METHODS:
            raise AttributeError(name)

        def answer(*arguments: object) -> IntArray:
            draw = self.waiting.pop(0) if self.waiting else None
            if draw is None or draw.asked != _asked(name, arguments):
                raise UnsupportedError(OTHERWISE)
            return draw.values.copy()

        return answer


_METHODS = frozenset(name for name in vars(Sampler) if not name.startswith("_")) - {"secure"}


def _asked(name: str, arguments: tuple[object, ...]) -> Asked:
    """Arrays (the weights of a table, trials of several bits) as tuples, to be compared."""
    arrays = (tuple(a.ravel().tolist()) if isinstance(a, np.ndarray) else a for a in arguments)
    return name, *arrays


def unsound_draws(path: Path) -> Iterator[str]:
    """What is wrong with the secure sampler's draws on this path, in sentences."""
    wrong = _wrong(path)
    if wrong and wrong != OTHERWISE:  # of few draws some are unlucky
        wrong = _wrong(path)
    if wrong:
        yield wrong


def _wrong(path: Path) -> str | None:
    drawn: list[Draw] = []
    parts: list[FloatArray] = []
    noises: dict[Asked, list[FloatArray]] = {}
    for _ in range(_RUNS):
        sampler = RecordingSampler()
        published = path.base(sampler)
        if not drawn:  # a sampler of another type leads to the same, bit by bit
            replaying = ReplayingSampler(sampler.draws)
            try:
                again = path.base(cast(Sampler, replaying))
            except UnsupportedError:
                return OTHERWISE
            if replaying.waiting or not np.array_equal(again, published):
                return OTHERWISE
        drawn += sampler.draws
        for draw in sampler.draws:
            parts.append(draw.standard)
            noises.setdefault(draw.asked[:-1], []).append(parts[-1])
        if sum(map(len, parts)) >= _ENOUGH:
            break
    if _twice(drawn):
        return TWICE
    for own in map(np.concatenate, noises.values()):
        if own.size > 1 and abs(own.sum()) > _SIGMAS * math.sqrt(own.size):
            return ANOTHER_DISTRIBUTION
    return _unlikely(np.concatenate(parts))


def _twice(drawn: Sequence[Draw]) -> bool:
    """Whether a sequence of draws of one noise comes again that is too long for chance."""
    groups: dict[Asked, list[IntArray]] = {}
    chances: dict[Asked, float] = {}
    for draw in drawn:
        chance = draw.again
        if chance is not None and chance < 1:
            key = draw.asked[:-1]  # whatever the size
            groups.setdefault(key, []).append(draw.values.ravel())
            chances[key] = chance
    for key, parts in groups.items():
        values = np.concatenate(parts)
        # n(n-1)/2 pairs of sequences of k draws, each equal with probability chance^k at most.
        # (Those that overlap are no likelier: k equations, each decided by another draw.)
        k = math.ceil(math.log(values.size**2 / 2 / _CHANCE) / -math.log(chances[key]))
        if values.size > k:
            sequences = np.lib.stride_tricks.sliding_window_view(values, k)
            if len(np.unique(sequences, axis=0)) < len(sequences):
                return True
    return False


def _unlikely(standard: FloatArray) -> str | None:
    """Mean square, and correlations at every distance up to half of the draws."""
    count, squares = standard.size, standard**2
    if count < 2:
        return None
    if abs(squares.mean() - 1) > _SIGMAS / math.sqrt(count) * max(1.0, squares.std()):
        return ANOTHER_DISTRIBUTION
    clipped = np.clip(standard, -_CLIPPED, _CLIPPED)
    clipped = (clipped - clipped.mean()) / clipped.std()
    transform = np.fft.rfft(clipped, 2 * count)
    lags = np.arange(1, count // 2 + 1)
    products = np.fft.irfft(np.abs(transform) ** 2)[lags]
    return CORRELATED if (np.abs(products) > _SIGMAS * np.sqrt(count - lags)).any() else None


# What comes out has the distribution that was calculated.

FIT_SIGMAS = 8.0
"""Standard errors. Those of variances are measured, too, from few runs: where one Laplace draw is
all that is published, 0.3 % of simulated samples of 40 runs were beyond, and 2 of 600,000 samples
of 400 runs."""
_AGAIN = 10
"""What does not fit is measured once more, in so many times as many runs. False alarms: 1e-8."""
_TAIL = 20.0
"""False alarms of frequencies: exp(-20), 2e-9."""
_OFTEN = 5
"""Outcomes that are expected less often are counted together."""
_FIT_RUNS = {False: 120, True: 40}
"""With the simulation sampler, and with the secure one."""


def misfits(finding: Finding, seed: int = 0) -> Iterator[str]:
    """What the real sampler does otherwise than calculated, on a path that was examined."""
    path, view = finding.path, finding.view
    if view is None or not path.thorough:
        return
    rng = np.random.default_rng([seed, 2])
    sampler: Sampler = SecureSampler() if finding.secure else SimulationSampler(rng)
    for times in (1, _AGAIN):
        runs = times * _FIT_RUNS[finding.secure]
        if isinstance(view, Outcomes):
            wrong = _frequencies(path, view, sampler, runs)
        else:
            wrong = _moments(path, view, sampler, runs)
        if wrong is None:
            return
    yield f"With the {'secure' if finding.secure else 'simulation'} sampler {wrong}."


def _moments(path: Path, view: Additive | Categorical, sampler: Sampler, runs: int) -> str | None:
    drawn = np.array([path.base(sampler) for _ in range(runs)])
    still = path.base(PresetSampler.still(secure=sampler.secure))
    means, spreads = view.moments()
    noisy = spreads > 0
    means, spreads = means[noisy], spreads[noisy]
    standard = (drawn[:, noisy] - still[noisy] - means) / spreads
    slack = 1 / spreads.min(initial=np.inf)  # what is rounded is off by up to one
    if (np.abs(standard.mean(axis=0)) > FIT_SIGMAS / np.sqrt(runs) + slack).any():
        return "the noise has another mean than calculated"
    # Outputs of one run hang together: their average square is compared run by run.
    squares = (standard**2).mean(axis=1)
    error = FIT_SIGMAS * squares.std() / np.sqrt(runs) + slack
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
