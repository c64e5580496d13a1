"""A missing extra is named before anything else happens."""

import pytest

from discreet.cli._extras import need_extra
from discreet.errors import MissingExtraError


@pytest.mark.core
def test_what_is_missing_is_named():
    need_extra(("json", "sqlite3"), "service")
    with pytest.raises(MissingExtraError, match="no_such_package"):
        need_extra(("json", "no_such_package"), "service")
