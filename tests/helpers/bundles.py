"""Three bundles of one task each, and outcomes that no worker had to work for."""

from discreet.lab.tasks import Outcome, bundles, tasks_of
from helpers.experiments import experiment

WORK = bundles(tasks_of(experiment("ldp-obi", runs=3)))


def outcome_of(bundle):
    return [Outcome(task, 0.1, record={}) for task in bundle]
