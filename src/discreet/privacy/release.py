"""Moved; this forwards until every import follows."""

import importlib
from typing import Any

from discreet import _types


def __getattr__(name: str) -> Any:
    homes = [
        importlib.import_module(f"discreet.privacy.{m}")
        for m in ["statistics", "plans", "streams.release", "mechanisms.registry"]
    ]
    for home in (*homes, _types):
        if hasattr(home, name):
            return getattr(home, name)
    raise AttributeError(name)
