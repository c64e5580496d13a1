"""The two learning curves in one drawing, and the page at the end. No plotting library needed."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from discreet._files import write_atomically
from discreet.learners.result import RegretCurve
from discreet.service.demo.run import NOT_PROTECTED, Arrangement, Findings, Spread, final

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 48
_REAL, _SIMULATED, _INK = "#0072b2", "#e69f00", "#57606a"
_STYLE = """
body { margin: 0 auto; max-width: 52rem; padding: 1.5rem 1rem 3rem; color: #1b1f24;
  font: 16px/1.55 system-ui, sans-serif; background: #fff; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .4rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #d8dee4; }
svg { width: 100%; height: auto; display: block; }
table { border-collapse: collapse; width: 100%; }
td { padding: .35rem .6rem .35rem 0; border-bottom: 1px solid #d8dee4; vertical-align: top; }
td + td { text-align: right; font-variant-numeric: tabular-nums; }
.warn { background: #fff4e0; border-left: 4px solid #e69f00; padding: .6rem .9rem; }
li { margin: .3rem 0; }
"""


def draw(curve: RegretCurve, band: Spread) -> str:
    """Both curves as SVG."""
    users = max(int(band.users[-1]), int(curve.episodes[-1]))
    top = 1.05 * max(float(band.high.max()), float(curve.values.max()), 1e-9)
    frame = _Frame(users, top)
    outline = [*zip(band.users, band.high, strict=True)]
    outline += [*zip(band.users[::-1], band.low[::-1], strict=True)]
    middle = list(zip(band.users, band.middle, strict=True))
    real = list(zip(curve.episodes, curve.values, strict=True))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            f'role="img" font-family="system-ui, sans-serif" font-size="13">',
            "<title>Cumulative regret of the service beside simulated runs</title>",
            frame.axes(),
            f'<polygon points="{frame.points(outline)}" fill="{_SIMULATED}" opacity="0.25"/>',
            _line(frame.points(middle), _SIMULATED, "5 4"),
            _line(frame.points(real), _REAL, ""),
            _key(_LEFT + 16, 30, _REAL, "through the service"),
            _key(_LEFT + 16, 50, _SIMULATED, "simulated: median, and 95 of 100 runs"),
            "</svg>",
        ]
    )


class _Frame:
    """From users and regret to places on the drawing."""

    def __init__(self, users: int, top: float) -> None:
        self._users, self._top = users, top

    def at(self, users: float, regret: float) -> tuple[float, float]:
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * users / self._users
        y = _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * regret / self._top
        return x, y

    def points(self, pairs: Sequence[tuple[float, float]]) -> str:
        return " ".join("{:.1f},{:.1f}".format(*self.at(*pair)) for pair in pairs)

    def axes(self) -> str:
        parts = []
        for users in ticks(self._users):
            x, y = self.at(users, 0)
            parts.append(_text(x, y + 18, f"{users:,.0f}", "middle"))
        for regret in ticks(self._top):
            x, y = self.at(0, regret)
            parts.append(_text(x - 8, y + 4, f"{regret:,.0f}", "end"))
            parts.append(f'<path d="M{x:.1f} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#d8dee4"/>')
        parts.append(_text(_WIDTH / 2, _HEIGHT - 10, "users", "middle"))
        parts.append(
            f'<text transform="translate(16 {_HEIGHT / 2}) rotate(-90)" text-anchor="middle" '
            f'fill="{_INK}">regret so far</text>'
        )
        return "\n".join(parts)


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


def write_page(folder: Path, arrangement: Arrangement, found: Findings, band: Spread) -> Path:
    """``demo.html`` and ``curve.svg`` in the folder; the page's path."""
    drawing = draw(found.curve, band)
    write_atomically(folder / "curve.svg", drawing.encode())
    low, high = band.interval
    rows = [
        ("users counted, each once", f"{found.users:,}" if found.counted_once else "NOT TRUE"),
        ("batches", str(found.batches)),
        ("SIGKILLs survived", str(sum(found.kills.values()))),
        ("certificate, manifests and ledger verified", _yes(found.ledger_verified)),
        ("keys and bodies gone", _yes(found.forgotten)),
        ("regret through the service", f"{final(found.curve):,.1f}"),
        (f"regret of {len(band.finals)} simulated runs, 95%", f"{low:,.1f} to {high:,.1f}"),
        ("seconds of the real thing", f"{found.seconds:,.0f}"),
    ]
    cells = "".join(f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in rows)
    open_points = "".join(f"<li>{escape(line)}</li>" for line in NOT_PROTECTED)
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>discreet service demo</title><style>{_STYLE}</style></head><body>"
        f"<h1>A study through the service, {escape(arrangement.home.environment)}</h1>"
        '<p class="warn">SIMULATED: a rehearsal on one machine. It protects nobody.</p>'
        f"{drawing}<table>{cells}</table>"
        f"<h2>What this arrangement does not protect</h2><ul>{open_points}</ul></body></html>"
    )
    path = folder / "demo.html"
    write_atomically(path, page.encode())
    return path


def _yes(truth: bool) -> str:
    return "yes" if truth else "NO"


def _line(points: str, colour: str, dashes: str) -> str:
    return (
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" '
        f'stroke-dasharray="{dashes}"/>'
    )


def _key(x: float, y: float, colour: str, text: str) -> str:
    line = f'<path d="M{x} {y}h22" stroke="{colour}" stroke-width="3"/>'
    return line + _text(x + 30, y + 4, text, "start")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{_INK}">{text}</text>'
