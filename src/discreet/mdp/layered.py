"""`LayeredMDP`: loop-free MDPs in layers, the form of the literature on adversarial losses."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.errors import InvalidInputError
from discreet.mdp._arrays import frozen_copy, numbers, probability_rows
from discreet.mdp.shape import Shape
from discreet.mdp.tabular import TabularMDP


@dataclass(frozen=True, eq=False, init=False, repr=False)
class LayeredMDP:
    """States partitioned into layers 0 to H; every move goes from one layer to the next.

    The first and the last layer hold one state each. States are numbered inside their layer, and
    arrays are padded with zeros to the widest layer, W.

    >>> from discreet.mdp import RiverSwim
    >>> LayeredMDP.from_tabular(RiverSwim(states=4, horizon=6)).widths.tolist()
    [1, 4, 4, 4, 4, 4, 1]

    Attributes:
        transitions: ``float64[H, W, A, W]``: from state x of layer h to state y of layer h + 1.
        widths: ``int64[H + 1]``, the number of states in each layer.
        name: what the model is called in tables.
    """

    transitions: FloatArray
    widths: IntArray
    name: str

    def __init__(self, *, transitions: ArrayLike, widths: ArrayLike, name: str = "") -> None:
        sizes = np.asarray(widths)
        if sizes.ndim != 1 or len(sizes) < 2 or not np.issubdtype(sizes.dtype, np.integer):
            raise InvalidInputError(f"Expected widths of layers 0 to H >= 1, got {widths!r}.")
        if sizes.min() < 1:
            raise InvalidInputError(
                f"Expected a state in every layer, got widths={sizes.tolist()}."
            )
        if sizes[0] != 1 or sizes[-1] != 1:
            raise InvalidInputError(
                f"Expected one state in the first and in the last layer, got widths="
                f"{sizes.tolist()}; add a first step that draws the state, and a last state where "
                f"all episodes end."
            )
        given = numbers(transitions, "transitions")
        horizon, widest = len(sizes) - 1, int(sizes.max())
        if given.ndim != 4 or given.shape != (horizon, widest, given.shape[2], widest):
            raise InvalidInputError(
                f"Expected transitions (H, W, A, W) with H={horizon} and W={widest} (the widest "
                f"layer), got shape {given.shape}."
            )
        put = object.__setattr__
        put(self, "transitions", _checked_moves(given, sizes))
        put(self, "widths", frozen_copy(sizes, np.int64))
        put(self, "name", name)

    @classmethod
    def from_tabular(cls, mdp: TabularMDP) -> "LayeredMDP":
        """Stage expansion: one copy of the states per step, and a last state where episodes end.

        If all episodes begin in one state, that state is the first layer and the horizon stays.
        Otherwise a first step without choice or cost draws the state: the horizon grows by one.
        """
        states, actions = mdp.shape.states, mdp.shape.actions
        steps = np.array(mdp.transitions)
        steps[-1] = np.eye(1, states)[0]
        if mdp.start.sum() == 1:
            first = int(mdp.start.argmax())
            steps[0, 0] = steps[0, first]
            steps[0, 1:] = 0
        else:
            draw = np.zeros((1, states, actions, states))
            draw[0, 0] = mdp.initial
            steps = np.concatenate([draw, steps])
        if len(steps) == 1:
            steps = steps[:, :1, :, :1]
        widths = [1, *[states] * (len(steps) - 1), 1]
        return cls(transitions=steps, widths=widths, name=mdp.name)

    @property
    def horizon(self) -> int:
        """H: actions per episode."""
        return len(self.widths) - 1

    @property
    def shape(self) -> Shape:
        """The padded size: widest layer, actions, horizon."""
        horizon, widest, actions, _ = self.transitions.shape
        return Shape(states=widest, actions=actions, horizon=horizon)

    @property
    def states(self) -> int:
        """X: the number of states, all layers but the last together."""
        return int(self.widths[:-1].sum())

    @property
    def present(self) -> BoolArray:
        """``bool[H, W]``: which padded entries are states."""
        return np.arange(self.shape.states) < self.widths[:-1, None]

    @cached_property
    def tabular(self) -> TabularMDP:
        """The same moves as a `TabularMDP` without rewards, for planning and simulation.

        Its states are the W places inside a layer; places without a state are never reached.
        """
        steps = np.array(self.transitions)
        steps[~self.present] = np.eye(1, self.shape.states)[0]
        return TabularMDP(transitions=steps, rewards=np.zeros(self.shape.visits), name=self.name)

    def __repr__(self) -> str:
        label = f"{self.name!r}, " if self.name else ""
        return f"LayeredMDP({label}widths={self.widths.tolist()}, actions={self.shape.actions})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the arrays alone, and stay read-only."""
        return _rebuild, (self.transitions, self.widths, self.name)


def _rebuild(transitions: FloatArray, widths: IntArray, name: str) -> LayeredMDP:
    return LayeredMDP(transitions=transitions, widths=widths, name=name)


class EffectiveSupport(NamedTuple):
    """How far the moves of an MDP scatter; enters the regret bounds of adversarial learners."""

    pairs: FloatArray  # [H, W, A], C_{x,a}; 0 where a move is certain, at most width - 1
    cumulative: float  # C_M, at most X * sqrt(A)


def effective_support(mdp: LayeredMDP | TabularMDP) -> EffectiveSupport:
    """C_{x,a} = (sum over x' of sqrt(P (1 - P)))^2 and C_M = sum_h sqrt(sum over (x,a) of C_{x,a}).

    After Bourel, Maillard and Talebi (2020). A `TabularMDP` is expanded by stages first.

    >>> from discreet.mdp import RiverSwim
    >>> round(effective_support(RiverSwim(states=4, horizon=6)).cumulative, 3)
    9.677
    """
    layered = LayeredMDP.from_tabular(mdp) if isinstance(mdp, TabularMDP) else mdp
    moves = layered.transitions
    pairs: FloatArray = np.sqrt(moves * np.maximum(1 - moves, 0)).sum(axis=-1) ** 2
    return EffectiveSupport(pairs, float(np.sqrt(pairs.sum(axis=(1, 2))).sum()))


def tabular_losses(mdp: TabularMDP) -> FloatArray:
    """``float64[H, W, A]``: the losses 1 - reward of ``mdp`` in its stage expansion."""
    layered = LayeredMDP.from_tabular(mdp)
    losses = np.zeros(layered.shape.visits)
    means = 1 - mdp.rewards
    if layered.horizon == mdp.horizon:
        if mdp.horizon > 1:
            losses[1:] = means[1:]
        losses[0, 0] = means[0, int(mdp.start.argmax())]
    else:
        losses[1:] = means
    return losses


def _checked_moves(moves: FloatArray, widths: IntArray) -> FloatArray:
    """Rows of states are distributions over the next layer; padding holds zeros."""
    place = np.arange(moves.shape[1])
    absent = place >= widths[:-1, None]
    beyond = (place >= widths[1:, None])[:, None, None, :] & ~absent[:, :, None, None]
    if (moves[np.broadcast_to(beyond, moves.shape)] != 0).any():
        h, x, a, y = (int(i) for i in np.argwhere(beyond & (moves != 0))[0])
        raise InvalidInputError(
            f"Expected moves into the {widths[h + 1]} states of layer {h + 1} only, got "
            f"transitions[{h}, {x}, {a}, {y}]={moves[h, x, a, y]}."
        )
    moves[absent] = np.eye(1, moves.shape[1])[0]
    checked = np.array(probability_rows(moves, "transitions"))
    checked[absent] = 0
    return frozen_copy(checked, np.float64)
