"""Shipped experiments by name, without reading them whole."""

import pytest

from discreet.lab import shipped
from discreet.lab.spec import load_experiment


@pytest.mark.core
def test_names_and_titles():
    assert "price-of-trust" in shipped.experiment_names()
    assert list(shipped.titles()) == shipped.experiment_names()
    assert all(shipped.titles().values())


def test_titles_are_those_of_the_experiments():
    for name, title in shipped.titles().items():
        assert load_experiment(name).title == title
