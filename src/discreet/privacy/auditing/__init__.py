"""The promise, tested: exact privacy of the real code path, attacks on it, conformance checks."""

from discreet._lazy import attach as _attach

_WHERE = {
    "AuditRow": "discreet.privacy.auditing.run",
    "Conformance": "discreet.privacy.auditing.conformance",
    "audit": "discreet.privacy.auditing.run",
    "check_mechanism": "discreet.privacy.auditing.conformance",
}

__getattr__, __dir__, __all__ = _attach(__name__, _WHERE)
