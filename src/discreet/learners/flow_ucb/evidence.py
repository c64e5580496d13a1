"""What flow-ucb has learnt: weighted sums over batches, and the variances they carry."""

import math
from typing import NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray, JsonObject, Plain
from discreet.learners.flow_ucb.sizing import ReleaseTerms, credit

COLUMNS = 5
VISITS, SAMPLING, NOISE, DOUBT, BIAS = range(COLUMNS)
"""The columns of a row of evidence: the weighted visits N; the sampling weight M, the sum of w²·n;
the noise variance F (of transitions) or G (of rewards), the sum of w²·sigma²; the variance D of the
visits; of transitions, the sum of w·sigma, which is how far projected noise can lean one way."""
TOTAL = BIAS
"""Of rewards, the weighted sum stands there."""


class Observed(NamedTuple):
    """What a batch showed of the rows it played, after the projection onto flows.

    Attributes:
        rows: steps, states and actions, ``[R]`` each.
        transitions: ``[R, S]``.
        visits: ``[R]``.
        rewards: ``[R]``, sums.
        expected: ``[R]``, the visits that the model predicted before the batch.
    """

    rows: tuple[IntArray, ...]
    transitions: FloatArray
    visits: FloatArray
    rewards: FloatArray
    expected: FloatArray

    def only(self, kept: BoolArray) -> "Observed":
        rows = tuple(axis[kept] for axis in self.rows)
        return Observed(rows, *(array[kept] for array in self[1:]))


class Evidence(NamedTuple):
    """Weighted sums over batches; the first axis is H long, or 1 if declared stationary.

    Transitions and rewards have weights of their own, since their noise differs: ``moves`` and
    ``gains`` hold five columns each. The sums of ``transitions[R, S]`` are filled row by row, as
    (h, s, a) are visited for the first time, and ``number[h, s, a]`` says where (-1: nowhere). The
    room for all rows is reserved, the memory is used as rows are filled.
    """

    number: IntArray
    transitions: FloatArray
    moves: FloatArray
    gains: FloatArray

    @classmethod
    def empty(cls, layers: int, states: int, actions: int) -> "Evidence":
        number = np.full((layers, states, actions), -1, np.int64)
        sums = [np.zeros((layers, states, actions, COLUMNS)) for _ in cls._fields[2:]]
        return cls(number, np.zeros((number.size, states)), *sums)

    @property
    def filled(self) -> FloatArray:
        """The rows of ``transitions`` that are in use."""
        return self.transitions[: self.number.max() + 1]

    def places(self, rows: tuple[IntArray, ...], filled: BoolArray) -> IntArray:
        """Where the transitions of ``rows`` are kept; ``filled`` ones get a place if new."""
        new = np.zeros(self.number.shape, np.bool_)
        new[tuple(axis[filled] for axis in rows)] = True
        new &= self.number < 0
        self.number[new] = self.number.max() + 1 + np.arange(new.sum())
        return self.number[rows]

    def add(self, batch: Observed, terms: ReleaseTerms) -> None:
        """Add a batch with each row's credit, and the variances that it carries.

        Reports that show only a part of the visits add variance to every visit; half of it is left
        in a state's total, which the flow measures twice: coming in and going out. Variances are of
        as many visits as were expected, if fewer were seen: noise made them fewer.
        `sizing_kernels.expected_row` predicts the same of a batch to come.
        """
        from discreet.learners.flow_ucb import belief_kernels

        steps, states, actions = batch.rows
        noise, per_visit = terms.noise, terms.per_visit
        seen = np.maximum(batch.visits, batch.expected)
        doubt = noise * terms.factors[steps] + per_visit * seen / 2
        moved = credit(batch.expected, noise, terms.ease)
        if not terms.last_transitions:
            moved = np.where(steps == len(terms.factors) - 1, 0.0, moved)
        gained = credit(batch.expected, terms.reward_noise, terms.ease)
        rows = (steps * 0 if len(self.number) == 1 else steps, states, actions)
        places = self.places(rows, np.asarray(batch.transitions.any(axis=-1)) & (moved > 0))
        belief_kernels.add_rows(places, moved, batch.transitions, self.transitions)
        moves = _columns(moved, batch.visits, seen * (1 + per_visit), noise, doubt)
        moves[:, BIAS] = moved * math.sqrt(noise)
        gains = _columns(gained, batch.visits, seen, terms.reward_noise, doubt)
        gains[:, NOISE] += gained**2 * seen * terms.reward_per_visit
        gains[:, TOTAL] = gained * batch.rewards
        np.add.at(self.moves, rows, moves)
        np.add.at(self.gains, rows, gains)

    def to_dict(self) -> dict[str, Plain]:
        """Plain values, without the rows that are not in use."""
        kept = self._replace(transitions=self.filled)
        return {name: array.tolist() for name, array in kept._asdict().items()}

    @classmethod
    def from_dict(cls, data: JsonObject) -> "Evidence":
        evidence = cls.empty(*np.shape(data["number"]))
        for name, array in evidence._asdict().items():
            values = np.array(data[name], array.dtype)
            array[: len(values)] = values.reshape(len(values), *array.shape[1:])
        return evidence


def _columns(
    weight: FloatArray, visits: FloatArray, varied: FloatArray, noise: float, doubt: FloatArray
) -> FloatArray:
    """What rows add to the columns that moves and gains have in common."""
    sums = np.zeros((weight.size, COLUMNS))
    sums[:, VISITS] = weight * visits
    sums[:, SAMPLING] = weight**2 * varied
    sums[:, NOISE] = weight**2 * noise
    sums[:, DOUBT] = weight**2 * doubt
    return sums
