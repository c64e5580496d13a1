"""A mechanism: a design that finds its noise, with its proof in the docstring."""

from dataclasses import replace

from discreet.privacy.mechanisms.additive import AddedOnce
from discreet.privacy.mechanisms.one_shot import laplace_noise


def twice_the_noise(trust, sensitivity):
    """Discrete Laplace noise of twice the scale that is needed: it delivers half the epsilon.

    Proof: noise of scale L1/epsilon delivers epsilon (`one_shot`). Asked for epsilon/2, it has
    twice that scale and delivers epsilon/2, so epsilon as well; the mechanism states epsilon/2.
    """
    return laplace_noise(replace(trust, epsilon=trust.epsilon / 2), sensitivity)


double_laplace = AddedOnce(twice_the_noise)
