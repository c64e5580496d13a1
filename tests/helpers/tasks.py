"""Three tasks, and outcomes that no worker had to work for."""

from discreet.lab.tasks import Outcome, tasks_of
from helpers.experiments import experiment

WORK = tasks_of(experiment("ldp-obi", runs=3))


def outcome_of(task):
    return Outcome(task, 0.1, record={})
