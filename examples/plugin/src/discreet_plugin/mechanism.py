"""A mechanism: a plan that calibrates itself, with its proof in the docstring."""

from dataclasses import replace

from discreet.privacy.mechanisms.one_shot import LaplaceBatch


class DoubleLaplaceBatch(LaplaceBatch):
    """Discrete Laplace noise of twice the scale that is needed: it delivers half the epsilon.

    Proof: noise of scale L1/epsilon delivers epsilon (`LaplaceBatch`). Asked for epsilon/2, it has
    twice that scale and delivers epsilon/2, so epsilon as well; the plan states epsilon/2.
    """

    name = "double-laplace"

    @classmethod
    def design(cls, trust, reach):
        """Scale 2 L1/epsilon."""
        return super().design(replace(trust, epsilon=trust.epsilon / 2), reach)
