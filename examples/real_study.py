"""A study with real users: ask for a policy, collect private reports, tell, survive a restart.

This is a rehearsal: the users are simulated and their messages are mixed by a seeded shuffler. For
real users leave out ``sampler`` and ``seed``; devices always draw from the operating system.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

import discreet
from discreet import device
from discreet.mdp.simulation import sample_trajectories
from discreet.privacy.mechanisms.bits import shuffle
from discreet.privacy.sampling.samplers import SimulationSampler

world = discreet.make("RiverSwim", states=3, horizon=3, relabel=0)  # unknown to the study
file = Path(tempfile.mkdtemp()) / "study.db"
study = discreet.start_study(
    file,
    learner="flow-ucb",
    trust=discreet.Shuffle(epsilon=2, delta=1e-6),
    states=3,
    actions=2,
    horizon=3,
    start_states=[0],
    episodes=2_000,
    sampler="simulation",
    seed=0,
)
print(f"guaranteed to every user: {study.guarantee}")

rng = np.random.default_rng(1)
noise = SimulationSampler(rng)
while not study.finished:
    policy, count, token = study.ask(), study.batch_size, study.token
    encoder = study.encoder()
    settings = json.dumps(encoder.to_dict())  # what is sent to every device

    # on the devices: each user acts, encodes, and sends one data cell among noise cells per class
    phone = device.load(json.loads(settings))  # the standard library alone
    lives = sample_trajectories(world, policy, count, rng)
    reports = [
        phone.encode({"states": states, "actions": actions, "rewards": rewards})
        for states, actions, rewards in zip(
            lives.states.tolist(), lives.actions.tolist(), lives.rewards.tolist(), strict=True
        )
    ]
    # at the shuffler: all messages of a class are mixed, over all users
    mixed = shuffle(np.concatenate([encoder.rows(report) for report in reports]), noise)

    # at the analyst: count the batch, all of it, once
    first = study.users
    study.tell(mixed, users=[f"user-{first + i}" for i in range(count)], token=token)
    print(f"batch {study.batches}: {count} users, {len(mixed):,} messages")
    study = discreet.open_study(file)  # a restart between any two batches changes nothing

print(
    f"{study.users} users in {study.batches} batches, in one file of {file.stat().st_size:,} bytes"
)
