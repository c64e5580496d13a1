"""Every reason for a refusal has one name, known to both languages."""

import re
from pathlib import Path

import pytest

from discreet import device
from discreet.device.errors import CODES, DeviceError

pytestmark = pytest.mark.core
HERE = Path(device.__file__).parent


def test_an_error_carries_its_name_and_one_sentence():
    error = DeviceError("wrongLength", "Expected 4 bytes.")
    assert isinstance(error, ValueError)
    assert (error.code, str(error)) == ("wrongLength", "wrongLength: Expected 4 bytes.")


@pytest.mark.parametrize("files", ["*.py", "web/*.js"])
def test_both_languages_refuse_by_the_same_names(files):
    text = "".join(path.read_text("utf-8") for path in HERE.glob(files))
    used = set(re.findall(r'DeviceError\(\s*"(\w+)"', text))
    assert used == set(CODES)
