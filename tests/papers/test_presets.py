"""Presets: every constant as printed, computed once more, and what it delivers."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet._seeds import RunSeeds
from discreet.adversarial.mechanism import LOSS_UNITS, LayeredSize, calibrate_layered
from discreet.adversarial.uc_o_reps import UcORepsSettings
from discreet.adversarial.uc_o_reps import learning_rate as full_rate
from discreet.adversarial.uob_lbps import UobLbps, UobLbpsSettings
from discreet.adversarial.uob_lbps import learning_rate as bandit_rate
from discreet.adversarial.world import make_world
from discreet.errors import (
    CalibrationError,
    DiscreetWarning,
    InvalidInputError,
    UnknownNameError,
)
from discreet.learners.base import PublicFacts
from discreet.learners.continual import make_learner
from discreet.learners.elimination.explorers import CountPool, PaperElimination
from discreet.learners.elimination.learner import write_script
from discreet.learners.elimination.settings import EliminationSettings, PrintedConstants
from discreet.learners.learn import continual_kind, make_batch_learner
from discreet.learners.optimists import Column
from discreet.learners.registry import get_learner
from discreet.mdp import RandomMDP, RiverSwim, sample_counts, uniform_policy
from discreet.mdp.layered import LayeredMDP
from discreet.mdp.shape import Shape
from discreet.papers.presets import (
    PRESETS,
    Delivered,
    Preset,
    Printed,
    Reference,
    get_preset,
    preset_names,
)
from discreet.privacy.guarantee import Guarantee, rounded_up
from discreet.privacy.mechanisms.bits import integer_messages_delta
from discreet.privacy.mechanisms.noise import Gaussian, Laplace
from discreet.privacy.sampling.samplers import SimulationSampler
from helpers.loading import loaded

PRESET = Preset(
    name="000",
    paper="000",
    algorithm="An algorithm",
    learner="sdp-pe",
    trust="shuffle",
    mechanism="bits",
    calibration="paper-000",
    settings={"structure": "paper"},
    constants={"tau": Printed("ln(1/delta)", "Line 3")},
    deviations=("one of them",),
    reference=Reference(3, 2, 4, 1000, 1.0, 1e-6, "RiverSwim", {"states": 3}),
    delivers=Delivered(None, 1.0, "messages are seen as they are"),
    delta=1e-6,
)
GUARANTEE = Guarantee(notion="SDP", epsilon=3.0, delta=0.25, claimed="(1, 1e-06)")


@pytest.mark.core
def test_the_trust_model_is_as_printed_unless_somebody_says_otherwise():
    printed = PRESET.trust_model(2.0)
    assert (printed.name, printed.epsilon, printed.delta) == ("shuffle", 2.0, 1e-6)
    assert (printed.mechanism, printed.calibration) == ("bits", "paper-000")
    exact = PRESET.trust_model(2.0, 1e-8, "exact")
    assert (exact.delta, exact.mechanism, exact.calibration) == (1e-8, "bits", "exact")


@pytest.mark.core
def test_an_epsilon_is_asked_for_with_an_example():
    with pytest.raises(InvalidInputError, match=r"run_paper\('000', mdp, epsilon=1"):
        PRESET.trust_model(None)


@pytest.mark.core
def test_a_run_whose_messages_are_seen_guarantees_what_they_deliver():
    only_sums = replace(PRESET, if_only_sums=Delivered(3.0, 0.25, "sums"))
    proven = only_sums.seen(GUARANTEE, Delivered(4.0, 0.5, "counted"))
    assert (proven.epsilon, proven.delta) == (4.0, 0.5)
    seen = only_sums.seen(GUARANTEE)
    assert (seen.epsilon, seen.delta) == (math.inf, 1.0)
    assert seen.claimed == "(1, 1e-06) by paper 000"
    assert "if only sums were seen: (3, 0.25)" in seen.assumptions[-2]


@pytest.mark.core
def test_a_run_says_the_size_of_its_batches():
    only_sums = replace(PRESET, if_only_sums=Delivered(3.0, 0.25, "sums"))
    seen = only_sums.seen(GUARANTEE, Delivered(4.0, 0.5, "for this size"), [10, 4000])
    assert seen.assumptions[-2] == (
        "for this size; the largest batch here had 4,000 users; if only sums were seen: (3, 0.25)"
    )


@pytest.mark.core
@pytest.mark.parametrize("given", [None, "", "paper", "paper-000"])
def test_as_printed_has_several_names_and_one_title(given):
    assert PRESET.noise(given) == "paper-000"
    assert PRESET.title(given) == "An algorithm, paper 000"


@pytest.mark.core
def test_a_repaired_run_is_not_called_as_the_printed_one():
    assert PRESET.title("exact") == "An algorithm, paper 000, exact noise"


@pytest.mark.core
def test_the_calibration_of_another_paper_is_refused():
    with pytest.raises(
        InvalidInputError, match=r"'exact' or 'paper-000'.*'paper-002', which mixes"
    ):
        PRESET.trust_model(1.0, calibration="paper-002")


@pytest.mark.core
def test_a_guarantee_that_claims_nothing_or_hides_nothing_is_left_alone():
    assert PRESET.seen(GUARANTEE) is GUARANTEE
    exact = replace(GUARANTEE, claimed=None)
    assert replace(PRESET, if_only_sums=Delivered(3.0, 0.25, "sums")).seen(exact) is exact


@pytest.mark.core
def test_plain_values_say_what_is_printed_where():
    plain = PRESET.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["constants"] == {"tau": ["ln(1/delta)", "Line 3"]}
    assert plain["delivers"] == {
        "epsilon": None,
        "delta": 1.0,
        "why": "messages are seen as they are",
    }
    assert "delivers_if_only_sums_are_seen" not in plain
    more = replace(PRESET, if_only_sums=Delivered(3.0, 0.25, "sums")).to_dict()
    assert more["delivers_if_only_sums_are_seen"]["epsilon"] == 3.0
    run = {"iota": Printed("log(2)", "Line 1", "log(3)")}
    known = replace(PRESET, constants=run, delivers=Delivered(None, 1.0, "why", 31_255)).to_dict()
    assert known["constants"] == {"iota": ["log(2)", "Line 1", "log(3)"]}
    assert known["delivers"]["refuted_from"] == 31_255


RIVER = Shape(states=4, actions=2, horizon=6)
X, A, H, K = 4, 2, 6, 20_000
KEYS = ["name", "paper", "algorithm", "mechanism", "calibration", "constants", "delivers"]


def quietly(call, *arguments, **options):
    """Printed constants warn; here everybody knows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        return call(*arguments, **options)


def batch_plan(preset, shape=RIVER):
    return quietly(preset.trust_model(1.0).calibrate, shape)


def elimination(preset):
    settings = EliminationSettings.choose(preset.settings)
    start = np.arange(X) == 0
    return settings, PrintedConstants(PublicFacts(RIVER, K, start), settings)


def world(preset, **options):
    mdp = LayeredMDP.from_tabular(RiverSwim(states=X, horizon=H))
    kind = UcORepsSettings if "full" in preset.name else UobLbpsSettings
    settings = kind.choose(preset.settings)
    feedback = "full" if "full" in preset.name else "bandit"
    made = quietly(
        make_world, mdp, preset.trust_model(1.0), K, RunSeeds(0), settings,
        feedback=feedback, losses="stochastic",
    )  # fmt: skip
    return made, settings


def continual_learner(preset, mdp, episodes=K, epsilon=1.0):
    kind = continual_kind(get_learner(preset.learner))
    trust = preset.trust_model(epsilon)
    rng = np.random.default_rng(0)
    return quietly(make_learner, kind, mdp, trust, episodes, rng, dict(preset.settings))


@pytest.mark.parametrize(
    ("name", "beta", "tau", "width", "lengths"),
    [
        (
            "000",
            1e-5,  # Section V-A: not split
            96 * math.log(2 / 1e-5) * (3 * H) ** 2,
            lambda iota, E, L: (
                2
                * (  # Algorithm 1, line 9
                    math.sqrt(X**2 * A * H**5 * iota / L) + X**3 * A**2 * H**5 * E * iota / L
                )
            ),
            2,  # Algorithm 1, line 2
        ),
        (
            "001",
            1e-5 / (H * X * A),  # Section V
            96 * math.log(2 * H * X * A / 1e-5) * (3 * H) ** 2,
            lambda iota, E, L: (
                2
                * (  # Algorithm 1, line 9
                    math.sqrt(X * A * H**3 * iota / L) + X**3 * A * H**5 * E * iota / L
                )
            ),
            3,  # Algorithm 2: L; Algorithm 3, line 2: L and L
        ),
    ],
)
def test_policy_elimination_as_printed(name, beta, tau, width, lengths):
    """000 and 001: Section V, Algorithms 1 to 3."""
    preset = get_preset(name)
    mechanism = batch_plan(preset)
    assert mechanism.statistics == ("transitions", "visits", "rewards")  # Section III-A
    assert mechanism.printed.epsilon_per_counter == pytest.approx(1 / (3 * H))
    assert mechanism.printed.beta_per_counter == pytest.approx(beta)
    assert mechanism.printed.tau == pytest.approx(tau)
    few, many = mechanism.bits(1000), mechanism.bits(10 * round(tau))
    assert (few.bits, few.probability) == (math.ceil(tau / 1000), 0.5)
    assert (many.bits, many.probability) == (1, pytest.approx(tau / (2 * 10 * round(tau))))
    settings, printed = elimination(preset)
    assert (settings.structure, settings.constants) == ("paper", "theory")
    assert settings.forgets  # "only the data of the current stage"
    iota = math.log(2 * H * A * K / settings.failure)  # Algorithm 1
    assert printed.iota == pytest.approx(iota)
    sigma = math.sqrt(mechanism.noise_variance(1000)["visits"])
    E = 4 * sigma * math.sqrt(2 * math.log(2 * H * X * A * (X + 2) / settings.failure))
    threshold = printed.infrequent(np.full(RIVER.visits, sigma**2))
    assert threshold == pytest.approx(6 * E * H**2 * iota)  # C_1 = 6; Algorithm 2, line 9
    assert printed.printed_width(500.0, sigma) == pytest.approx(width(iota, E, 500.0))
    script = write_script(PublicFacts(RIVER, K, np.arange(X) == 0), settings)
    assert next(length for *_, length in script) == 2  # L_1 = 2
    for L in (2, 4, 64):
        stages = [users for part, users, length in script if length == L]
        assert sum(stages) == lengths * L  # L_b = 2^b
    assert sum(users for _, users, _ in script) == K


@pytest.mark.parametrize("name", ["002", "002-gaussian", "002-randomized-response", "002-psrl"])
def test_local_randomisers_of_002(name):
    """Table 1 of 002: Lap(6H/eps), N(0, (H/eps)²), Ber(1/(e^(eps/H) - 1))."""
    preset, H2 = get_preset(name), 2
    shape = Shape(states=2, actions=2, horizon=H2)
    trust = preset.trust_model(2.0)
    options = {"episodes": 9, "stationary": True}
    mechanism = quietly(trust.calibrate_stream, shape, last_transitions=False, **options)
    if preset.mechanism == "randomized-response":
        assert mechanism.flip == pytest.approx(1 / (math.exp(2.0 / H2) - 1))
    else:
        noise = Laplace(6 * H2 / 2.0) if preset.mechanism == "laplace" else Gaussian(H2 / 2.0)
        assert mechanism.noise.distribution == noise
    assert trust.delta == (0.1 if name == "002-gaussian" else 0.0)  # caption of Figure 2
    printed = {} if name == "002-psrl" else {"union": "printed"}
    assert preset.settings == {"constants": "theory", "literal": True, **printed}


def test_ldp_obi_as_printed():
    """002: equation (4), Proposition 4, the bonus before (5)."""
    mdp = RandomMDP(states=2, actions=2, horizon=2, concentration=0.1)
    learner = continual_learner(get_preset("002"), mdp, epsilon=2.0)
    S2, A2, H2, k, users = 2, 2, 2, 1001.0, np.array([1000])
    alpha, failure = learner.settings.alpha, learner.settings.failure
    assert alpha > 1  # Algorithm 2
    assert learner.problem.stationary  # Section 2: time-homogeneous
    assert not learner.mechanism.last_transitions  # Section 4.1: H - 1 of them
    [c], [c3] = learner.noise_bounds(users)
    noise = Laplace(6 * H2 / 2.0)
    events = 3 * failure / (2 * math.pi**2 * k**2) / learner.mechanism.cells  # Algorithm 2
    assert c == pytest.approx(noise.bound({1.0: 1000.0}, events), rel=0.01)
    assert c3 == pytest.approx(noise.bound({1.0: 1000.0 * S2}, events), rel=0.01)
    log = math.log(4 * math.pi**2 * S2 * A2 * H2 * k**3 / (3 * failure))
    printed = [
        alpha * c,
        alpha * c3,
        math.sqrt(2 * log),
        (alpha + 1) * c + c,
        math.sqrt(14 * S2 * log),
        S2 * c + (alpha + 1) * c3,
    ]
    assert learner.coefficients(users)[0].tolist() == pytest.approx(printed)


@pytest.mark.parametrize("name", ["003-jdp", "003-ldp"])
def test_dp_ucbvi_as_printed(name):
    """003: Algorithm 1 (lines 2, 7, 9), Sections 5.1 and 5.2."""
    preset = get_preset(name)
    learner = continual_learner(preset, RiverSwim(states=X, horizon=H))
    scale = 3 * H * (math.log2(K) if name == "003-jdp" else 1.0)
    assert learner.mechanism.noise.distribution == Laplace(scale)
    if name == "003-jdp":
        assert learner.mechanism.noise.shape.base == 2
    settings = learner.settings
    assert settings.clip and settings.cap == "horizon"  # min{Q_prev, H, ...}
    assert not learner.problem.stationary
    iota = math.log(30 * H * X * A * K * H / settings.failure)
    assert learner.log(30 * learner.problem.shape.horizon) == pytest.approx(iota)
    table = learner.coefficients(np.array([500]))[0]
    row = {column.name.lower(): float(table[column]) for column in Column}
    E = row["error"]
    assert 4 * math.sqrt(learner.mechanism.noise_variance(500)["visits"]) < E
    assert row["variance"] == pytest.approx(2 * math.sqrt(iota))
    assert row["root"] == pytest.approx(math.sqrt(2 * iota))
    assert row["linear"] == pytest.approx(20 * H * X * E * iota)
    assert row["correction"] == pytest.approx((4 * math.sqrt(iota)) ** 2)
    assert row["near"] == pytest.approx(1000**2 * H**3 * X * A * iota**2)
    second = 1000**2 * X**4 * A**2 * iota**4 * (H**4 * E**2 + H**6)
    assert row["near2"] == pytest.approx(second)


@pytest.mark.parametrize("name", ["004-full-jdp", "004-full-ldp"])
def test_private_uc_o_reps_as_printed(name):
    """004: Theorem 3.3, after (3.1), Sections 5.1 (1), (2) and 5.2 (1), (2)."""
    preset = get_preset(name)
    made, settings = world(preset)
    pairs, acted = made.mechanism.size.states * A, made.mechanism.size.pairs
    assert pairs == acted + A  # X with x_H
    assert made.failure == pytest.approx(pairs / K)  # delta = XA/K
    assert made.log_iota == pytest.approx(math.log(pairs * K / (pairs / K)))  # iota = XAK/delta
    assert full_rate(made) == pytest.approx(math.sqrt(math.log(pairs / H) / K))
    assert (settings.rate, settings.confidence, settings.error) == (1.0, 1.0, 1.0)
    central = name.endswith("jdp")
    scale = 3 * H * (math.log2(K) if central else 1.0)
    counts, losses = made.mechanism.vectors()
    assert counts.noise.distribution == Laplace(scale)
    failure = made.failure / (acted * (X + 1) * K)
    quantiles = made.mechanism.error_bounds(failure, np.arange(1, 4))
    _, episodes = next(made.blocks(settings, 1.0))
    assert episodes.errors[:3] == pytest.approx(4 * quantiles)  # raw noise within E/4
    assert losses.noise.distribution.scale == pytest.approx(scale * LOSS_UNITS)
    if central:
        assert not counts.noise.padded and losses.noise.padded
        assert losses.noise.most == math.ceil(math.log2(K))  # 5.1.1


@pytest.mark.parametrize("name", ["004-bandit-jdp", "004-bandit-ldp"])
def test_private_uob_lbps_as_printed(name):
    """004: Theorem 4.2, (4.1), Section 5.1 (1), (3) and Section 5.2 (3)."""
    preset = get_preset(name)
    made, settings = world(preset)
    states = sum(made.mechanism.size.widths)  # X with x_H
    pairs = states * A
    assert made.failure == pytest.approx(pairs / K)  # delta = XA/K
    assert made.log_iota == pytest.approx(math.log(pairs * K / (pairs / K)))  # iota = XAK/delta
    assert settings.loss_estimator == "paper"
    assert bandit_rate(made, settings, 1.0) == pytest.approx(math.sqrt(states / K))
    assert made.mechanism.loss_noise == Laplace(3 * H).scaled(LOSS_UNITS)
    scale = 3 * H * (math.log2(K) if name.endswith("jdp") else 1.0)
    assert made.mechanism.noise.distribution == Laplace(scale)
    learner = UobLbps(made, settings)
    failure = made.failure / (pairs * K)
    printed = 3 * H * math.log(1 / failure)  # E' = 3H/eps·log(iota)
    assert learner.limit == pytest.approx(printed)


@pytest.mark.parametrize("name", preset_names())
def test_what_is_delivered_is_recomputed(name):
    """By the accounting of the plans, at the preset's reference problem; rounded up."""
    preset = get_preset(name)
    at = preset.reference
    trust = preset.trust_model(at.epsilon, at.delta)
    if preset.paper == "004":
        size = LayeredSize((1, *[at.states] * (at.horizon - 1), 1), at.actions)
        made = quietly(
            calibrate_layered, trust, size, at.episodes,
            feedback="full" if "full" in name else "bandit",
            padded_losses=bool(preset.settings.get("padded_losses", False)),
        )  # fmt: skip
    else:
        shape = Shape(states=at.states, actions=at.actions, horizon=at.horizon)
        stream = {
            "episodes": at.episodes,
            "stationary": preset.paper == "002",
            "last_transitions": preset.paper != "002",
        }
        made = (
            quietly(trust.calibrate, shape)
            if preset.trust == "shuffle"
            else quietly(trust.calibrate_stream, shape, **stream)
        )
    told = preset.if_only_sums or preset.delivers
    assert rounded_up(told.epsilon) == rounded_up(made.guarantee.epsilon)
    assert rounded_up(told.delta) == rounded_up(made.guarantee.delta)


@pytest.mark.parametrize(("name", "largest"), [("000", 4_096), ("001", 5_146)])
def test_integers_deliver_what_their_multisets_do(name, largest):
    """In the batches of a run of the reference the claim holds; in large ones nothing does."""
    preset = get_preset(name)
    at = preset.reference
    shape = Shape(states=at.states, actions=at.actions, horizon=at.horizon)
    printed, trust = batch_plan(preset).printed, preset.trust_model(at.epsilon)
    found = preset.view(shape, trust, [1, 2, 43, 1024, 4096, largest])
    assert found == preset.delivers
    assert found.why == printed.integers(at.delta, 18)
    assert found.refuted_from == printed.refuted_from(at.delta, 18)
    assert preset.view(shape, trust, [found.refuted_from - 1]).epsilon < at.epsilon
    for users in (found.refuted_from, math.ceil(printed.tau) + 1, 10**9):
        beyond = preset.view(shape, trust, [1, users])
        assert (beyond.epsilon, beyond.delta) == (None, 1.0)
    for users in (math.ceil(printed.tau) + 1, 10**9):
        assert max(integer_messages_delta(printed.bits(users))) >= 0.5


@pytest.mark.core
def test_sums_with_exact_noise_have_no_other_view():
    preset = get_preset("001")
    trust = preset.trust_model(1.0, calibration="exact")
    assert preset.view(Shape(states=2, actions=2, horizon=2), trust, [10**9]) is None


@pytest.mark.parametrize(("epsilon", "stated"), [(0.2, 0.2), (None, math.inf)])
def test_a_run_states_what_the_messages_deliver_and_not_their_sums(epsilon, stated):
    preset = get_preset("001")
    sums = discreet.Shuffle(epsilon=0.01, delta=1e-9).calibrate(Shape(2, 2, 2)).guarantee
    sums = replace(sums, claimed="(1, 1e-05)-SDP")
    found = preset.seen(sums, Delivered(epsilon, 1e-5, "why"))
    assert (found.epsilon, found.delta) == (stated, 1e-5)


@pytest.mark.parametrize("name", preset_names())
def test_an_entry_says_everything(name):
    entry = json.loads(json.dumps(get_preset(name).to_dict()))
    assert [key for key in KEYS if key not in entry] == []
    assert entry["deviations"] and all(entry["deviations"])
    shuffled = {"refuted_from"} if entry["trust"] == "shuffle" else set()
    assert set(entry["delivers"]) == {"epsilon", "delta", "why"} | shuffled
    assert ("delivers_if_only_sums_are_seen" in entry) == (entry["paper"] in ("000", "001"))
    assert all(2 <= len(one) <= 3 and all(one) for one in entry["constants"].values())
    assert not any(text.startswith("none") for text in entry["deviations"])
    assert get_learner(entry["learner"]).name == entry["learner"]


def test_an_unknown_paper_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="003-jdp"):
        get_preset("003-jpd")


@pytest.mark.parametrize(
    ("number", "several"), [("003", "'003-jdp' or '003-ldp'"), ("004", "'004-full-jdp' or")]
)
def test_the_number_of_a_paper_lists_its_presets(number, several):
    with pytest.raises(UnknownNameError, match=f"did you mean {several}"):
        get_preset(number)


def test_presets_load_without_numpy():
    assert loaded("import discreet.papers.presets", ["numpy"]) == []


@pytest.mark.parametrize("name", preset_names())
def test_a_paper_runs_by_its_name(name):
    """One argument; the result says which paper, and what it really delivers."""
    preset = get_preset(name)
    river = {"states": 3, "horizon": 3}
    small = dict(preset.reference.parameters) if preset.paper == "002" else river
    mdp = discreet.make(preset.reference.environment, **small)
    epsilon = 20.0 if "randomized" in name else 1.0
    result = quietly(discreet.run_paper, name, mdp, epsilon=epsilon, episodes=200)
    assert result.learner == preset.learner
    assert result.settings["paper"] == name
    assert result.settings["constants"] == "theory"
    assert result.mechanism == preset.mechanism
    if preset.if_only_sums:
        assert result.guarantee.epsilon < 0.2
        assert result.guarantee.delta == 1e-5
        assert "if only sums were seen: (0." in result.guarantee.assumptions[-2]
        largest = max(result.extras["batches"])
        assert f"the largest batch here had {largest} users" in result.guarantee.assumptions[-2]
    elif name not in ("002", "002-psrl", "002-gaussian"):
        assert epsilon < result.guarantee.epsilon < math.inf


def test_exact_noise_makes_the_claim_of_a_paper_true():
    mdp = RiverSwim(states=3, horizon=3)
    for name in ("001", "003-jdp"):
        result = discreet.run_paper(name, mdp, epsilon=1, calibration="exact", episodes=200)
        assert result.guarantee.epsilon == 1.0
        assert result.guarantee.claimed is None
    practical = discreet.run_paper(
        "001", mdp, epsilon=1, delta=1e-6, calibration="exact", episodes=200,
        structure="practical", constants="practical",
    )  # fmt: skip
    assert practical.guarantee.delta == 1e-6
    assert practical.settings["structure"] == "practical"


REPAIRED = {
    "002": (2.0, 0.0),
    "002-gaussian": (2.0, 0.9603),
    "002-randomized-response": (3.971, 0.0),
    "002-psrl": (2.0, 0.0),
}
"""What is delivered with the transition of the last step."""


@pytest.mark.parametrize("name", preset_names())
def test_literal_is_the_default_and_repairs_are_named(name):
    preset = get_preset(name)
    assert preset.settings.get("literal", False) == bool(preset.repairs)
    assert bool(preset.repairs) == (preset.paper != "003")
    if not preset.repairs:
        with pytest.raises(InvalidInputError, match="nothing to repair, got literal=False"):
            preset.chosen({"literal": False})
        return
    assert preset.chosen({})["literal"] is True
    assert preset.chosen({"constants": "theory"})["literal"] is True
    assert preset.chosen({"literal": False})["literal"] is False
    assert preset.chosen({"constants": "practical"})["literal"] is False  # no longer as printed
    if name in REPAIRED:
        said = f"({', '.join(rounded_up(value) for value in REPAIRED[name])})"
        assert preset.repairs[-1].endswith(said)


@pytest.mark.parametrize("name", REPAIRED)
def test_002_with_the_last_transition(name):
    preset, at = get_preset(name), get_preset(name).reference
    mdp = discreet.make(at.environment, **at.parameters)
    run = {"epsilon": at.epsilon, "episodes": 50}
    for literal, (epsilon, delta) in (
        (True, (preset.delivers.epsilon, preset.delivers.delta)),
        (False, REPAIRED[name]),
    ):
        found = quietly(discreet.run_paper, name, mdp, literal=literal, **run).guarantee
        assert rounded_up(found.epsilon) == rounded_up(epsilon)
        assert rounded_up(found.delta) == rounded_up(delta)


def test_the_printed_flip_tells_more_the_less_is_claimed_between_two_logarithms():
    """002, Table 1: above 1/2 between H·ln 2 and H·ln 3."""
    preset, shape = get_preset("002-randomized-response"), Shape(states=2, actions=2, horizon=2)
    options = {"episodes": 9, "stationary": True}

    def mechanism(epsilon, last):
        trust = preset.trust_model(epsilon)
        return quietly(trust.calibrate_stream, shape, last_transitions=last, **options)

    assert mechanism(2 * math.log(3) - 1e-3, False).flip > 0.5 > mechanism(2.2, False).flip
    for last, said in ((False, "42.87"), (True, "51.44")):
        assert f"{mechanism(1.4, last).guarantee.epsilon:.2f}" == said
        assert said in " ".join(preset.deviations)
    with pytest.raises(CalibrationError, match="not a probability"):
        mechanism(1.38, False)


def test_iota_of_the_print_and_of_its_union_bound():
    """X = 2, A = 2, H = 3, K = 1e13: 34.72 and 35.41."""
    problem = PublicFacts(Shape(states=2, actions=2, horizon=3), 10**13, np.array([True, False]))
    for literal, iota in ((True, 34.72), (False, 35.41)):
        settings = EliminationSettings.choose(get_preset("001").chosen({"literal": literal}))
        assert PrintedConstants(problem, settings).iota == pytest.approx(iota, abs=0.005)


def test_every_exploration_policy_of_000_has_as_many_users():
    """Algorithms 2 and 3 of 000: L_0 episodes each, as far as integers go."""
    problem = PublicFacts(Shape(states=2, actions=2, horizon=2), 600, np.array([True, False]))
    trust = get_preset("000").trust_model(1.0)
    played = {}
    for literal in (True, False):
        settings = get_preset("000").chosen({"literal": literal})
        learner = quietly(
            make_batch_learner,
            get_learner("sdp-pe"),
            problem,
            trust,
            np.random.default_rng(0),
            settings,
        )
        learner._batches = len(learner.script) - 1
        played[literal] = learner.ask()
    policy, users = played[True].policy, played[True].users
    assert policy.stratified and not played[False].policy.stratified
    each = policy.shares(users)
    assert each.sum() == users and np.allclose(each, users * policy.weights)


def test_names_are_unique_and_in_the_order_of_the_papers():
    assert list(PRESETS) == [preset.name for preset in PRESETS.values()]
    papers = [preset.paper for preset in PRESETS.values()]
    assert papers == sorted(papers) and set(papers) == {"000", "001", "002", "003", "004"}


def test_assumption_4_with_paper_001():
    """200 of 200 draws at X = 24, H = 2, as in `tests/learners/elimination`."""
    preset = get_preset("001")
    mdp = RandomMDP(states=24, actions=2, horizon=2, seed=3)
    problem = PublicFacts(mdp.shape, K, mdp.initial > 0)
    settings = EliminationSettings.choose(preset.settings)
    explorer = object.__new__(PaperElimination)  # its list of 2^25 policies is not needed
    explorer.settings, explorer.printed = settings, PrintedConstants(problem, settings)
    mechanism = batch_plan(preset, mdp.shape)
    counts = sample_counts(mdp, uniform_policy(mdp.shape), 2_000, np.random.default_rng(1))
    held = 0
    for seed in range(200):
        sampler = SimulationSampler(np.random.default_rng(seed))
        pool = CountPool.of_release(mechanism.release(counts, sampler=sampler))
        processed, E = explorer.processed(pool), explorer.error(pool)
        visits = processed.transitions.sum(axis=-1)
        near = [
            np.abs(visits - counts.visits).max(),
            np.abs(processed.transitions - counts.transitions).max(),
            np.abs(processed.rewards - counts.rewards).max(),
        ]
        above = (visits >= counts.visits).all() and (processed.transitions > 0).all()
        held += max(near) <= E and above
    assert held == 200
