"""Several routes in one batch of flow-ucb, where users or batches are scarce.

Noise is paid once per batch. Where a batch is a large part of all users it holds up to three
routes, and where it has a least size, up to ten: each is sized for what it teaches, its expected
counts are added to the belief, and the next route is made of that. Their users play one stochastic
policy whose flow in the model is the mixture of the routes' flows, weighted by their users.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from discreet.learners.flow_ucb.belief import Belief
from discreet.learners.flow_ucb.plan import Route
from discreet.learners.flow_ucb.request import Request
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy

FEW_ROUTES = 3
"""At most in a batch without a least size, where users are scarce. Inherited; measured: with 10 a
narrow way is found later."""
MANY_ROUTES = 10
"""At most in a batch that has a least size, since batches are scarce, whether users are or not.
Measured: 3, 10 and 30. With 3, a cliff of forty states was not explored within
`sizing.MOST_BATCHES`."""


class Part(NamedTuple):
    """A route, and how many users of a batch play it."""

    route: Route
    users: int


def several(
    belief: Belief,
    first: Part,
    room: int,
    most_routes: int,
    size: Callable[[Belief, int], Part],
    expect: Callable[[Belief, Part], Belief],
) -> list[Part]:
    """The first part, and more while they have room.

    Args:
        belief: before the batch.
        first: made of it.
        room: users of the batch.
        most_routes: in it.
        size: a route and its users, at most so many.
        expect: the belief once a part has been played as expected.
    """
    parts, used = [first], first.users
    while len(parts) < most_routes and used < room:
        belief = expect(belief, parts[-1])
        parts.append(size(belief, room - used))
        used += parts[-1].users
    return parts


def mixed(parts: Sequence[Part], users: int, choices: int) -> Request:
    """A batch of ``users`` whose flow in the model is the weighted mean of the parts' flows."""
    if len(parts) == 1:
        route = parts[0].route
        return Request(DeterministicPolicy(route.actions), users, route.occupancy)
    total = sum(part.users for part in parts)
    flow = np.zeros((*parts[0].route.actions.shape, choices))
    elsewhere = np.zeros_like(flow)
    for route, players in parts:
        taken = route.actions[..., None] == np.arange(choices)
        elsewhere += players / total * taken
        flow += players / total * taken * route.occupancy[..., None]
    occupancy = flow.sum(axis=-1)
    reached = occupancy > 1e-12
    share = np.where(
        reached[..., None], flow / np.where(reached, occupancy, 1.0)[..., None], elsewhere
    )
    share /= share.sum(axis=-1, keepdims=True)
    return Request(StochasticPolicy(share), users, occupancy)
