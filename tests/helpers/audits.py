"""Rows of an audit, made up."""

from discreet.auditing.run import AuditRow


def audit_row(**changes):
    """A guarantee that holds, with what is changed."""
    fields = {
        "mechanism": "central/laplace",
        "calibration": "exact",
        "epsilon": 1.0,
        "delta": 0.0,
        "exact_epsilon": 1.0,
        "exact_delta": 0.0,
        "empirical_epsilon_low": 0.5,
        "notion": "JDP",
    }
    return AuditRow(**(fields | changes))
