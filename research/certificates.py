"""Certify what is calibrated: bound over claimed delta, and seconds of processor time.

python -m research.certificates [PATTERN]
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
    """Label, mechanism, users."""
    for delta in (1e-6, 1e-9):
        for horizon, epsilon in GOLDEN:
            name = f"H={horizon} eps={epsilon:g} delta={delta:g}"
            central = Central(epsilon=epsilon, delta=delta, mechanism="gaussian")
            yield f"one-shot Gaussian {name}", batch(central, horizon), None
            shuffle = Shuffle(epsilon=epsilon, delta=delta)
            groups = batch(shuffle, horizon, statistics=TWO, last_transitions=False)
            yield f"histogram in its limit {name}", groups, None
            bits = Shuffle(epsilon=epsilon, delta=delta, mechanism="bits")
            yield f"bits n=20,000 {name}", batch(bits, horizon), 20_000
        name = f"H=6 eps=1 delta={delta:g}"
        groups = batch(Shuffle(1, delta), 6, statistics=TWO, last_transitions=False)
        yield f"histogram n=20,000 {name}", groups, 20_000
        toeplitz = Central(epsilon=1.0, delta=delta, mechanism="toeplitz")
        yield f"toeplitz K=20,000 {name}", continual(toeplitz, 6, 20_000), None
        for epsilon in (1.0, 5.0, 10.0):
            label = f"layered bandit H=6 eps={epsilon:g} delta={delta:g}"
            yield label, layered(6, epsilon, delta), None
    yield "local split H=6 eps=1", batch(Local(epsilon=1.0, mechanism="split"), 6), None
    yield "one-shot Laplace H=6 eps=1", batch(Central(epsilon=1.0), 6), None
    tree = Central(epsilon=1.0, mechanism="tree-laplace")
    yield "tree-laplace K=1,000,000 H=6 eps=1", continual(tree, 6, 1_000_000), None
    for horizon, epsilon, delta in ((1, 40.0, 1e-6), (2, 40.0, 1e-6), (1, 20.0, 1e-3)):
        label = f"layered bandit H={horizon} eps={epsilon:g} delta={delta:g}"
        yield label, layered(horizon, epsilon, delta), None


def main() -> None:
    """Print CSV."""
    arguments = parser("research.certificates", __doc__)
    arguments.add_argument("pattern", nargs="?", default="", help="only rows that contain this")
    chosen = arguments.parse_args()
    warnings.simplefilter("ignore")
    print("what,noise,bound_over_delta,verdict,seconds")
    for label, mechanism, users in cases():
        if chosen.pattern not in label:
            continue
        try:
            found = certify(mechanism(), users=users)
        except DiscreetError as error:
            print(f'"{label}",,,"{error}",', flush=True)
            continue
        verdict = "holds" if found.holds else "NOT CERTIFIED"
        row = f"{found.claim.noise['name']},{found.ratio:.9f},{verdict},{found.seconds:.2f}"
        print(f'"{label}",{row}', flush=True)


if __name__ == "__main__":
    main()
