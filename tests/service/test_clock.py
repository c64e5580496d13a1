"""Clocks: the machine's is in seconds since 1970, a manual one moves when it is told to."""

import time

from discreet.service.configs import SystemClock
from helpers.clocks import ManualClock


def test_the_system_clock_counts_seconds_since_1970():
    before = time.time()
    assert before <= SystemClock().now() <= time.time()


def test_a_manual_clock_stands_still_and_moves_both_ways():
    clock = ManualClock(100.0)
    assert clock.now() == clock.now() == 100.0
    clock.move(50)
    clock.move(-70.5)
    assert clock.now() == 79.5
