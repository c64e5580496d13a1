"""A role as a process: what it writes down, and that both signals end it in order."""

import logging
import signal

from discreet.service import configs


def test_both_signals_end_things_in_order():
    before = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT)}
    ended = []
    try:
        configs.on_signals(lambda: ended.append(1))
        for name in before:
            signal.raise_signal(name)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
    assert ended == [1, 1]


def test_our_lines_are_shown_and_the_server_s_requests_are_not():
    names = ("discreet", "uvicorn")
    before = {name: logging.getLogger(name).level for name in names}
    try:
        configs.set_up_logging()
        assert logging.getLogger("discreet.service.shuffler.web").isEnabledFor(logging.INFO)
        assert not logging.getLogger("uvicorn.access").isEnabledFor(logging.INFO)
        assert logging.getLogger("uvicorn.error").isEnabledFor(logging.WARNING)
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
