"""One self-contained HTML page: figures, tables, guarantees, how to repeat it.

The page is ``templates/report.html`` with ``templates/report.css``; here is what they show.
"""

import csv
import io
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidInputError, MissingExtraError, UnknownNameError
from discreet.lab.plots import PLOTS, action_colours, figure, plot_policy, pyplot
from discreet.lab.results import Results, write_file
from discreet.lab.style import (
    NOTIONS,
    name_of,
    noise_of,
    pair_of,
    trust_words,
)
from discreet.lab.summary import (
    Row,
    beside_random,
    meanings,
    measured_by,
    summarise,
    warnings_of,
    winners,
)

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from matplotlib.figure import Figure

_POLICIES = 6  # pictures of policies
_KEY = 8  # actions with a colour of their own


FORMATS = ("svg", "png", "pdf", "pgf")
_NARROWEST, _WIDEST = 2.0, 20.0  # inches
_EMBEDDED = {"pdf.fonttype": 42, "pgf.rcfonts": False}  # fonts that journals take


def write_figures(
    results: Results,
    formats: Sequence[str] = ("svg", "png"),
    *,
    width: float | None = None,
    titled: bool = True,
) -> list[Path]:
    """All figures of the experiment as files in the folder ``figures``.

    ``width`` in inches and no title are for papers: 3.3 is a column.
    """
    for name in formats:
        if name not in FORMATS:
            raise UnknownNameError("format of pictures", name, FORMATS)
    if "pgf" in formats and not (shutil.which("xelatex") or shutil.which("pdflatex")):
        raise InvalidInputError(
            "Pictures as PGF need LaTeX, which measures their text, and there is no xelatex or "
            "pdflatex; install one, or take --format pdf."
        )
    if width is not None and not _NARROWEST <= width <= _WIDEST:
        raise InvalidInputError(
            f"Expected a width of {_NARROWEST} to {_WIDEST} inches (a column has 3.3), got {width}."
        )
    size = {} if width is None else {"width": width}
    folder = results.path / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, environment in _figures(results):
        drawn = figure(results, name, environment, titled=titled, **size)
        for kind in formats:
            path = folder / f"{name}-{_slug(environment)}.{kind}"
            if kind == "svg":
                write_file(path, svg_of(drawn).encode())
            else:
                with pyplot().rc_context(_EMBEDDED):
                    drawn.savefig(path, dpi=150)
            paths.append(path)
        pyplot().close(drawn)
    return paths


def write_tables(results: Results, formats: Sequence[str]) -> list[Path]:
    """The table of final regrets as ``table.csv`` or, for LaTeX with booktabs, ``table.tex``."""
    every = summarise(results)
    columns: dict[str, Callable[[Row], Any]] = {
        "environment": lambda row: row.facts["environment"],
        "learner": lambda row: name_of(row.facts),
        "guarantee": lambda row: pair_of(row.facts["guarantee"]),
        "episodes": lambda row: row.facts["episodes"],
        "runs": lambda row: row.runs,
        measured_by(every): lambda row: row.mean,
        "standard error": lambda row: row.error,
        beside_random(every): lambda row: row.share if row.measure == "regret" else row.uniform,
    }
    rows = [[of(row) for of in columns.values()] for row in every]
    texts = {}
    if "csv" in formats:
        written = io.StringIO()
        filled = [["" if str(cell) == "nan" else cell for cell in cells] for cells in rows]
        csv.writer(written, lineterminator="\n").writerows([list(columns), *filled])
        texts["csv"] = written.getvalue()
    if "tex" in formats:
        rounded = [
            [
                *map(_tex, cells[:3]),
                *(f"{n:,.0f}" for n in cells[3:5]),
                *map(row.text, cells[5:7]),
                _tex(row.share_text),
            ]
            for row, cells in zip(every, rows, strict=True)
        ]
        body = [f"{' & '.join(cells)} \\\\" for cells in [list(columns), *rounded]]
        head = [r"\begin{tabular}{lllrrrrr}", r"\toprule", body[0], r"\midrule", *body[1:]]
        texts["tex"] = "\n".join([*head, r"\bottomrule", r"\end{tabular}", ""])
    paths = []
    for kind, text in texts.items():
        paths.append(results.path / f"table.{kind}")
        write_file(paths[-1], text.encode())
    return paths


def _tex(text: object) -> str:
    """Letters that LaTeX reads as something else, escaped."""
    plain = re.sub(r"([&%$#_{}])", r"\\\1", str(text))
    return plain.replace("ε", r"$\varepsilon$").replace("δ", r"$\delta$")


def write_report(results: Results) -> Path:
    """Write ``report.html`` into the result folder and return its path."""
    path = results.path / "report.html"
    write_file(path, render(results).encode())
    return path


def render(results: Results) -> str:
    """The page as text."""
    templates, rows = _templates(), summarise(results)
    private = [row for row in rows if row.facts["guarantee"]["notion"] != "none"]
    kinds = [(name_of(row.facts), pair_of(row.facts["guarantee"])) for row in private]
    different = dict(zip(reversed(kinds), reversed(private), strict=True))
    policies, colours = _policies(results)
    return templates.get_template("report.html").render(
        experiment=results.experiment,
        version=results.version,
        command=f"discreet run {results.path / 'spec.toml'} --output {results.path}-again",
        words={
            "measures": meanings(rows),
            "notions": NOTIONS,
            "measure": measured_by(rows),
            "random": beside_random(rows),
        },
        warnings=warnings_of(results),
        figures=[
            {
                "svg": _inline(
                    figure(results, name, environment),
                    _slug(f"{name}-{environment}"),
                    f"{PLOTS[name].title}, {environment}",
                ),
                "caption": PLOTS[name].caption,
            }
            for name, environment in _figures(results)
        ],
        rows=_table(rows),
        verdicts=winners(results),
        policies=policies,
        colours=colours,
        guarantees=_table(reversed(different.values())),
        private=_table(private),
    )


def _templates() -> "Environment":
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("jinja2", "lab") from None
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters |= {
        "noise": noise_of,
        "pair": pair_of,
        "prose": _prose,
        "thousands": lambda number: f"{number:,.0f}",
    }
    return made


def _prose(text: str) -> "Markup":
    """Text for people: `code` between backticks, ``ε = 1`` on one line.

    >>> str(_prose("a < b at ε = 1, see `plan`"))
    'a &lt; b at ε&nbsp;=&nbsp;1, see <code>plan</code>'
    """
    from markupsafe import Markup, escape

    said = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(said.replace(" = ", "&nbsp;=&nbsp;"))


def _table(rows: Iterable[Row]) -> dict[str, Any]:
    """Rows, and the columns that tell them apart: environment and learner where they differ."""
    every = list(rows)
    found = {
        "environment": [row.facts["environment"] for row in every],
        "learner": [name_of(row.facts) for row in every],
    }
    return {"all": every, "apart": {k: values for k, values in found.items() if len({*values}) > 1}}


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _figures(results: Results) -> list[tuple[str, str]]:
    environments = [e.title for e in results.experiment.environments]
    played = {s.facts["environment"] for s in results.series() if s.returns is not None}
    regrets = [name for name in results.experiment.plots if name != "return"]
    return [(n, env) for env in environments for n in (["return"] if env in played else regrets)]


def svg_of(drawn: "Figure") -> str:
    """A matplotlib figure as inline SVG with identifiers that do not depend on the moment."""
    plt, stream = pyplot(), io.StringIO()
    with plt.rc_context({"svg.hashsalt": "discreet", "svg.fonttype": "none"}):
        drawn.savefig(stream, format="svg", metadata={"Date": None})
    plt.close(drawn)
    text = stream.getvalue()
    return text[text.index("<svg") :]


def _inline(drawn: "Figure", prefix: str, label: str) -> "Markup":
    """A picture of the page: SVGs share one document, so their identifiers must not meet."""
    from markupsafe import Markup, escape

    image = re.sub(r'\bid="', f'id="{prefix}-', svg_of(drawn))
    image = re.sub(r'(xlink:href|href)="#', rf'\1="#{prefix}-', image)
    image = image.replace("url(#", f"url(#{prefix}-")
    return Markup(image.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1))


def _policies(results: Results) -> tuple[list[dict[str, Any]], list[str]]:
    """Pictures of some policies of the longest runs, and the colours of their actions."""
    longest = max((entry["episodes"] for entry in results.guarantees), default=0)
    found = [
        (entry, actions)
        for entry in results.guarantees
        if (actions := results.policies.get(f"{entry['cell']}-0000")) is not None
        and entry["episodes"] == longest
    ][:_POLICIES]
    count = max(
        (action + 1 for _, actions in found for row in actions for action in row), default=0
    )
    pictures = []
    for entry, actions in found:
        drawn, axes = pyplot().subplots(figsize=(3.4, 2.4), layout="constrained")
        plot_policy(axes, actions, count=count)
        who = f"{name_of(entry)}, {trust_words(entry)}"
        where = f"{entry['environment']}, K = {entry['episodes']:,}"
        image = _inline(drawn, f"policy-{entry['cell']}", f"{who}, {where}")
        pictures.append({"svg": image, "who": who, "where": where})
    return pictures, action_colours(count) if count <= _KEY else []
