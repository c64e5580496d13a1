"""Certify every golden value: bound over claimed delta, seconds of processor time (bound, check).

python -m research.certificates [--quick] [PATTERN]
"""

import warnings

from discreet.adversarial.mechanism import LayeredSize, calibrate_layered
from discreet.errors import DiscreetError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle
from discreet.privacy.certificates.document import certify
from research import parser

GOLDEN = ((2, 0.1), (2, 1.0), (6, 0.1), (6, 0.5), (6, 1.0), (6, 2.0), (20, 1.0))
"""(H, epsilon)."""
TWO = ("transitions", "rewards")


def batch(trust, horizon, **options):
    """A mechanism for S=4, A=2, made when it is asked for."""
    return lambda: trust.calibrate(Shape(states=4, actions=2, horizon=horizon), **options)


def continual(trust, horizon, episodes, *, stationary=False):
    """The same, released continually."""
    shape = Shape(states=4, actions=2, horizon=horizon)
    return lambda: trust.calibrate_stream(shape, episodes=episodes, stationary=stationary)


def layered(horizon, epsilon, delta):
    """Bandit losses under local Gaussian noise."""
    size = LayeredSize((1, *[2] * (horizon - 1), 1), 2)
    trust = Local(epsilon=epsilon, delta=delta, mechanism="gaussian")
    return lambda: calibrate_layered(trust, size, 1000, feedback="bandit")


def cases():
    """Label, mechanism, users, whether it is quick."""
    for delta in (1e-6, 1e-9):
        for horizon, epsilon in GOLDEN:
            name, quick = f"H={horizon} eps={epsilon:g} delta={delta:g}", horizon == 6
            central = Central(epsilon=epsilon, delta=delta, mechanism="gaussian")
            yield f"one-shot Gaussian {name}", batch(central, horizon), None, quick
            two = batch(central, horizon, statistics=TWO)
            yield f"one-shot Gaussian, two statistics {name}", two, None, False
            shuffle = Shuffle(epsilon=epsilon, delta=delta)
            groups = batch(shuffle, horizon, statistics=TWO, last_transitions=False)
            if epsilon >= 0.5:  # millions of atoms below it: minutes
                yield f"groups n=20,000 {name}", groups, 20_000, False
            yield f"groups in their limit {name}", groups, None, quick
            bits = Shuffle(epsilon=epsilon, delta=delta, mechanism="bits")
            for users in (500, 20_000, 1_000_000):
                yield f"shuffle n={users:,} {name}", batch(bits, horizon), users, False
        name = f"H=6 eps=1 delta={delta:g}"
        honest = Shuffle(epsilon=1.0, delta=delta, honest=0.8, mechanism="bits")
        yield f"shuffle n=20,000 honest=0.8 {name}", batch(honest, 6), 20_000, False
        for episodes in (20_000, 1_000_000):
            for mechanism in ("tree-signed", "toeplitz"):
                trust = Central(epsilon=1.0, delta=delta, mechanism=mechanism)
                label, quick = f"K={episodes:,} {name}", episodes < 10**5
                yield f"{mechanism} {label}", continual(trust, 6, episodes), None, quick
                pooled = continual(trust, 6, episodes, stationary=True)
                yield f"{mechanism} stationary {label}", pooled, None, False
        for mechanism in ("gaussian", "bounded"):
            local = Local(epsilon=1.0, delta=delta, mechanism=mechanism)
            yield f"local {mechanism} {name}", batch(local, 6), None, False
            pooled = continual(local, 6, 1000, stationary=True)
            yield f"local {mechanism} stationary {name}", pooled, None, False
        for epsilon in (1.0, 5.0, 10.0):
            label = f"layered bandit H=6 eps={epsilon:g} delta={delta:g}"
            yield label, layered(6, epsilon, delta), None, False
    for horizon in (2, 6):  # one user adds all bits: fair ones, as few as there can be
        least = Shuffle(epsilon=1.0, delta=1e-6, mechanism="bits")
        yield f"least fair bits H={horizon} eps=1 delta=1e-06", batch(least, horizon), 1, False
    for mechanism in ("laplace", "randomized-response", "one-step", "split"):
        local = Local(epsilon=1.0, mechanism=mechanism)
        yield f"local {mechanism} H=6 eps=1", batch(local, 6), None, True
    yield "one-shot Laplace H=6 eps=1", batch(Central(epsilon=1.0), 6), None, True
    tree = Central(epsilon=1.0, mechanism="tree-laplace")
    yield "tree-laplace K=1,000,000 H=6 eps=1", continual(tree, 6, 1_000_000), None, False
    for horizon, epsilon, delta in ((1, 40.0, 1e-6), (2, 40.0, 1e-6), (1, 20.0, 1e-3)):
        label = f"layered bandit H={horizon} eps={epsilon:g} delta={delta:g}"
        yield label, layered(horizon, epsilon, delta), None, False


def main() -> None:
    """Print CSV."""
    arguments = parser("research.certificates", __doc__)
    arguments.add_argument("pattern", nargs="?", default="", help="only rows that contain this")
    arguments.add_argument("--quick", action="store_true", help="a few rows of every kind")
    chosen = arguments.parse_args()
    warnings.simplefilter("ignore")
    print("what,noise,bound_over_delta,verdict,seconds_bound,seconds_check")
    for label, mechanism, users, quick in cases():
        if chosen.pattern not in label or (chosen.quick and not quick):
            continue
        try:
            found = certify(mechanism(), users=users)
        except DiscreetError as error:
            print(f'"{label}",,,"{error}",,', flush=True)
            continue
        verdict = "holds" if found.holds else "NOT CERTIFIED"
        times = ",".join(f"{seconds:.2f}" for seconds in found.seconds)
        row = f"{found.claim.noise.name},{found.ratio:.9f},{verdict},{times}"
        print(f'"{label}",{row}', flush=True)


if __name__ == "__main__":
    main()
