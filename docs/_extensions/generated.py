"""Reference pages that the package writes itself: commands and settings.

A page says where with a comment of its own line, ``<!-- generated: commands -->``.
"""

import inspect
import re
from dataclasses import MISSING, fields

PLACE = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
GROUPS = {
    "Find and run": ("list", "run", "plot", "report", "cite"),
    "Guarantees": ("calibrate", "certify", "audit"),
    "Tables and logged episodes": ("design", "plan", "fit"),
    "Studies": ("study",),
    "Checks": ("check", "bench"),
    "The service": ("service",),
}
EVERYWHERE = {"help", "json", "imports", "as_json"}
"""Options of every command: the page says them once."""
KINDS = {"float": "NUMBER", "int": "INTEGER", "str": "TEXT", "path": "FILE"}
SCHEDULES = {
    "batch": "Batch learners",
    "continual": "Continual learners",
    "run": "Learners for adversarial losses",
}


def cell(text):
    """Text for one cell of a table."""
    plain = " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")
    return plain.replace("``", "`")


def sentence(text):
    """The same, with a capital letter and a full stop."""
    plain = cell(text)
    return plain and plain[0].upper() + plain[1:]


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


# ------------------------------------------------------------------------------------- commands


def leaves(command, words):
    """Every command below a group, with its words."""
    if not hasattr(command, "commands"):
        yield " ".join(words), command
        return
    context = command.make_context(words[-1], [], resilient_parsing=True)
    for name in command.list_commands(context):
        yield from leaves(command.get_command(context, name), [*words, name])


def grouped():
    """The words of every group of commands, and its commands."""
    import typer

    from discreet.cli.app import make_app

    known = dict(leaves(typer.main.get_command(make_app()), ["discreet"]))
    for title, names in GROUPS.items():
        chosen = {w: c for w, c in known.items() if w.split()[1] in names}
        yield title, {word: known.pop(word) for word in chosen}
    if known:
        yield "Others", known


def commands():
    """A section per group and command: what it does, its arguments and options."""
    for title, members in grouped():
        yield f"## {title}\n"
        for words, command in members.items():
            context = command.make_context(words, [], resilient_parsing=True)
            usage = " ".join(command.get_usage(context).split()).removeprefix("Usage: ")
            yield f"### {words}\n\n{command.help or ''}\n"
            yield f"```text\n{usage}\n```\n"
            items = [item for item in command.params if not said_once(item)]
            items.sort(key=lambda item: item.param_type_name != "argument")
            rows = [[name_of(item, context), said(item.help), usual_of(item)] for item in items]
            head = ["argument or option", "meaning", "default"]
            if not any(usual for *_, usual in rows):
                head, rows = head[:2], [row[:2] for row in rows]
            if rows:
                yield table(head, rows)


def said_once(item):
    """Whether a parameter is hidden, or one that every command has."""
    return item.name in EVERYWHERE or getattr(item, "hidden", False)


def said(text):
    """The help of an option, with the names of options as code."""
    return re.sub(r"(?<![`\w-])--[a-z][a-z-]*(?![^`]*`[^`]*$)", r"`\g<0>`", cell(text or ""))


def name_of(item, context):
    """`--option VALUE`, or the name of an argument."""
    if item.param_type_name == "argument":
        return f"`{item.name.upper()}`"
    name = " / ".join(item.opts + item.secondary_opts)
    if item.is_flag:
        return f"`{name}`"
    kind = item.display_type(context).strip("<>").removeprefix("list[").rstrip("]")
    return f"`{name} {KINDS.get(kind, kind.upper())}`"


def usual_of(item):
    """The default of an option, as a person would type it."""
    usual = item.default
    if usual in (None, "", ()) or callable(usual):
        return ""
    if isinstance(usual, bool):
        return "on" if usual else ""
    many = usual if isinstance(usual, list | tuple) else [usual]
    return ", ".join(f"`{one:g}`" if isinstance(one, float) else f"`{one}`" for one in many)


# ------------------------------------------------------------------------------------- settings


MEANING = re.compile(r"^    (\w+): ((?:.|\n     )+)", re.MULTILINE)


def meanings(kind):
    """What the docstrings of a class and of its bases say of their attributes."""
    known = {}
    for base in reversed(kind.__mro__):
        text = inspect.cleandoc(base.__doc__ or "")
        known |= {name: cell(said) for name, said in MEANING.findall(text)}
    return known


def settings():
    """A table per learner: its settings, with both sets of constants."""
    from discreet.learners.registry import get_learner, learner_names

    for schedule, title in SCHEDULES.items():
        yield f"## {title}\n"
        for name in learner_names():
            spec = get_learner(name)
            if ("run" if spec.run is not None else spec.schedule) == schedule:
                page = {"pe": "sdp-pe"}.get(name, name)
                yield f"### {name}\n\n[What it does](../understand/learners/{page}.md).\n"
                yield settings_table(spec.settings_type)


def settings_table(kind):
    """The settings of one learner; the printed constants where a paper has others."""
    if kind is None:
        return "It has no settings.\n"
    usual = {item.name: item.default for item in fields(kind) if item.name != "constants"}
    practical, known = {**usual, **kind.PRACTICAL}, meanings(kind)
    printed = any(practical[name] != value for name, value in usual.items())
    rows = []
    for name, value in usual.items():
        row = [f"`{name}`", sentence(known.get(name, "")), f"`{shown(practical[name])}`"]
        other = practical[name] != value
        rows.append([*row, f"`{shown(value)}`" if other else ""] if printed else row)
    head = ["setting", "meaning", "default", *(["printed"] if printed else [])]
    return table(head, rows) if rows else "It has no settings.\n"


def shown(value):
    """A value as it is written in Python."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return "required" if value is MISSING else repr(value).replace("'", '"')


# ---------------------------------------------------------------------------------- experiments


def experiments():
    """A table per kind of table in an experiment file."""
    from discreet.lab import spec

    rows = {"name": spec.Experiment, "[[environments]]": spec.EnvironmentRow}
    rows |= {"[[learners]]": spec.LearnerRow, "[[trusts]]": spec.TrustRow}
    tables = {"environments", "learners", "trusts", "variants"}
    for place, kind in rows.items():
        at_top = place == "name"
        yield "At the top:\n" if at_top else f"In each `{place}`:\n"
        known = meanings(kind)
        yield table(
            ["key", "meaning", "default"],
            [
                [f"`{item.name}`", sentence(known.get(item.name, "")), empty_or_shown(item)]
                for item in fields(kind)
                if not (at_top and item.name in tables)
            ],
        )
    yield "`[variants.quick]` holds the `runs` and `episodes` that `--quick` takes instead.\n"


def empty_or_shown(item):
    """The default of a key in TOML."""
    if item.default_factory is not MISSING or item.default in ("", ()):
        return ""
    if item.default is MISSING:
        return "required"
    value = list(item.default) if isinstance(item.default, tuple) else item.default
    text = str(value).lower() if isinstance(value, bool) else shown(value)
    return f"`{text}`"


WRITERS = {"commands": commands, "settings": settings, "experiments": experiments}


def fill(app, docname, source):
    source[0] = PLACE.sub(lambda found: "\n".join(WRITERS[found[1]]()), source[0])


def setup(app):
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
