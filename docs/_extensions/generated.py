"""Reference pages that the package writes itself: commands and settings.

A page says where with a comment of its own line, ``<!-- generated: commands -->``.
"""

import inspect
import re
from dataclasses import MISSING, fields

PLACE = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)


def cell(text):
    """Text for one cell of a table."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def leaves(command, words):
    """Every command below a group, with its words."""
    if not hasattr(command, "commands"):
        yield " ".join(words), command
        return
    context = command.make_context(words[-1], [], resilient_parsing=True)
    for name in command.list_commands(context):
        yield from leaves(command.get_command(context, name), [*words, name])


def commands():
    """A section per command: what it does, its arguments and options."""
    import typer

    from discreet.cli.app import make_app

    for words, command in leaves(typer.main.get_command(make_app()), ["discreet"]):
        context = command.make_context(words, [], resilient_parsing=True)
        yield f"## `{words}`\n\n{command.help or ''}\n"
        yield f"```text\n{' '.join(command.get_usage(context).split())}\n```\n"
        rows = []
        for item in command.params:
            if getattr(item, "hidden", False) or item.name == "help":
                continue
            name = ", ".join(item.opts + item.secondary_opts)
            if item.param_type_name == "argument":
                name = item.name.upper()
            usual = item.default
            shown = usual not in (None, False, "", ()) and not callable(usual)
            said = [cell(getattr(item, "help", "") or ""), f"`{usual}`" if shown else ""]
            rows.append([f"`{name}`", *said])
        yield table(["argument or option", "meaning", "default"], rows)


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

    for name in learner_names():
        spec = get_learner(name)
        kind = spec.settings_type
        if kind is None:
            continue
        yield f"### {name}\n"
        usual = {item.name: item.default for item in fields(kind)}
        practical, known = {**usual, **kind.PRACTICAL}, meanings(kind)
        rows = []
        for field, value in usual.items():
            if field != "constants":
                values = dict.fromkeys((shown(practical[field]), shown(value)))
                said = f"`{'`; printed: `'.join(values)}`"
                rows.append([f"`{field}`", known.get(field, ""), said])
        yield table(["setting", "meaning", "default"], rows) if rows else "None.\n"


def shown(value):
    return "required" if value is MISSING else repr(value)


WRITERS = {"commands": commands, "settings": settings}


def fill(app, docname, source):
    source[0] = PLACE.sub(lambda found: "\n".join(WRITERS[found[1]]()), source[0])


def setup(app):
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
