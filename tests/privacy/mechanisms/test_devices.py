"""What leaves a device: every report with its exact probability, from the encoder itself.

Nothing here knows a mechanism's formulas. The encoder runs once for every outcome of its draws; the
probabilities are those that it asks its sampler for.
"""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet.device
from discreet.auditing.probes import PresetSampler
from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy import Local, SimulationSampler
from discreet.privacy.mechanisms._devices import (
    HistogramEncoder,
    SamplerDraws,
    SplitEncoder,
)
from discreet.privacy.mechanisms.base import Traffic
from discreet.privacy.mechanisms.registry import load_encoder

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
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("statistics", [("transitions", "rewards"), ("rewards",)])
def test_no_two_users_differ_by_more_than_epsilon_in_split_reports(statistics, epsilon):
    mechanism = Local(epsilon, mechanism="split").calibrate(SHAPE, statistics=statistics)
    distributions = {
        user: reports(mechanism.encoder(1), episode) for user, episode in USERS.items()
    }
    for distribution in distributions.values():
        assert math.fsum(distribution.values()) == pytest.approx(1)
        assert set(distribution) == set(distributions["first action"])
    losses = [
        max(
            math.log(distributions[one][sent] / distributions[other][sent])
            for sent in distributions[one]
        )
        for one, other in itertools.permutations(distributions, 2)
    ]
    assert max(losses) <= epsilon * (1 + 1e-12)
    assert max(losses) == pytest.approx(epsilon)


ROUGH = SimulationSampler(np.random.default_rng(6))
EVERYTHING = np.ones(SHAPE.visits, np.bool_)
LIBRARY = {
    "histogram": HistogramEncoder.of(
        SHAPE,
        ("transitions", "rewards"),
        EVERYTHING,
        last_transitions=False,
        users=20,
        mean=Fraction(2**60 + 1, 2**55),
    ),
    "split": SplitEncoder.of(
        SHAPE, ("transitions", "rewards"), 0.1, EVERYTHING, last_transitions=False
    ),
}


@pytest.mark.core
@pytest.mark.parametrize("name", LIBRARY)
def test_what_the_library_describes_is_what_a_device_loads(name):
    encoder = LIBRARY[name]
    plain = json.loads(json.dumps(encoder.to_dict(), allow_nan=False))
    device, copy = discreet.device.load(plain), load_encoder(plain)
    assert type(copy) is type(encoder) and copy.to_dict() == encoder.to_dict() == plain
    assert device.batch == encoder.device.batch and copy.traffic == encoder.traffic
    states, actions, rewards = USERS["one reward"]
    episode = {"states": [0, 0, 0], "actions": [0, 0], "rewards": [1.0, 0.0]}
    report = device.encode(episode, SamplerDraws(SimulationSampler(np.random.default_rng(5))))
    sampler = SimulationSampler(np.random.default_rng(5))
    assert np.array_equal(encoder.rows(report), encoder.encode(states, actions, rewards, sampler))


@pytest.mark.core
@pytest.mark.parametrize("name", LIBRARY)
def test_bytes_of_a_device_become_what_the_analyser_takes(name):
    encoder = LIBRARY[name]
    episode = {"states": [0, 0, 0], "actions": [0, 1], "rewards": [0.5, 1]}
    report = encoder.device.encode(episode)
    data = encoder.device.to_bytes(report)
    assert np.array_equal(encoder.from_bytes(data), encoder.rows(report))
    assert encoder.from_bytes(data).dtype == np.int64
    with pytest.raises(InvalidInputError, match=r"^wrongLength: Expected"):
        encoder.from_bytes(data[:-1])
    with pytest.raises(InvalidInputError, match=r"^notBytes: Expected"):
        encoder.from_bytes(data.hex())


@pytest.mark.core
def test_traffic_is_true_to_the_byte():
    """Envelopes of 52 bytes through a shuffler; the whole report, header and all, otherwise."""
    shape = Shape(states=4, actions=2, horizon=6)
    policy = np.zeros(shape.visits, np.bool_)
    policy[:, :, 0] = True
    published = HistogramEncoder.of(
        shape,
        ("transitions", "rewards"),
        policy,
        last_transitions=False,
        users=20_000,
        mean=Fraction(39371, 100),
    )
    assert published.traffic == Traffic(22, 1144)
    for name, encoder in LIBRARY.items():
        report = encoder.device.encode({"states": [0] * 3, "actions": [0] * 2, "rewards": [0] * 2})
        if name == "histogram":
            messages = sum(map(len, report))
            assert encoder.traffic == Traffic(messages, 52 * messages)
            assert len(encoder.encode(*USERS["first action"], ROUGH)) == messages
        else:
            assert encoder.traffic == Traffic(1, len(encoder.device.to_bytes(report)))


@pytest.mark.core
def test_messages_of_classes_come_with_the_number_of_their_class():
    rows = LIBRARY["histogram"].encode(*USERS["first action"], ROUGH)
    sizes = [one.messages for one in LIBRARY["histogram"].device.groups]
    assert np.bincount(rows[:, 0]).tolist() == sizes
    cells = [one.cells for one in LIBRARY["histogram"].device.groups]
    assert (rows[:, 1] <= np.array(cells)[rows[:, 0]]).all() and (rows[:, 1] >= 0).all()


@pytest.mark.core
def test_what_a_device_refuses_the_library_refuses_in_the_same_words():
    with pytest.raises(InvalidInputError, match=r"^badEpisode: Expected 2 rewards"):
        LIBRARY["split"].encode(STILL, np.zeros(2, np.int64), np.zeros(3), ROUGH)
    with pytest.raises(InvalidInputError, match=r"^unknownVersion: Expected"):
        SplitEncoder.from_dict(LIBRARY["split"].to_dict() | {"version": 2})
    with pytest.raises(InvalidInputError, match="users"):
        HistogramEncoder.of(
            SHAPE, ("rewards",), EVERYTHING, last_transitions=False, users=0, mean=Fraction(1)
        )


@pytest.mark.core
def test_draws_of_a_sampler_have_the_distributions_of_a_device():
    draws, runs = SamplerDraws(SimulationSampler(np.random.default_rng(8))), 20_000
    weight = 3 * 2**30
    drawn = np.bincount(draws.noise(4, weight, runs), minlength=5) / runs
    assert np.abs(drawn[:4] - 3 / 16).max() < 0.02
    assert drawn[4] == pytest.approx(1 / 4, abs=0.02)
    full = np.bincount(draws.noise(4, 2**32, runs), minlength=5)
    assert full[4] == 0 and np.abs(full[:4] / runs - 1 / 4).max() < 0.02
    assert np.mean(draws.bits(1, 8, runs)) == pytest.approx(1 / 8, abs=0.02)
    assert draws.rewards([0.0, 1.0]) == [0, 1]
    assert np.mean([draws.rewards([0.25])[0] for _ in range(4000)]) == pytest.approx(0.25, abs=0.05)


@pytest.mark.core
def test_a_sampler_without_noise_sends_blanks():
    """Users who add no noise, in audits of an honest fraction."""
    draws = SamplerDraws(PresetSampler.still())
    assert draws.noise(7, 2**31, 3) == [7, 7, 7]
