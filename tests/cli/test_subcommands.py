"""Commands with commands of their own: in the order of the help, one module each."""

import importlib
import pkgutil

import pytest

from discreet.cli import service, study
from discreet.cli._subcommands import subcommands


@pytest.mark.parametrize("package", [service, study], ids=["service", "study"])
def test_every_module_of_a_package_is_a_command_of_its_name(package):
    named = tuple(info.name for info in package.app.registered_commands)
    modules = {info.name for info in pkgutil.iter_modules(package.__path__) if info.name[0] != "_"}
    assert set(named) == modules
    fresh = subcommands(package.__name__, "", named)  # the other is dressed when it is called
    for name, info in zip(named, fresh.registered_commands, strict=True):
        assert info.callback is importlib.import_module(f"{package.__name__}.{name}").command


def test_the_help_has_the_sentence_and_the_order_that_were_asked_for():
    made = subcommands("discreet.cli.study", "Two of them.", ("tell", "ask"))
    assert made.info.help == "Two of them."
    assert [info.name for info in made.registered_commands] == ["tell", "ask"]


def test_a_name_without_a_module_is_an_error():
    with pytest.raises(ModuleNotFoundError, match=r"discreet\.cli\.study\.forget"):
        subcommands("discreet.cli.study", "", ("forget",))
