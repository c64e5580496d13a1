"""What the tests of `discreet study` share: a design, a table, the study behind them."""

import csv

import numpy as np

import discreet
from discreet.mdp.simulation import sample_trajectories
from helpers.studies import RIVER

DESIGN = """
episodes = 400
states = ["ill", "better", "well"]
actions = ["wait", "treat"]
steps = [1, 2, 3, 4]
start_states = ["ill"]

[trust]
model = "central"
epsilon = 1.0
delta = 1e-6

[settings]
mixing = false

[table]
columns = {user = "patient", step = "visit"}
reward_range = [0, 10]
"""


def write_table(path, study, seed=0, users=None, first=0):
    """What a clinic exports: users of the pending batch, who follow its policy."""
    count = users or study.batch_size
    week = sample_trajectories(RIVER, study.ask(), count, np.random.default_rng(seed))
    names = study.names
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["patient", "visit", "state", "action", "reward"])
        for i in range(count):
            for h, step in enumerate(names.steps):
                state = names.states[week.states[i, h]]
                action = names.actions[week.actions[i, h]]
                reward = 10 * week.rewards[i, h]
                rows.writerow([f"patient {first + i}", step, state, action, reward])
    return week


def resumed(place):
    return discreet.open_study(place / "study.db")
