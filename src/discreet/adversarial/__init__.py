"""Adversarial losses (paper 004): losses, their private release, solvers, both learners."""

from discreet.adversarial.losses import (
    BlendedLosses,
    LossSequence,
    drifting_losses,
    stochastic_losses,
    switching_losses,
)
from discreet.adversarial.mechanism import LayeredMechanism, LayeredSize, calibrate_layered

__all__ = [
    "BlendedLosses",
    "LayeredMechanism",
    "LayeredSize",
    "LossSequence",
    "calibrate_layered",
    "drifting_losses",
    "stochastic_losses",
    "switching_losses",
]
