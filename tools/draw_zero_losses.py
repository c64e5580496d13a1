"""Draw what the two bandit loss estimators do when all losses are zero (docs/learners).

Usage: python -m tools.draw_zero_losses [OUTPUT.svg]
"""

import argparse
from pathlib import Path

import numpy as np

from discreet._seeds import RunSeeds
from discreet.learners.adversarial import uob_lbps
from discreet.mdp import RiverSwim
from discreet.mdp.layered import LayeredMDP
from discreet.mdp.losses import stochastic_losses
from discreet.privacy.trust import Central

EPISODES = (500, 1000, 2000, 4000, 8000, 16_000)
LEFT, TOP, WIDTH, HEIGHT = 70, 30, 460, 240


def concentration(estimator: str, episodes: int) -> float:
    """Mean over states of max_a pi(a|x) after a run of ``episodes`` with zero losses."""
    mdp = LayeredMDP.from_tabular(RiverSwim(states=4, horizon=6))
    nothing = stochastic_losses(mdp, episodes, means=np.zeros(mdp.shape.visits))
    result = uob_lbps.run(
        mdp, Central(1.0), episodes, RunSeeds(0), losses=nothing, loss_estimator=estimator
    )
    return float(result.policy.probabilities.max(axis=-1)[mdp.present].mean())


def place(episodes: int, value: float) -> tuple[float, float]:
    """Pixel of a point: logarithmic episodes, values from 0.5 to 1."""
    share = np.log(episodes / EPISODES[0]) / np.log(EPISODES[-1] / EPISODES[0])
    return LEFT + WIDTH * float(share), TOP + HEIGHT * (1 - (value - 0.5) / 0.5)


def line(values: list[float], colour: str, label: str) -> str:
    """One curve with dots and its name."""
    points = [place(k, v) for k, v in zip(EPISODES, values, strict=True)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points
    )
    x, y = points[-1]
    text = f'<text x="{x + 8:.1f}" y="{y + 4:.1f}" fill="{colour}">{label}</text>'
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}{text}'


def axes() -> str:
    """Frame, ticks and titles."""
    parts = [f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" class="frame"/>']
    for k in EPISODES:
        x, _ = place(k, 0.5)
        parts.append(f'<text x="{x:.1f}" y="{TOP + HEIGHT + 18}" class="middle">{k}</text>')
    for value in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        _, y = place(EPISODES[0], value)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 30}" y="{y + 4:.1f}">{value:.1f}</text>')
    centre = LEFT + WIDTH / 2
    parts.append(f'<text x="{centre}" y="{TOP + HEIGHT + 40}" class="middle">episodes K</text>')
    title = "all losses zero: mean over states of the largest action probability"
    parts.append(f'<text x="{centre}" y="{TOP - 12}" class="middle">{title}</text>')
    return "".join(parts)


def draw(output: Path) -> None:
    """Run both estimators and write the picture."""
    curves = {name: [concentration(name, k) for k in EPISODES] for name in ("paper", "centred")}
    for name, values in curves.items():
        print(name, [round(v, 3) for v in values])
    style = (
        "text{font:12px sans-serif;fill:#333}.middle{text-anchor:middle}"
        "line{stroke:#ddd}.frame{fill:#fff;stroke:#999}"
    )
    body = (
        axes()
        + line(curves["paper"], "#d55e00", "printed")
        + line(curves["centred"], "#0072b2", "centred")
    )
    size = f'width="{LEFT + WIDTH + 80}" height="{TOP + HEIGHT + 50}"'
    output.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>{body}</svg>\n'
    )


def main() -> None:
    """Where to, if not into the docs."""
    parser = argparse.ArgumentParser(description=__doc__)
    usual = Path("docs/learners/zero-losses.svg")
    parser.add_argument("output", nargs="?", type=Path, default=usual)
    options = parser.parse_args()
    if options.output.suffix != ".svg":
        parser.error(f"Expected a name that ends in .svg, got {options.output}.")
    draw(options.output)


if __name__ == "__main__":
    main()
