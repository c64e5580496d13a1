"""Options shared by all tests."""


def pytest_addoption(parser):
    parser.addoption(
        "--minimum-tests",
        type=int,
        default=0,
        help="fail if fewer tests ran: a guard against tests that silently vanish",
    )


def pytest_sessionfinish(session):
    minimum = session.config.getoption("--minimum-tests")
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not minimum or reporter is None:  # a worker of a parallel run reports to its controller
        return
    ran = sum(len(reporter.stats.get(kind, [])) for kind in ("passed", "failed", "skipped"))
    if ran < minimum:
        reporter.write_line(f"{ran} tests ran, expected at least {minimum}", red=True)
        session.exitstatus = 1
