"""Options shared by all tests."""

import importlib.util
import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

if os.environ.get("DISCREET_TESTS") == "core":
    from helpers.core import hide_extras

    hide_extras()

# Programs, not tests. Without an extra (core tests) there is nothing to collect in its helpers.
collect_ignore_glob = ["soak/*", "recorded/*"]
if not importlib.util.find_spec("cryptography"):
    collect_ignore_glob += ["helpers/nginx.py", "helpers/service*"]

# Workers are told the width of the terminal that started them; piped output has none.
os.environ.pop("COLUMNS", None)

# No test is timed: the first example of many pays for a compiled kernel, and a busy machine draws
# slowly. Examples are the same in every run, so that a failure is one for everybody.
settings.register_profile(
    "discreet",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("discreet")
# Hypothesis mixes the constants of our own modules into its examples: of those that happen to be
# loaded, which depends on the tests that ran before in the same process. It shall know none.
providers.is_local_module_file = lambda path: False


@pytest.fixture(scope="session")
def long_run(request):
    """Whether the long forms are wanted."""
    return request.config.getoption("--long")


@pytest.fixture
def fixed_release(tmp_path):
    """Fail if more than the release tells two neighbours apart: `helpers.fixed_release`."""
    from helpers.fixed_release import unchanged

    return lambda prepare, act, pairs, **options: unchanged(
        prepare, act, pairs, tmp_path / "place", **options
    )


def pytest_addoption(parser):
    parser.addoption(
        "--minimum-tests",
        type=int,
        default=0,
        help="fail if fewer tests ran: a guard against tests that silently vanish",
    )
    parser.addoption(
        "--long",
        action="store_true",
        help="the long forms of some tests, a Ray cluster among them (make soak)",
    )


@pytest.hookimpl(tryfirst=True)  # before -m looks at markers
def pytest_collection_modifyitems(items):
    from helpers.needs import mark

    for item in items:
        if isinstance(item, pytest.Function):
            mark(item)


def pytest_sessionfinish(session):
    minimum = session.config.getoption("--minimum-tests")
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not minimum or reporter is None:  # a worker of a parallel run reports to its controller
        return
    ran = sum(len(reporter.stats.get(kind, [])) for kind in ("passed", "failed", "skipped"))
    usual = int(0.98 * ran)
    if ran < minimum:
        reporter.write_line(
            f"{ran:,} tests ran, expected at least {minimum:,} (--minimum-tests in the Makefile, "
            f"98% of their number). If they went with what they tested, make it {usual}.",
            red=True,
        )
        session.exitstatus = 1
    elif minimum < 0.98 * usual:
        reporter.write_line(f"{ran:,} tests ran: --minimum-tests may be {usual}, not {minimum}.")
