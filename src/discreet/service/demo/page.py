"""The learning curve of the real thing beside simulated runs of the same learner, and the page.

Regret is exact and expected: what the policies of the manifests lose in the true model.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
import numpy as np
from markupsafe import Markup

from discreet._files import write_atomically
from discreet._types import FloatArray, IntArray
from discreet.learners.learn import learn
from discreet.learners.result import RegretCurve, RegretRecorder
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.tabular import TabularMDP
from discreet.service.protocol.manifest import Manifest

if TYPE_CHECKING:
    from discreet.service.demo.run import Arrangement, Findings

LEARNER = "flow-ucb"
INTERVAL = (2.5, 97.5)
"""Percentiles of single simulated runs: nineteen of twenty runs lie between them."""


@dataclass(frozen=True, eq=False)
class Spread:
    """Where simulated runs lie: percentiles at some numbers of users."""

    users: IntArray
    low: FloatArray
    middle: FloatArray
    high: FloatArray
    finals: FloatArray

    @property
    def interval(self) -> tuple[float, float]:
        low, high = np.percentile(self.finals, INTERVAL)
        return float(low), float(high)


def real_curve(mdp: TabularMDP, counted: Sequence[Manifest]) -> RegretCurve:
    meter = RegretMeter(mdp)
    recorder = RegretRecorder(sum(manifest.users for manifest in counted))
    for manifest in counted:
        loss = meter.regret(DeterministicPolicy(np.array(manifest.policy)))
        recorder.add(manifest.users, loss)
    return recorder.curve()


def final(curve: RegretCurve) -> float:
    return float(curve.values[-1])


def simulate(
    arrangement: "Arrangement", runs: int, tell: Callable[[int], object] = lambda _: None
) -> Spread:
    """Runs of the same learner under the same mechanism, at count level.

    Args:
        arrangement: whose world, users and guarantee they share.
        runs: how many.
        tell: called with the number of runs so far.
    """
    curves = []
    for run in range(runs):
        result = learn(
            arrangement.home.mdp,
            learner=LEARNER,
            trust=arrangement.trust,
            episodes=arrangement.users,
            seed=arrangement.seed + 1,
            run=run,
            mixing=False,
        )
        curves.append(result.regret)
        tell(run + 1)
    return spread_of(curves, arrangement.users)


def spread_of(curves: Sequence[RegretCurve], users: int, points: int = 60) -> Spread:
    """Percentiles of curves at evenly spaced numbers of users."""
    places = np.unique(np.linspace(1, users, points).astype(np.int64))
    values = np.array([np.interp(places, one.episodes, one.values) for one in curves])
    low, middle, high = np.percentile(values, [INTERVAL[0], 50, INTERVAL[1]], axis=0)
    return Spread(places, low, middle, high, np.array([final(one) for one in curves]))


_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 48
_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    trim_blocks=True,
    undefined=jinja2.StrictUndefined,
)


def draw(curve: RegretCurve, band: Spread) -> str:
    users = max(int(band.users[-1]), int(curve.episodes[-1]))
    top = 1.05 * max(float(band.high.max()), float(curve.values.max()), 1e-9)

    def at(some: float, regret: float) -> tuple[float, float]:
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * some / users
        y = _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * regret / top
        return round(float(x), 1), round(float(y), 1)

    def points(pairs: Iterable[tuple[float, float]]) -> str:
        return " ".join("{},{}".format(*at(*pair)) for pair in pairs)

    outline = [
        *zip(band.users, band.high, strict=True),
        *zip(band.users[::-1], band.low[::-1], strict=True),
    ]
    return _TEMPLATES.get_template("curve.svg").render(
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        users_ticks=[(*at(tick, 0), f"{tick:,.0f}") for tick in ticks(users)],
        regret_ticks=[(*at(0, tick), f"{tick:,.0f}") for tick in ticks(top)],
        band=points(outline),
        middle=points(zip(band.users, band.middle, strict=True)),
        real=points(zip(curve.episodes, curve.values, strict=True)),
    )


def ticks(top: float) -> list[float]:
    """Four to ten round numbers from zero on.

    >>> ticks(2000)
    [0.0, 500.0, 1000.0, 1500.0, 2000.0]
    """
    step = 1.0
    while top / step > 5:
        step *= 10
    while top / step < 4:
        step /= 2 if str(step)[0] != "5" else 2.5
    return [step * i for i in range(int(top / step + 1e-9) + 1)]


def write_page(folder: Path, arrangement: "Arrangement", found: "Findings", band: Spread) -> Path:
    """``demo.html`` and ``curve.svg`` in the folder; the page's path."""
    from discreet.service.demo.run import NOT_PROTECTED

    drawing = draw(found.curve, band)
    write_atomically(folder / "curve.svg", drawing.encode())
    page = _TEMPLATES.get_template("demo.html").render(
        environment=arrangement.home.environment,
        drawing=Markup(drawing),
        rows=[*found.rows(band), ("seconds of the real thing", f"{found.seconds:,.0f}")],
        not_protected=NOT_PROTECTED,
    )
    write_atomically(folder / "demo.html", page.encode())
    return folder / "demo.html"
