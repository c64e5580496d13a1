"""The Ray engine when a cluster, a worker or the package is missing."""

import builtins
from types import SimpleNamespace

import pytest

from discreet.errors import MissingExtraError
from discreet.lab.engines import _outcomes, get_engine
from helpers.experiments import without
from helpers.tasks import WORK, outcome_of


class Ray:
    """A cluster on which the last task fails."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def remote(self, **_):
        return lambda function: SimpleNamespace(remote=WORK.index)

    def wait(self, pending, num_returns):
        return pending[:num_returns], pending[num_returns:]

    def get(self, number):
        if number == 2:
            raise RuntimeError("out of memory\nand a long trace")
        return outcome_of(WORK[number])


def test_a_failing_ray_worker_is_one_failed_run():
    found = {o.task.run: o.error for o in _outcomes(Ray(), WORK)}
    assert found == {0: None, 1: None, 2: "its Ray worker failed: out of memory"}


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(builtins, "__import__", without("ray"))
    with pytest.raises(MissingExtraError, match="ray"):
        list(get_engine("ray")(WORK, jobs=1))
