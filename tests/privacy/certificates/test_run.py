"""`certify` takes plans and says so."""

import pytest

pytest.importorskip("flint")

from discreet import Central
from discreet.errors import InvalidInputError
from discreet.privacy import certify


@pytest.mark.parametrize("thing", [Central(1), Central, "central/gaussian", None])
def test_what_is_no_plan_is_one_sentence(thing):
    with pytest.raises(InvalidInputError, match=r"Expected a calibrated plan, got .*\.calibrate\("):
        certify(thing)
