"""Options shared by all tests."""

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--minimum-tests",
        type=int,
        default=0,
        help="fail if fewer tests are collected: a guard against tests that silently vanish",
    )


def pytest_collection_finish(session):
    minimum = session.config.getoption("--minimum-tests")
    if minimum and len(session.items) < minimum:
        pytest.exit(f"collected {len(session.items)} tests, expected at least {minimum}", 1)
