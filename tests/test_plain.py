"""Plain values: their types load without NumPy, and so does what only speaks of them."""

import pytest

from helpers.loading import loaded

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    "module", ["discreet._types", "discreet._sources", "discreet.cli.study._shared"]
)
def test_no_arrays_are_loaded_for_words(module):
    assert loaded(f"import {module}", ["numpy"]) == []
