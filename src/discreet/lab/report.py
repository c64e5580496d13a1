"""One self-contained HTML page: figures, tables, guarantees, how to repeat it."""

import io
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.lab.plots import action_colours, figure, plot_policy
from discreet.lab.results import Results, write_file
from discreet.lab.style import (
    CAPTIONS,
    NOTIONS,
    REGRET,
    TITLES,
    name_of,
    noise_of,
    pair_of,
    trust_words,
)
from discreet.lab.summary import Comparison, Row, summarise, warnings_of, winners

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POLICIES = 6  # pictures of policies
_KEY = 8  # actions with a colour of their own

_STYLE = """
:root { --ink: #1b1f24; --soft: #57606a; --line: #d8dee4; --warn: #fff4e0; --edge: #e69f00; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 3rem; color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; background: #fff; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid var(--line); }
p.lead { color: var(--soft); margin-top: 0; }
figure { margin: 1.2rem 0; }
figure svg { width: 100%; height: auto; max-width: 38rem; display: block; }
.key { white-space: nowrap; margin-right: .8rem; }
.key i { display: inline-block; width: .8em; height: .8em; margin-right: .35em; }
figcaption { color: var(--soft); font-size: .88rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { padding: .35rem .6rem; text-align: left; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.g { min-width: 15rem; white-space: normal; }
td.w { min-width: 9rem; white-space: normal; }
td.weak { color: #8a929b; }
.warn { background: var(--warn); border-left: 4px solid var(--edge); padding: .6rem .9rem;
  margin: .6rem 0; }
.small { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: 1rem; }
.wide { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr));
  gap: 0 2rem; align-items: start; }
code, pre { font: .88rem/1.5 ui-monospace, monospace; }
code { overflow-wrap: anywhere; }
pre { background: #f6f8fa; padding: .8rem; overflow-x: auto; }
footer { color: var(--soft); font-size: .85rem; margin-top: 2.5rem; }
@media (max-width: 40rem) { body { font-size: 15px; padding: 1rem .75rem; }
  h1 { font-size: 1.35rem; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  .stack tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line); }
  .stack tr:first-child { display: none; }
  .stack td { display: block; border: 0; padding: .05rem 0; white-space: normal; }
  .stack td.n { text-align: left; } .stack td.n::before { content: "K = "; } }
@media print { body { max-width: none; padding: 0; font-size: 11pt; }
  figure, tr, pre, .warn { break-inside: avoid; }
  h2, h2 + p, p:has(+ .scroll) { break-after: avoid; } h2 { margin-top: 1.4rem; }
  .wide { grid-template-columns: 1fr 1fr; gap: 0 1.5rem; } figure { margin: .6rem 0; }
  .scroll { overflow: visible; } td.g { min-width: 0; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; overflow: visible; } }
"""


def _prose(text: str) -> str:
    """Text for people: `code` between backticks, ``ε = 1`` on one line.

    >>> _prose("a < b at ε = 1, see `plan`")
    'a &lt; b at ε&nbsp;=&nbsp;1, see <code>plan</code>'
    """
    said = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return said.replace(" = ", "&nbsp;=&nbsp;")


def svg_of(drawn: "Figure") -> str:
    """A matplotlib figure as inline SVG with identifiers that do not depend on the moment."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    stream = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "discreet", "svg.fonttype": "none"}):
        drawn.savefig(stream, format="svg", metadata={"Date": None})
    plt.close(drawn)
    text = stream.getvalue()
    return text[text.index("<svg") :]


def write_figures(results: Results) -> list[Path]:
    """All figures of the experiment as SVG and PNG files in the folder ``figures``."""
    folder = results.path / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, environment in _figures(results):
        drawn = figure(results, name, environment)
        stem = f"{name}-{_slug(environment)}"
        write_file(folder / f"{stem}.svg", svg_of(drawn).encode())
        drawn.savefig(folder / f"{stem}.png", dpi=150)
        paths += [folder / f"{stem}.svg", folder / f"{stem}.png"]
    return paths


def write_report(results: Results) -> Path:
    """Write ``report.html`` into the result folder and return its path."""
    path = results.path / "report.html"
    write_file(path, render(results).encode())
    return path


def render(results: Results) -> str:
    experiment = results.experiment
    rows = summarise(results)
    sections = [
        f"<h1>{escape(experiment.title)}</h1>",
        f'<p class="lead">{_prose(experiment.description)}</p>',
        *(f'<div class="warn">{escape(text)}</div>' for text in warnings_of(results)),
        "<h2>Pictures</h2>",
        '<div class="wide">',
        *(_figure(results, name, env) for name, env in _figures(results)),
        "</div>",
        "<h2>Final regret</h2>",
        f"<p>{escape(REGRET)}</p>",
        _regret_table(rows),
        "<h2>Who wins</h2>",
        _verdicts(results),
        _policies(results),
        "<h2>Guarantees</h2>",
        f"<p>{escape(NOTIONS)}</p>",
        _guarantee_table(rows),
        "<h2>Noise</h2>",
        _noise_table(rows),
        "<h2>How to repeat this</h2>",
        _reproduce(results),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(experiment.title)}</title><style>{_STYLE}</style></head><body>"
        + "\n".join(sections)
        + "</body></html>\n"
    )


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _figures(results: Results) -> list[tuple[str, str]]:
    environments = [e.title for e in results.experiment.environments]
    return [(name, env) for env in environments for name in results.experiment.plots]


def _figure(results: Results, name: str, environment: str) -> str:
    alt = escape(f"{TITLES[name]}, {environment}")
    image = svg_of(figure(results, name, environment)).replace(
        "<svg ", f'<svg role="img" aria-label="{alt}" ', 1
    )
    image = _unique_ids(image, _slug(f"{name}-{environment}"))
    return f"<figure>{image}<figcaption>{escape(CAPTIONS[name])}</figcaption></figure>"


def _unique_ids(image: str, prefix: str) -> str:
    """Inline SVGs share one document: their identifiers must not meet."""
    image = re.sub(r'\bid="', f'id="{prefix}-', image)
    image = re.sub(r'(xlink:href|href)="#', rf'\1="#{prefix}-', image)
    return image.replace("url(#", f"url(#{prefix}-")


def _cells(*cells: tuple[str, str]) -> str:
    return "<tr>" + "".join(f'<td class="{kind}">{text}</td>' for kind, text in cells) + "</tr>"


def _place_and_name(rows: Sequence[Row]) -> tuple[str, list[list[tuple[str, str]]]]:
    """Headings and cells of what tells rows apart: environment and learner where they differ."""
    found = {
        "environment": [row.facts["environment"] for row in rows],
        "learner": [name_of(row.facts) for row in rows],
    }
    shown = {name: values for name, values in found.items() if len({*values}) > 1}
    head = "".join(f"<th>{name}</th>" for name in shown)
    return head, [[("", escape(values[i])) for values in shown.values()] for i in range(len(rows))]


def _regret_table(rows: Sequence[Row]) -> str:
    places, names = _place_and_name(rows)
    head = (
        f"<tr>{places}<th>trust</th><th>guarantee</th>"
        '<th class="n">K</th><th class="n">regret</th><th class="n">of uniform</th>'
        '<th class="n">95% interval</th><th class="n">runs</th></tr>'
    )
    body = "".join(
        _cells(
            *name,
            ("", row.facts["trust"]),
            ("", escape(pair_of(row.guarantee))),
            ("n", f"{row.facts['episodes']:,}"),
            ("n", f"{row.mean:,.0f}"),
            ("n", row.share_text),
            ("n", f"{row.low:,.0f} to {row.high:,.0f}"),
            ("n", str(row.runs)),
        )
        for name, row in zip(names, rows, strict=True)
    )
    return f'<div class="scroll"><table>{head}{body}</table></div>'


def _verdicts(results: Results) -> str:
    items = []
    head = (
        "<tr><th>less regret</th><th>more regret</th>"
        '<th class="n">difference</th><th class="n">95% interval</th><th class="n">p</th></tr>'
    )
    for environment, comparisons in winners(results):
        body = "".join(map(_verdict, comparisons))
        items.append(
            f"<p><b>{escape(environment)}</b></p>"
            f'<div class="scroll"><table>{head}{body}</table></div>'
        )
    if not items:
        return "<p>Only one learner ran: nothing to compare.</p>"
    return "".join(items) + (
        "<p><small>Largest K; paired over runs with common random numbers; corrected for the "
        "number of comparisons (Holm). In grey: no significant difference.</small></p>"
    )


def _verdict(comparison: Comparison) -> str:
    kind = "" if comparison.significant else "weak"
    return _cells(
        (kind, escape(comparison.first)),
        (kind, escape(comparison.second)),
        (f"n {kind}", f"{comparison.difference:+,.0f}"),
        (f"n {kind}", f"{comparison.low:,.0f} to {comparison.high:,.0f}"),
        (f"n {kind}", f"{comparison.p_value:.2g}"),
    )


def _policies(results: Results) -> str:
    import matplotlib.pyplot as plt

    longest = max((entry["episodes"] for entry in results.guarantees), default=0)
    found = [
        (entry, actions)
        for entry in results.guarantees
        if (actions := results.policies.get(f"{entry['cell']}-0000")) is not None
        and entry["episodes"] == longest
    ][:_POLICIES]
    if not found:
        return ""
    count = 1 + max(action for _, actions in found for row in actions for action in row)
    pictures = []
    for entry, actions in found:
        drawn, axes = plt.subplots(figsize=(3.4, 2.4), layout="constrained")
        plot_policy(axes, actions, count=count)
        image = _unique_ids(svg_of(drawn), f"policy-{entry['cell']}")
        who = f"{name_of(entry)}, {trust_words(entry, entry['guarantee'])}"
        where = f"{entry['environment']}, K = {entry['episodes']:,}"
        caption = f"<b>{_prose(who)}</b><br>{escape(where)}"
        pictures.append(f"<figure>{image}<figcaption>{caption}</figcaption></figure>")
    return (
        f"<h2>Learned policies</h2><p>Of the first run, step across and state up. {_key(count)}"
        f'</p><div class="small">{"".join(pictures)}</div>'
    )


def _key(count: int) -> str:
    if count > _KEY:
        return "The lighter the colour, the larger the number of the action."
    swatches = (
        f'<span class="key"><i style="background:{colour}"></i>action {number}</span>'
        for number, colour in enumerate(action_colours(count))
    )
    return " ".join(swatches)


def _guarantee_table(rows: Sequence[Row]) -> str:
    seen: dict[tuple[str, str], Row] = {}
    for row in rows:
        seen.setdefault((name_of(row.facts), pair_of(row.guarantee)), row)
    private = [row for (_, promise), row in seen.items() if promise != "none"]
    places, names = _place_and_name(private)
    body = "".join(
        _cells(
            *name,
            ("", row.facts["trust"]),
            ("", escape(pair_of(row.guarantee))),
            ("w", escape(f"{row.guarantee['unit']}; {row.guarantee['neighbours']}")),
            ("g", escape("; ".join(row.guarantee["assumptions"]) or "none")),
        )
        for name, row in zip(names, private, strict=True)
    )
    head = (
        f"<tr>{places}<th>trust</th><th>guarantee</th><th>unit; neighbours</th>"
        "<th>assumes</th></tr>"
    )
    return f'<div class="scroll"><table class="stack">{head}{body}</table></div>'


def _noise_table(rows: Sequence[Row]) -> str:
    private = [row for row in rows if row.guarantee["notion"] != "none"]
    if not private:
        return "<p>No run was private: there is no noise.</p>"
    places, names = _place_and_name(private)
    head = (
        f"<tr>{places}<th>trust</th><th>guarantee</th><th>mechanism</th>"
        '<th class="n">K</th><th>noise on one counter (sd, in users)</th></tr>'
    )
    body = "".join(
        _cells(
            *name,
            ("", row.facts["trust"]),
            ("", escape(pair_of(row.guarantee))),
            ("", escape(row.facts["mechanism"])),
            ("n", f"{row.facts['episodes']:,}"),
            ("w", escape(noise_of(row.noise))),
        )
        for name, row in zip(names, private, strict=True)
    )
    return (
        f'<div class="scroll"><table class="stack">{head}{body}</table></div>'
        "<p><small>As each run stated it: "
        "of one release of all K users (batches), or of the last release (streams).</small></p>"
    )


def _reproduce(results: Results) -> str:
    experiment = results.experiment
    command = f"discreet run {results.path / 'spec.toml'} --output {results.path}-again"
    return (
        f"<pre>{escape(command)}</pre><p>Made by discreet {escape(results.version)}. "
        f"Seed {experiment.seed}, {experiment.runs} runs;"
        " results do not depend on the number of workers. Every number above is computed from "
        "<code>results.parquet</code> in this folder; versions are in "
        "<code>environment.json</code>.</p>"
        "<footer>Actions are relabelled at random in every run and shown in their own names."
        "</footer>"
    )
