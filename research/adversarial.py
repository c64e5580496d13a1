"""The adversarial learners: a grid of multipliers, and the regret that is reported.

    python -m research.adversarial choose private-uc-o-reps [--part 1/2] [--fooling]
    python -m research.adversarial table > docs/data/adversarial_table.csv
    python -m research.adversarial table --start-of-learning --runs 3 > FILE   # adversarial_start
    python -m research.adversarial zero > docs/data/adversarial_zero.csv

``choose`` prints, for every point of a small grid, the regret as a share of the uniform policy's:
the mean over problems that no reported table contains (layers of other widths, three actions, a
slippery chain; losses that stay, switch three times or drift, always towards independent means),
two or three trust models, and seeds. All these adversaries reward large learning rates.
``--fooling`` measures the other side: two opposite means alternate so that whoever follows the
leader is always wrong. The uniform policy has almost no regret there, so it is per step.

``table`` prints the table of that learner's page. Four states, two actions, horizon 6.
RiverSwim: loss 0 for right at the right end (0.9 for left at the left end); the switching and
drifting adversaries move the prize to the left end. Random MDPs: Dirichlet(0.3) transitions and
uniform mean losses, anew in every run; the drifting adversary reverses seven tenths of every
preference.

``zero`` prints how far from uniform the bandit learner ends when all losses are zero.
"""

import itertools

import numpy as np
from benchmarks.bench_adversarial import random_layers

import discreet
from discreet import Central, NoPrivacy
from discreet.adversarial.losses import drifting_losses, stochastic_losses, switching_losses
from discreet.mdp.layered import LayeredMDP
from research import parser

SEEDS = (71, 72)
FULL, BANDIT = "private-uc-o-reps", "private-uob-lbps"
GRIDS = {
    FULL: {"confidence": (0.003, 0.01, 0.03), "rate": (1.0, 2.0, 4.0, 8.0)},
    BANDIT: {
        "confidence": (0.003, 0.01, 0.03),
        "rate": (1.0, 3.0, 10.0, 30.0),
        "limit": (0.5,),
        "loss_share": (0.8,),
    },
}
WEAK, STRONG = Central(10, 1e-6), Central(1, 1e-6)
TRUSTS = {FULL: (NoPrivacy(), STRONG, WEAK), BANDIT: (NoPrivacy(), WEAK)}


def slippery_chain():
    """Seven steps along five states: go on (it fails in one of five cases) or back to the start."""
    widths = (1, *[5] * 6, 1)
    transitions = np.zeros((7, 5, 2, 5))
    for h, x in itertools.product(range(6), range(5)):
        transitions[h, x, 0, 0] = 1.0
        transitions[h, x, 1, min(x + 1, 4)] += 0.8
        transitions[h, x, 1, x] += 0.2
    transitions[6, :, :, 0] = 1.0
    for h, here in enumerate(widths[:-1]):
        transitions[h, here:] = 0.0
    return LayeredMDP(transitions=transitions, widths=widths)


def held_out(seed):
    """Problems that no table has."""
    return random_layers((1, 3, 5, 3, 1), 3, 1.0, seed), slippery_chain()


def adversaries(mdp, episodes, seed):
    """Fixed, switching and drifting means."""
    rng = np.random.default_rng([seed, 1])
    means, other = rng.random(mdp.shape.visits), rng.random(mdp.shape.visits)
    yield stochastic_losses(mdp, episodes, means=means, seed=seed)
    yield switching_losses(
        mdp, episodes, means=means, other=other, switches=(0.2, 0.5, 0.8), seed=seed
    )
    yield drifting_losses(mdp, episodes, means=means, other=other, seed=seed)


def fooling_losses(mdp, episodes, seed, switches):
    """Opposite means in turns; the first turn is half as long, so the leader is always wrong."""
    means = np.random.default_rng([seed, 1]).random(mdp.shape.visits)
    times = tuple((turn + 0.5) / switches for turn in range(switches))
    return switching_losses(mdp, episodes, means=means, other=1 - means, switches=times, seed=seed)


def regrets(mdp, losses, trust, seed, **settings):
    """Of one run over all the losses, and of the uniform policy; ``settings`` name the learner."""
    result = discreet.learn(
        mdp, trust=trust, episodes=losses.episodes, seed=seed, losses=losses, **settings
    )
    return result.final_regret, result.extras["uniform_regret"]


def fooled(learner, settings, episodes):
    """Regret per step against 6, 20 and 80 turns, one after the other for each trust model."""
    for trust, switches in itertools.product(TRUSTS[learner], (6, 20, 80)):
        found = []
        for seed, i in itertools.product(SEEDS, range(2)):
            mdp = held_out(seed)[i]
            losses = fooling_losses(mdp, episodes, seed, switches)
            ours, _ = regrets(mdp, losses, trust, seed, learner=learner, **settings)
            found.append(ours / (episodes * mdp.horizon))
        yield float(np.mean(found))


def shares(learner, settings, episodes):
    """Regret over the uniform policy's, averaged over problems and seeds: one per trust model."""
    for trust in TRUSTS[learner]:
        found = []
        for seed in SEEDS:
            for mdp in held_out(seed):
                for losses in adversaries(mdp, episodes, seed):
                    ours, uniform = regrets(mdp, losses, trust, seed, learner=learner, **settings)
                    found.append(ours / uniform)
        yield float(np.mean(found))


def choose(options):
    """Print the mean, its parts and the multipliers of every candidate."""
    part, parts = (int(number) for number in options.part.split("/"))
    grid = GRIDS[options.learner]
    for values in list(itertools.product(*grid.values()))[part - 1 :: parts]:
        settings = dict(zip(grid, values, strict=True))
        measure = fooled if options.fooling else shares
        found = list(measure(options.learner, settings, options.episodes))
        each = " ".join(f"{value:.4f}" for value in found)
        print(f"{np.mean(found):.4f}  ({each})  {settings}", flush=True)


def river(kind, episodes, seed):
    """RiverSwim by layers, with a prize that can move from one end to the other."""
    mdp = LayeredMDP.from_tabular(discreet.make("RiverSwim", states=4, horizon=6))
    right, left = np.ones(mdp.shape.visits), np.ones(mdp.shape.visits)
    right[1:, -1, 1], right[1:, 0, 0] = 0.0, 0.9
    left[1:, 0, 0], left[1:, -1, 1] = 0.2, 0.9
    if kind == "stochastic":
        return mdp, stochastic_losses(mdp, episodes, means=right, seed=seed)
    if kind == "switching":
        return mdp, switching_losses(mdp, episodes, means=left, other=right, seed=seed)
    return mdp, drifting_losses(mdp, episodes, means=right, other=left, seed=seed)


def random_mdp(kind, episodes, seed):
    """A random layered MDP with random mean losses."""
    mdp = random_layers((1, 4, 4, 4, 4, 4, 1), 2, 0.3, seed)
    means = stochastic_losses(mdp, episodes, seed=seed).means
    if kind == "stochastic":
        return mdp, stochastic_losses(mdp, episodes, means=means, seed=seed)
    if kind == "switching":
        return mdp, switching_losses(mdp, episodes, means=means, seed=seed)
    other = 0.3 * means + 0.7 * (1 - means)
    return mdp, drifting_losses(mdp, episodes, means=means, other=other, seed=seed)


CASES = [
    (river, FULL, NoPrivacy(), "theory"),
    (river, FULL, NoPrivacy(), "practical"),
    (river, FULL, WEAK, "practical"),
    (random_mdp, BANDIT, NoPrivacy(), "practical"),
    (random_mdp, BANDIT, WEAK, "practical"),
]
SIZES = {FULL: (500, 2_000, 20_000), BANDIT: (20_000, 60_000, 200_000)}
NAMES = {river: "RiverSwim", random_mdp: "random MDP"}
STARTS = [
    (river, FULL, STRONG, "practical"),
    (random_mdp, FULL, STRONG, "practical"),
    (random_mdp, BANDIT, STRONG, "practical"),
]


def table(options):
    """Print shares of the uniform policy's regret as CSV, or at which K learning starts."""
    kinds = ("stochastic", "switching", "drifting")
    print("problem,learner,trust,epsilon,delta,constants,users,runs", end="")
    print(*(f",{kind},sd" for kind in kinds), ",mean", sep="", flush=True)
    for world, learner, trust, constants in STARTS if options.start_of_learning else CASES:
        for episodes in SIZES[learner] if options.start_of_learning else (20_000,):
            rows = []
            for kind in kinds:
                found = []
                for seed in range(options.seed, options.seed + options.runs):
                    mdp, losses = world(kind, episodes, seed)
                    how = {"learner": learner, "constants": constants}
                    ours, uniform = regrets(mdp, losses, trust, seed, **how)
                    found.append(ours / uniform)
                rows.append(found)
            pair = (
                [f"{trust.epsilon:g}", f"{trust.delta:g}"] if trust in (WEAK, STRONG) else ["", ""]
            )
            facts = [NAMES[world], learner, trust.name, *pair, constants, episodes, options.runs]
            shares = [f"{v:.3f}" for r in rows for v in (np.mean(r), np.std(r, ddof=1))]
            print(*facts, *shares, f"{np.mean(rows):.3f}", sep=",", flush=True)


def zero(_options):
    """How likely the likeliest action is at the end, by the printed and the centred estimator."""
    mdp = LayeredMDP.from_tabular(discreet.make("RiverSwim", states=4, horizon=6))
    print("users,epsilon,runs,printed,centred")
    for episodes in (500, 1_000, 2_000, 4_000, 8_000, 16_000):
        nothing = stochastic_losses(mdp, episodes, means=np.zeros(mdp.shape.visits))
        means = []
        for estimator in ("paper", "centred"):
            how = {"losses": nothing, "loss_estimator": estimator, "constants": "theory"}
            how |= {"learner": BANDIT, "trust": Central(1), "episodes": episodes}
            results = [discreet.learn(mdp, seed=seed, **how) for seed in range(5)]
            likeliest = [r.policy.probabilities.max(axis=-1)[mdp.present].mean() for r in results]
            means.append(np.mean(likeliest))
        print(f"{episodes},1,5,{means[0]:.4f},{means[1]:.4f}", flush=True)


def main() -> None:
    """Read the command."""
    arguments = parser("research.adversarial", __doc__)
    commands = arguments.add_subparsers(dest="command", required=True)
    choosing = commands.add_parser("choose")
    choosing.add_argument("learner", choices=GRIDS)
    choosing.add_argument("--part", default="1/1", help="which share of the grid, as 1/2")
    choosing.add_argument("--fooling", action="store_true", help="the adversary of large rates")
    choosing.add_argument("--episodes", type=int, default=8_000)
    showing = commands.add_parser("table")
    showing.add_argument("--seed", type=int, default=1000)
    showing.add_argument("--runs", type=int, default=10)
    showing.add_argument("--start-of-learning", action="store_true")
    commands.add_parser("zero")
    options = arguments.parse_args()
    {"choose": choose, "table": table, "zero": zero}[options.command](options)


if __name__ == "__main__":
    main()
