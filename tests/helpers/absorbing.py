"""Random sub-stochastic models and plain dynamic programs for the tests of policy elimination."""

import itertools

import numpy as np


def random_model(seed, horizon=3, states=2, actions=2):
    """Transitions that lose some mass, a start distribution, rewards and an order of actions."""
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.ones(states + 1), (horizon, states, actions))[
        ..., :states
    ].copy()
    initial = rng.dirichlet(np.ones(states))
    rewards = rng.random((horizon, states, actions))
    names = np.broadcast_to(np.arange(actions), rewards.shape)
    return transitions, initial, rewards, rng.permuted(names, axis=-1)


def all_actions(horizon, states, actions):
    """Every deterministic policy ``[H, X]``."""
    for choice in itertools.product(range(actions), repeat=horizon * states):
        yield np.reshape(choice, (horizon, states))


def visits_of(transitions, initial, policy):
    """``[H, X, A]``: probability of (h, x, a), forward, one matrix product per step."""
    horizon, states, actions, _ = transitions.shape
    out, mass = np.zeros((horizon, states, actions)), initial
    for h in range(horizon):
        out[h, np.arange(states), policy[h]] = mass
        mass = mass @ transitions[h, np.arange(states), policy[h]]
    return out


def upper_value(active, policy):
    """Of one deterministic policy in the model of an implicit set."""
    return float((visits_of(active.transitions, active.initial, policy) * active.upper).sum())


def is_active(active, policy):
    """Whether a policy is in an implicit set, up to rounding."""
    slack = 1e-12 * max(1.0, abs(active.threshold)) if np.isfinite(active.threshold) else 0.0
    return upper_value(active, policy) >= active.threshold - slack


def is_listed(everyone, policy):
    """Whether a policy is in an explicit list."""
    number = 0
    for h, x in everyone.points:
        number = number * everyone.shape.actions + int(policy[h, x])
    return number in everyone.indices
