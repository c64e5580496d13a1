"""A policy as a picture: one square per step and state, its colour the action; inline SVG."""

from html import escape

from discreet.mdp.vocabulary import Vocabulary
from discreet.study.knowledge import Answer

# Okabe and Ito's colours, which people of all kinds of sight tell apart, and on paper too.
_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#0072b2", "#d55e00", "#999999")
_SQUARE, _LEFT, _TOP, _LETTER = 34, 150, 26, 7
MOST_STATES, MOST_STEPS = 60, 40


def colour(action: int) -> str:
    """Of an action; they come again after eight."""
    return _COLOURS[action % len(_COLOURS)]


def heat_map(answer: Answer, names: Vocabulary) -> str:
    """The picture: rows are states, columns are steps; pale where nothing is known."""
    states, steps = names.states[:MOST_STATES], names.steps[:MOST_STEPS]
    width = _LEFT + _SQUARE * len(steps) + 10
    height = _TOP + _SQUARE * len(states) + 8
    parts = [_text(_LEFT + _SQUARE * h + _SQUARE / 2, 18, _short(s, 4), "middle", s)
             for h, s in enumerate(steps)]  # fmt: skip
    for s, state in enumerate(states):
        y = _TOP + _SQUARE * s
        parts.append(_text(_LEFT - 8, y + _SQUARE / 2 + 4, _short(state, 19), "end", state))
        parts += [_square(answer, names, h, s) for h in range(len(steps))]
    label = "The policy: steps from left to right, states from top to bottom, colour is the action"
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{label}" '
        f'font-family="system-ui, sans-serif" font-size="12">{"".join(parts)}</svg>'
    )


def legend(names: Vocabulary) -> str:
    """Which colour is which action."""
    keys = "".join(
        f'<span class="key"><i style="background:{colour(a)}"></i>{a + 1} {escape(name)}</span>'
        for a, name in enumerate(names.actions)
    )
    pale = '<span class="key"><i class="pale"></i>pale, in brackets: rests on no data</span>'
    return f'<p class="legend">{keys}{pale}</p>'


def _square(answer: Answer, names: Vocabulary, h: int, s: int) -> str:
    """The number of the action stands in it, for printers without colours."""
    action, known = int(answer.policy.actions[h, s]), bool(answer.known[h, s])
    x, y = _LEFT + _SQUARE * h, _TOP + _SQUARE * s
    number = str(action + 1) if known else f"({action + 1})"
    title = f"{names.steps[h]}, {names.states[s]}: {names.actions[action]}"
    said = title if known else f"{title} (rests on no data)"
    opacity = 1 if known else 0.25
    return (
        f'<g><title>{escape(said)}</title><rect x="{x}" y="{y}" width="{_SQUARE - 2}" '
        f'height="{_SQUARE - 2}" rx="3" fill="{colour(action)}" fill-opacity="{opacity}"/>'
        f"{_text(x + _SQUARE / 2 - 1, y + _SQUARE / 2 + 3, number, 'middle')}</g>"
    )


def _text(x: float, y: float, text: str, anchor: str, title: str = "") -> str:
    tip = f"<title>{escape(title)}</title>" if title else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{tip}{escape(text)}</text>'


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
