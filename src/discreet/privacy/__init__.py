"""The promise: guarantees, noise, calibration, releases, post-processing, audit."""

from discreet._lazy import attach as _attach

_WHERE = {
    "AuditRow": "discreet.privacy.auditing.run",
    "BatchLedger": "discreet.privacy.budget",
    "BatchPlan": "discreet.privacy.plans",
    "Budget": "discreet.privacy.budget",
    "CalibrationReport": "discreet.privacy.costs",
    "Central": "discreet.privacy.trust",
    "Certificate": "discreet.privacy.certificates.document",
    "Conformance": "discreet.privacy.auditing.conformance",
    "Encoder": "discreet.privacy.plans",
    "Guarantee": "discreet.privacy.guarantee",
    "Local": "discreet.privacy.trust",
    "NoPrivacy": "discreet.privacy.trust",
    "PrivateCounts": "discreet.privacy.statistics",
    "Sampler": "discreet.privacy.sampling.samplers",
    "SecureSampler": "discreet.privacy.sampling.samplers",
    "Shuffle": "discreet.privacy.trust",
    "SimulationSampler": "discreet.privacy.sampling.samplers",
    "StreamBlock": "discreet.privacy.releases",
    "StreamPlan": "discreet.privacy.plans",
    "StreamRelease": "discreet.privacy.releases",
    "TrustModel": "discreet.privacy.trust",
    "audit": "discreet.privacy.auditing.run",
    "auditing": "discreet.privacy.auditing",
    "calibrate": "discreet.privacy.costs",
    "calibration": "discreet.privacy.calibration",
    "certificates": "discreet.privacy.certificates",
    "certify": "discreet.privacy.certificates.run",
    "check_mechanism": "discreet.privacy.auditing.conformance",
    "load_encoder": "discreet.privacy.mechanisms.registry",
    "sensitivity": "discreet.privacy.sensitivity",
    "verify": "discreet.privacy.certificates.run",
}

__getattr__, __dir__, __all__ = _attach(__name__, _WHERE)
