"""Hypothesis where it is installed; without it, property tests are skipped and others run."""

import pytest

try:
    from hypothesis import given, settings
    from hypothesis import strategies as st
except ImportError:

    class _Missing:
        """Stands for any strategy and any function that makes one."""

        def __getattr__(self, name):
            return self

        def __call__(self, *arguments, **options):
            return self

        def __or__(self, other):
            return self

    st = _Missing()

    def given(*strategies, **named):
        return pytest.mark.skip(reason="hypothesis is not installed")

    def settings(**options):
        return lambda test: test


__all__ = ["given", "settings", "st"]
