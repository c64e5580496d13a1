"""What leaves a device: every report with its exact probability, from the encoder itself.

Nothing here knows a mechanism's formulas. The encoder runs once for every outcome of its draws; the
probabilities are those that it asks its sampler for.
"""

import itertools
import math

import numpy as np
import pytest

from discreet.mdp.shape import Shape
from discreet.privacy import Local, SimulationSampler
from discreet.privacy.mechanisms._laws import BoundedLaw, GaussianLaw, LaplaceLaw

SHAPE = Shape(states=1, actions=2, horizon=2)
STILL = np.zeros(3, np.int64)
USERS = {
    "first action": (STILL, np.array([0, 0]), np.array([1.0, 1.0])),
    "second action": (STILL, np.array([1, 1]), np.array([1.0, 1.0])),
    "other rewards": (STILL, np.array([0, 0]), np.array([0.0, 0.0])),
    "one reward": (STILL, np.array([0, 0]), np.array([1.0, 0.0])),
    "other last step": (STILL, np.array([0, 1]), np.array([1.0, 1.0])),
}


class Script:
    """A sampler that follows prescribed choices and multiplies up their probabilities."""

    secure = False

    def __init__(self, choices):
        self._choices = choices
        self.taken, self.alternatives, self.probability = (), (), 1.0

    def _choose(self, probabilities):
        at = len(self.taken)
        choice = self._choices[at] if at < len(self._choices) else 0
        self.taken += (choice,)
        self.alternatives += (len(probabilities),)
        self.probability *= probabilities[choice]
        return choice

    def binomial(self, trials, probability, size):
        assert trials == 1
        bits = [self._choose((1 - probability, probability)) for _ in range(math.prod((size,)))]
        return np.array(bits, np.int64)

    def table(self, weights, size):
        chances = (weights / weights.sum()).tolist()
        return np.array([self._choose(chances) for _ in range(size)], np.int64)


def reports(encoder, user):
    """All reports of a user with their probabilities."""
    found, todo = {}, [()]
    while todo:
        choices = todo.pop()
        script = Script(choices)
        sent = encoder.encode(*user, script).tobytes()
        found[sent] = found.get(sent, 0.0) + script.probability
        for at in range(len(choices), len(script.taken)):
            todo += [(*script.taken[:at], k) for k in range(1, script.alternatives[at])]
    return found


@pytest.mark.core
@pytest.mark.parametrize("rhythm", ["batch", "stream"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize(
    ("name", "statistics"),
    [("one-step", ("transitions", "visits", "rewards")), ("randomized-response", ("visits",))],
)
def test_no_two_users_differ_by_more_than_epsilon_and_some_do(name, statistics, epsilon, rhythm):
    options = {"rhythm": rhythm, "statistics": statistics}
    if rhythm == "stream":
        options["episodes"] = 3
    plan = Local(epsilon, mechanism=name).calibrate(SHAPE, **options)
    encoder = plan.encoder(1) if rhythm == "batch" else plan.encoder()
    laws = {user: reports(encoder, episode) for user, episode in USERS.items()}
    for law in laws.values():
        assert math.fsum(law.values()) == pytest.approx(1)
    losses = {
        pair: max(math.log(laws[pair[0]][sent] / laws[pair[1]][sent]) for sent in laws[pair[0]])
        for pair in itertools.permutations(laws, 2)
    }
    assert all(set(law) == set(laws["first action"]) for law in laws.values())
    assert max(losses.values()) <= epsilon * (1 + 1e-12)
    assert losses["first action", "second action"] == pytest.approx(epsilon)


@pytest.mark.core
@pytest.mark.parametrize("name", ["laplace", "gaussian", "bounded"])
@pytest.mark.parametrize("rhythm", ["batch", "stream"])
def test_counters_of_one_report_carry_noise_of_their_own(name, rhythm):
    """Of the stated size, and none of it shared: differences between counters stay hidden."""
    delta = 0 if name == "laplace" else 1e-2
    options = {"rhythm": rhythm} | ({"episodes": 3} if rhythm == "stream" else {})
    plan = Local(1, delta, mechanism=name).calibrate(SHAPE, **options)
    encoder = plan.encoder(1) if rhythm == "batch" else plan.encoder()
    assert isinstance(encoder.law, LaplaceLaw | GaussianLaw | BoundedLaw)
    sampler, runs = SimulationSampler(np.random.default_rng(0)), 600
    sent = np.array([encoder.encode(*USERS["one reward"], sampler)[0] for _ in range(runs)])
    variance = encoder.law.variance
    assert encoder.law == getattr(plan, "law", getattr(getattr(plan, "noise", None), "law", None))
    assert sent.var() == pytest.approx(variance, rel=0.15)
    correlation = np.corrcoef(sent.T) - np.eye(sent.shape[1])
    assert np.abs(correlation).max() < 7 / math.sqrt(runs)
