"""What the compiled planners of stream learners share: their signature, greedy actions, ties."""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types

from discreet._jit import BORROWED, inlined
from discreet._types import Floats, Ints
from discreet.errors import InvalidInputError
from discreet.privacy.streams.kernels import (
    FLOATS_4,
    GENERATOR,
    INTEGERS_2,
    PLANNER,
)

TIE = 1e-12
"""Values closer than this are equal up to rounding: integer noise makes such ties common."""


ROWS = 7
"""Of a model, beside the S rows of probabilities."""


_KEPT: dict[Callable[..., None], Callable[[int, int], int]] = {}


def planner(
    function: Callable[..., None], kept: Callable[[int, int], int] | None = None
) -> Callable[..., None]:
    """Compile a planner: from the released counts to the next policy.

    Its arguments, all changed in place where they are outputs or scratch:

    - ``row``: the learner's coefficients for this release (bonus factors, error terms);
    - ``transitions[G,S,A,S]``, ``visits[G,S,A]``, ``rewards[G,S,A]``: the cumulative private
      counts, G = H, or 1 for stationary counts;
    - ``memory[M,H,S,A]``: what the learner keeps between episodes;
    - ``model[S+ROWS,G,S·A]``, ``values[H+1,S]``: room to compute in. Pairs s·A + a come last: what
      is done for all of them alike vectorises (and rows first: they do not overlap);
    - ``actions[H,S]``, ``probabilities[H,S,A]``: the next policy, one of the two;
    - ``rng``: ties and draws of the learner.

    It makes no arrays (see `_jit.BORROWED`): room is what ``model`` and ``values`` are for.

    Args:
        function: the planner.
        kept: numbers that it needs in its memory after the first Q, for that many pairs (g, s, a)
            and states; none.
    """
    made = numba.njit(PLANNER, cache=True, fastmath=False, error_model="numpy", **BORROWED)
    compiled: Callable[..., None] = made(function)
    if kept is not None:
        _KEPT[compiled] = kept
    return compiled


def check_memory(
    planner: Callable[..., None], memory: Floats, q: tuple[int, int, int], groups: int
) -> None:
    """Compiled code does not look where its arrays end.

    Raises:
        InvalidInputError: the planner would read or write past the end of ``memory``.
    """
    kept = _KEPT.get(planner)
    least = math.prod(q) + (kept(groups * q[1] * q[2], q[1]) if kept else 0)
    if memory.shape[1:] != q or memory.size < least:
        raise InvalidInputError(
            f"This planner needs a memory [M, H, S, A] with (H, S, A) = {q} and "
            f"at least {least} numbers, got one of shape {memory.shape}: memory() of its learner "
            f"has to make it."
        )


class Pointer(types.WrapperAddressProtocol):  # type: ignore[misc, unused-ignore]
    """A compiled planner as an address: handing it to the loop takes half as long."""

    def __init__(self, compiled: Any) -> None:
        made = compiled.get_compile_result(PLANNER)
        self._address = made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name)
        self._compiled = compiled  # keeps the code alive

    def __wrapper_address__(self) -> int:
        return int(self._address)

    def signature(self) -> Any:
        return PLANNER


@inlined
def greedy(q: Floats, h: int, s: int, actions: Ints, values: Floats) -> bool:
    """An action of the largest ``q[0,h,s]`` and its value; could there be a tie?"""
    best = q[0, h, s, 0]
    chosen = 0
    close = False
    for a in range(1, q.shape[3]):
        value = q[0, h, s, a]
        close |= not abs(value - best) > TIE  # infinity minus infinity is close, too
        chosen = a if value > best else chosen
        best = value if value > best else best
    actions[h, s] = chosen
    values[h, s] = best
    return close


@numba.njit(types.void(FLOATS_4, INTEGERS_2, GENERATOR), cache=True, **BORROWED)
def break_ties(q: Floats, actions: Ints, rng: np.random.Generator) -> None:
    """A random one of the best actions wherever there are several, from the last step to the first.

    After the induction and not inside: a generator in the inner loop costs more than the loop.
    """
    horizon, states, choices = q.shape[1:]
    for h in range(horizon - 1, -1, -1):
        for s in range(states):
            least = q[0, h, s, actions[h, s]] - TIE
            ties = 0
            for a in range(choices):
                ties += int(q[0, h, s, a] >= least)
            if ties > 1:
                rank = int(rng.random() * ties)
                chosen = 0
                for a in range(choices):  # no branch: who wins is a coin toss
                    tied = int(q[0, h, s, a] >= least)
                    chosen += a * tied * int(rank == 0)
                    rank -= tied
                actions[h, s] = chosen


@inlined
def backward_induction(
    memory: Floats, model: Floats, values: Floats, actions: Ints, cap: float
) -> bool:
    """Greedy for Q = model·V ahead, as two learners need it; could there be a tie?

    ``model[:, g]`` holds p, then r, then what every step ahead adds, each for all pairs; values are
    at most ``cap`` times the number of steps ahead.
    """
    horizon, states = actions.shape
    choices = memory.shape[3]
    for s in range(states):
        values[horizon, s] = 0.0
    close = False
    for h in range(horizon - 1, -1, -1):
        g = h if model.shape[1] > 1 else 0
        ahead = float(horizon - h)
        for s in range(states):
            best, chosen = 0.0, 0
            for a in range(choices):
                x = s * choices + a
                q = model[states, g, x] + ahead * model[states + 1, g, x]
                for t in range(states):
                    q += model[t, g, x] * values[h + 1, t]
                memory[0, h, s, a] = q
                if a == 0:
                    best = q
                else:
                    close |= not abs(q - best) > TIE  # infinity minus infinity is close, too
                    chosen = a if q > best else chosen
                    best = q if q > best else best
            actions[h, s] = chosen
            values[h, s] = min(cap * ahead, best)
    return close
