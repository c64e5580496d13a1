"""What a study can see: the smallest difference that a trial of so many users finds.

Q(a) = r + P·V of an action a in a state at a step is estimated from C (the sum of r - c over the
visits), T(s') (the visits that led to s') and N (the visits), each released with noise:

    Q' = c + C'/N' + sum_s' T'(s')·V(s')/N'.

With n visits, to first order in the noise e, where e_N cancels the mean of V,

    Q' - Q = [sampling + e_r - (r - c)·e_N + sum_s' e_t(s')·(V(s') - P·V)]/n.

Sampling has the variance n·(r(1 - r) + s_V²) with r(1 - r) <= 1/4 and s_V the spread of the next
values, sum_s' (V - P·V)² is about S·s_V², and the noises are independent (of e_N and e_t if visits
are released besides; else N is the sum of the transitions, e_N = sum e_t with the variance
sigma_N² = S·sigma_t², and the term between them, of either sign, is left out). J releases of K/J
users each add J times their noise. So the difference of two actions has the standard error

    SE² = 2·[(1/4 + s_V²)/n + J·(sigma_r² + (r - c)²·sigma_N² + S·sigma_t²·s_V²)/n²],  n = K·p/A,

p being the share of users who reach the state and A the actions, all tried equally often. The next
values are estimated too, each from K/(S·A) visits of its own row and what follows: their variance,
[1/(4·m) + J·(...)/m²]·S/(S - 1) with m = K/(S·A), is added to s_V². Where
reports show a part of the visits only, each visit adds its own variance to all of these. A study
recommends beyond two standard errors (`study.estimate.SURE`), and finds the difference
Delta80 = (2 + 0.84)·SE with probability 0.80. J multiplies every noise: also that of visits and
transitions, not of rewards alone. Beyond `TOO_LARGE`, or where the visits m are not well above
their own noise (`CERTAIN`; then Delta80 is infinite), the first order is not enough and the true
power is less: simulate.

Nobody knows s_V before a study. Rewards of the H - 1 steps to come are from 0 to 1 each, so it is
from 0 (all next states are worth the same) to (H - 1)/2: `what_it_sees` says both ends.
"""

import math

from discreet import _validate
from discreet.privacy.mechanisms.base import BatchMechanism, ContinualMechanism
from discreet.study.estimate import SURE

EIGHTY = 0.8416
"""Standard errors between the threshold and the mean of what exceeds it with probability 0.8."""
TOO_LARGE = 0.2
CERTAIN = 4.0
"""Standard deviations of their noise that the visits of a row at later steps exceed, or no formula
holds: with 2.4 and 3.6 the power was 0.40 and 0.55, with 4.7 and more 0.71 and more."""


def smallest_difference(
    mechanism: BatchMechanism | ContinualMechanism,
    users: int,
    *,
    releases: int = 1,
    share: float = 1.0,
    spread: float | None = None,
    reward: float = 0.5,
) -> float:
    """Delta80 of two actions, rewards from 0 to 1: what a randomised trial sees with chance 0.8.

    Infinite where no formula holds: simulate.

    >>> import discreet
    >>> shape = discreet.mdp.Shape(states=4, actions=3, horizon=4)
    >>> round(smallest_difference(discreet.NoPrivacy().calibrate(shape), 5_000, spread=0.1), 3)
    0.05

    Args:
        mechanism: calibrated; it says its noise and its shape.
        users: K, in all releases together.
        releases: J, of equal sizes.
        share: p, of the users who come to the state.
        spread: s_V, standard deviation of the values of next states; the largest there can be, if
            nobody says.
        reward: r, the mean reward there.
    """
    _validate.count(users=users, releases=releases)
    _validate.probability(share=share, reward=reward)
    _validate.positive(share=share)
    if spread is not None:
        _validate.real(spread=spread)
    shape, centre, per_visit, reward_per_visit = mechanism.shape, 0.0, 0.0, 0.0
    if isinstance(mechanism, BatchMechanism):
        centre = mechanism.centre
        per_visit, reward_per_visit = mechanism.visit_variance, mechanism.reward_visit_variance
    visits = users * share / shape.actions
    noise = mechanism.noise_variance(max(1, users // releases))
    moved = shape.states * noise.get("transitions", 0.0)
    off = (reward - centre) ** 2
    chance = 0.25 + reward_per_visit + off * per_visit
    added = releases * (noise["rewards"] + off * noise.get("visits", moved))
    apart = 0.0
    if shape.horizon > 1:
        row = users / (shape.states * shape.actions)
        if row < CERTAIN * math.sqrt(releases * noise.get("visits", moved)):
            return math.inf
        doubt = (chance / row + added / row**2) / (1 - 1 / max(2, shape.states))
        apart = ((shape.horizon - 1) / 2 if spread is None else spread) ** 2 + doubt
    chance += (1 + per_visit) * apart
    variance = chance / visits + (added + releases * moved * apart) / visits**2
    return (SURE + EIGHTY) * math.sqrt(2 * variance)


def what_it_sees(least: float, most: float, users: int, unit: float = 1.0) -> str:
    """The smallest difference in a sentence.

    Args:
        least: where all next states are worth the same.
        most: where they differ as much as they can.
        users: of the trial.
        unit: the range of rewards, in the units of the differences.

    >>> what_it_sees(0.3, 0.3, 500).split(";")[0]
    'Too small to say: 500 users are too few to tell two actions apart that differ by 0.2'
    """
    limit = TOO_LARGE * unit
    if least > limit:
        return (
            f"Too small to say: {users:,} users are too few to tell two actions apart that differ "
            f"by {limit:.3g}; more users, fewer batches or a larger epsilon would help."
        )
    range_ = f"{least:.2g}" if most == least else f"{least:.2g} to {most:.2g}"
    why = ", less if all next states are worth the same and more if they differ"
    if most > limit:
        range_, why = f"{least:.2g} or more", ", more if next states are not worth the same"
    return (
        f"A randomised trial of all {users:,} users at once sees a difference of {range_} between "
        f"two actions at the first step with probability 0.8{why if most > least else ''}; more "
        f"batches see less."
    )
