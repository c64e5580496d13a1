"""One table of mechanisms: names, schedules, purity, and mechanisms of one's own."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError, UnknownNameError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle, load_encoder
from discreet.privacy.mechanisms import registry
from discreet.privacy.mechanisms.additive import AddedContinually, AddedOnce, AdditiveBatch
from discreet.privacy.mechanisms.base import BatchMechanism, ContinualMechanism
from discreet.privacy.mechanisms.one_shot import laplace_noise
from discreet.privacy.mechanisms.registry import mechanisms
from discreet.privacy.mechanisms.tree import signed_nodes
from discreet.privacy.sampling.samplers import SecureSampler
from discreet.privacy.trust import TRUST_MODELS
from helpers.calibrating import calibrated

SHAPE = Shape(states=2, actions=2, horizon=2)


mine = AddedOnce(laplace_noise)


@pytest.mark.core
@pytest.mark.parametrize("mechanism", registry.everything(), ids=lambda m: f"{m.trust}-{m.name}")
def test_every_entry_loads_a_plan_of_its_schedule(mechanism):
    assert mechanism.trust in TRUST_MODELS
    trust = TRUST_MODELS[mechanism.trust]
    kind = {"batch": BatchMechanism, "continual": ContinualMechanism}[mechanism.schedule]
    options = {} if mechanism.trust == "none" else {"epsilon": 1, "delta": 1e-3}
    if options:
        options["mechanism"] = mechanism.name
    made = calibrated(trust(**options), SHAPE, schedule=mechanism.schedule, episodes=4)
    assert isinstance(made, kind) and made.spec == mechanism and made.name == mechanism.name


@pytest.mark.core
@pytest.mark.parametrize(
    "mechanism",
    [m for m in registry.everything() if m.trust != "none"],
    ids=lambda m: f"{m.trust}-{m.schedule}-{m.name}",
)
def test_pure_mechanisms_deliver_no_delta_and_others_use_it(mechanism):
    trust = TRUST_MODELS[mechanism.trust](1, 1e-3, mechanism=mechanism.name)
    options = {"schedule": mechanism.schedule} | (
        {"episodes": 4} if mechanism.schedule == "continual" else {}
    )
    assert calibrated(trust, SHAPE, **options).guarantee.delta == (0.0 if mechanism.pure else 1e-3)


@pytest.fixture
def empty_place(monkeypatch):
    monkeypatch.setattr(registry, "_MECHANISMS", list(registry.everything()))


@pytest.mark.core
@pytest.mark.usefixtures("empty_place")
def test_a_mechanism_of_your_own_is_chosen_by_its_name():
    registry.register(
        registry.MechanismSpec("central", "batch", "mine", f"{__name__}:mine", pure=True)
    )
    assert isinstance(Central(1, mechanism="mine").calibrate(SHAPE), AdditiveBatch)
    with pytest.raises(InvalidInputError, match="choose another name"):
        registry.register(registry.MechanismSpec("central", "batch", "mine", f"{__name__}:mine"))
    with pytest.raises(UnknownNameError, match="mine"):
        Local(1, mechanism="mine").calibrate(SHAPE)


@pytest.mark.core
@pytest.mark.usefixtures("empty_place")
def test_a_mechanism_of_a_script_is_its_class():
    class Own(AdditiveBatch):
        """In no module that could be named."""

    own = AddedOnce(laplace_noise, kind=Own)
    registry.register(registry.MechanismSpec("central", "batch", "own", own, pure=True))
    mechanism = Central(1, mechanism="own").calibrate(SHAPE)
    assert (type(mechanism), mechanism.name) == (Own, "own")


@pytest.mark.core
@pytest.mark.usefixtures("empty_place")
@pytest.mark.parametrize(("trust", "by_devices"), [("local", False), ("central", True)])
def test_noise_of_the_wrong_party_is_refused(trust, by_devices):
    """A curator's noise for n users would be too little by the root of n."""
    wrongs = {"continual": AddedContinually(signed_nodes, by_devices=by_devices)}
    if not by_devices:
        wrongs["batch"] = AddedOnce(laplace_noise)
    for schedule, wrong in wrongs.items():
        registry.register(registry.MechanismSpec(trust, schedule, "mine", wrong))
        with pytest.raises(InvalidInputError, match="change by_devices"):
            calibrated(
                TRUST_MODELS[trust](1, 1e-3, mechanism="mine"), SHAPE, schedule=schedule, episodes=4
            )


@pytest.mark.core
@pytest.mark.usefixtures("empty_place")
def test_a_curators_tree_is_no_noise_of_devices_and_sums_are_not_shuffled():
    tree = AddedContinually(signed_nodes, by_devices=True)
    registry.register(registry.MechanismSpec("local", "continual", "mine", tree))
    with pytest.raises(InvalidInputError, match="TreeNoise, which a curator draws"):
        Local(1, mechanism="mine").calibrate_stream(SHAPE, episodes=4)
    registry.register(registry.MechanismSpec("shuffle", "batch", "mine", mine))
    with pytest.raises(InvalidInputError, match="mechanism of messages under 'shuffle'"):
        Shuffle(1, 1e-3, mechanism="mine").calibrate(SHAPE)


class Careless:
    """A calibrator that ignores what it is asked for."""

    audit = mine.audit

    def __init__(self, *, spec=None, trust=None):
        self.spec, self.trust = spec, trust

    def calibrate(self, spec, trust, request):
        return mine.calibrate(self.spec or spec, self.trust or trust, request)


@pytest.mark.core
@pytest.mark.usefixtures("empty_place")
@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (Careless(trust=Central(1000)), "Expected epsilon <= 1 and"),
        (
            Careless(spec=registry.mechanisms("central", "batch")["laplace"]),
            "calls itself 'laplace'",
        ),
        (Careless(trust=Local(1)), "delivers .*LDP"),
    ],
)
def test_what_was_not_asked_for_is_refused_whoever_calibrates(wrong, match):
    registry.register(registry.MechanismSpec("central", "batch", "mine", wrong, pure=True))
    with pytest.raises(InvalidInputError, match=match):
        Central(1, 1e-3, mechanism="mine").calibrate(SHAPE)


@pytest.mark.core
def test_defaults_come_first_and_unknown_names_get_a_suggestion():
    assert [
        next(iter(registry.mechanisms(*key)))
        for key in (
            ("central", "batch"),
            ("central", "continual"),
            ("local", "batch"),
            ("local", "continual"),
        )
    ] == ["gaussian", "toeplitz", "split", "laplace"]
    assert registry.mechanisms("shuffle", "continual") == {}
    with pytest.raises(UnknownNameError, match="bits"):
        Shuffle(1, 1e-6, mechanism="bit").calibrate(SHAPE)
    with pytest.raises(UnknownNameError, match="split"):
        load_encoder({"encoder": "splitt"})


@pytest.mark.core
@pytest.mark.parametrize(
    "mechanism",
    [m for m in registry.everything() if m.trust in ("local", "shuffle") and m.schedule == "batch"],
    ids=lambda m: f"{m.trust}-{m.name}",
)
def test_every_encoder_is_found_again_by_its_description(mechanism):
    plan = TRUST_MODELS[mechanism.trust](1, 1e-3, mechanism=mechanism.name).calibrate(SHAPE)
    encoder = plan.encoder(10)
    assert type(load_encoder(encoder.to_dict())) is type(encoder)
    for nothing in (None, [], "split", 3):
        for read in (load_encoder, type(encoder).from_dict):
            with pytest.raises(InvalidInputError, match=r"^badDescription: Expected a dictionary"):
                read(nothing)


@pytest.mark.core
def test_which_mechanisms_serve_losses_and_which_randomise_data():
    known = registry.everything()
    assert {(m.trust, m.schedule, m.name) for m in known if m.losses} == {
        ("central", "continual", "toeplitz"),
        ("central", "continual", "tree-signed"),
        ("central", "continual", "tree-laplace"),
        ("local", "continual", "laplace"),
        ("local", "continual", "gaussian"),
    }
    assert {(m.trust, m.name) for m in known if m.randomises} == {
        ("local", "randomized-response"),
        ("local", "one-step"),
        ("local", "split"),
    }


# --- the operating system's randomness, one release at a time

TINY = Shape(states=2, actions=1, horizon=2)
TRUSTS = [
    *(Central(1, 1e-3, mechanism=name) for name in mechanisms("central", "continual")),
    *(Local(1, 1e-1, mechanism=name) for name in mechanisms("local", "continual")),
]


@pytest.mark.parametrize("trust", TRUSTS, ids=lambda t: f"{t.notion}-{t.mechanism}")
def test_secure_streams_are_stamped_and_plausible(trust):
    mechanism = trust.calibrate_stream(TINY, episodes=8)
    release = mechanism.open(SecureSampler())
    transitions = np.zeros(TINY.transitions, np.int64)
    transitions[:, 0, 0, 1] = 1
    user = Counts(1, transitions, transitions.sum(axis=-1))
    for _ in range(8):
        private = release.add(user)
    assert not private.guarantee.simulated
    error = np.concatenate(
        [
            (private.transitions - 8 * transitions).ravel(),
            (private.visits - 8 * user.visits).ravel(),
            (private.rewards - 8 * user.rewards).ravel(),
        ]
    )
    assert np.abs(error).max() <= mechanism.error_bound(8, 1e-8)  # 16 counters: 1.6e-7
    assert error.any()
    with pytest.raises(InvalidInputError):
        mechanism.noise_variance(9)
    with pytest.raises(InvalidInputError):
        mechanism.error_bound(0, 0.1)
