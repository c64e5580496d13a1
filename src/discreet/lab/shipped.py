"""The experiments that come with discreet, as text: names and titles without reading them whole."""

import tomllib
from importlib import resources


def experiment_names() -> list[str]:
    """The shipped experiments."""
    folder = resources.files("discreet.lab") / "experiments"
    if not folder.is_dir():
        return []
    return sorted(
        p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml")
    )


def text(name: str) -> str:
    """The file of a shipped experiment."""
    return (resources.files("discreet.lab") / "experiments" / f"{name}.toml").read_text("utf-8")


def titles() -> dict[str, str]:
    return {name: str(tomllib.loads(text(name))["title"]) for name in experiment_names()}
