"""Numbers of the reference pages."""

import discreet
from discreet.mdp import check_mdp

_ENVIRONMENTS = (
    *("RiverSwim", "RandomMDP", "DoubleChain", "SixArms", "LowerBound"),
    *("GridWorld", "Treatment", "Recommender", "DemandResponse", "ICU-Sepsis"),
)


def environments() -> list[list[object]]:
    """Exact values of every environment with its default parameters (reference/environments.md)."""
    rows: list[list[object]] = [
        ["environment", "states", "actions", "horizon", "optimal", "uniform", "constant action"]
    ]
    for name in _ENVIRONMENTS:
        mdp = discreet.make(name)
        report = check_mdp(mdp)
        values = (report.optimal_value, report.uniform_value, report.constant_action_value)
        shape = mdp.shape
        rows.append(
            [name, shape.states, shape.actions, shape.horizon, *(f"{one:.4f}" for one in values)]
        )
    return rows


TABLES = {"environments.csv": environments}
