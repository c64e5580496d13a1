"""A study with real users: ask for a policy, collect private reports, tell, survive a restart.

This is a rehearsal: the users are simulated and the noise is seeded. For real users leave out
``sampler`` and ``seed``; then the noise comes from the operating system (extra ``secure``).
"""

import json
import tempfile
from pathlib import Path

import numpy as np

import discreet
from discreet.mdp.simulation import sample_trajectories
from discreet.privacy.mechanisms.registry import load_encoder
from discreet.privacy.mechanisms.shuffle import shuffle
from discreet.privacy.sampling.samplers import SimulationSampler

world = discreet.make("RiverSwim", states=3, horizon=3, relabel=0)  # unknown to the study
file = Path(tempfile.mkdtemp()) / "study.db"
study = discreet.start(
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
print(f"promised to every user: {study.guarantee}")

rng = np.random.default_rng(1)
noise = SimulationSampler(rng)
while not study.finished:
    policy, count, token = study.ask(), study.batch_size, study.token
    settings = json.dumps(study.encoder().to_dict())  # what is sent to every device

    # on the devices: each user acts, encodes, and sends nothing but single noisy bits
    encoder = load_encoder(json.loads(settings))
    lives = sample_trajectories(world, policy, count, rng)
    reports = [
        encoder.encode(lives.states[i], lives.actions[i], lives.rewards[i], noise)
        for i in range(count)
    ]
    # at the shuffler: all bits of all users are mixed
    mixed = shuffle(np.concatenate(reports), noise)

    # at the analyst: count the batch, all of it, once
    first = study.users
    study.tell(mixed, users=[f"user-{first + i}" for i in range(count)], token=token)
    print(f"batch {study.batches}: {count} users, {len(mixed):,} bits")
    study = discreet.resume(file)  # a restart between any two batches changes nothing

print(
    f"{study.users} users in {study.batches} batches, in one file of {file.stat().st_size:,} bytes"
)
