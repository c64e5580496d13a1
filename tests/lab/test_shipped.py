"""Shipped experiments by name, without reading them whole."""

import pytest

from discreet.lab import spec
from discreet.lab.spec import load_experiment


@pytest.mark.core
def test_names_and_titles():
    assert "price-of-trust" in spec.experiment_names()
    assert list(spec.titles()) == spec.experiment_names()
    assert all(spec.titles().values())


def test_titles_are_those_of_the_experiments():
    for name, title in spec.titles().items():
        assert load_experiment(name).title == title
