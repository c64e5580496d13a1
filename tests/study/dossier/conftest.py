"""One small study with its dossier's material, made once."""

import numpy as np
import pytest

import discreet
from discreet.mdp.simulation import sample_trajectories
from discreet.study.dossier.page import gather
from helpers.dossiers import small


@pytest.fixture(scope="session")
def material(tmp_path_factory):
    """A rehearsal with one batch."""
    study = small(tmp_path_factory.mktemp("dossier") / "study.db")
    river = discreet.make("RiverSwim", states=3, horizon=2, relabel=1)
    episodes = sample_trajectories(river, study.ask(), study.batch_size, np.random.default_rng(0))
    study.tell(episodes, users=[f"user-{i}" for i in range(len(episodes))])
    return gather(study)
