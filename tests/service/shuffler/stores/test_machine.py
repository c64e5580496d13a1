"""Hypothesis against both stores: announce, submit, replay, stale, race, expire, seal, kill."""

import itertools

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from helpers.service_machine import StoreMachine

_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large]


def run(machine, examples, steps=30):
    chosen = settings(
        max_examples=examples, stateful_step_count=steps, suppress_health_check=_CHECKS
    )
    run_state_machine_as_test(machine, settings=chosen)


def test_sqlite_does_what_the_model_does(tmp_path, long_run):
    numbers = itertools.count()

    class Machine(StoreMachine):
        def new_place(self):
            return tmp_path / f"{next(numbers)}.db"

    run(Machine, 400 if long_run else 12)


def test_postgres_does_what_the_model_does_with_two_processes(postgres_server, long_run):
    class Machine(StoreMachine):
        processes = 2

        def new_place(self):
            return postgres_server.database()

    run(Machine, 200 if long_run else 4)
