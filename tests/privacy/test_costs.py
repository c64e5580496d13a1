"""`discreet.privacy.calibrate` and the command that prints it."""

import json

import pytest
from typer.testing import CliRunner

from discreet import Central, Local, NoPrivacy, Shuffle
from discreet.cli.app import make_app
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import calibrate
from discreet.privacy.costs import run_traffic, usual_batch
from discreet.privacy.statistics import one_action

SHAPE = Shape(states=4, actions=2, horizon=6)
SHUFFLE = Shuffle(epsilon=1, delta=1e-6, mechanism="bits")


@pytest.mark.core
def test_shuffle_report():
    report = calibrate(SHUFFLE, SHAPE, users=20_000)
    assert report.noise_std["visits"] == pytest.approx(25.37, rel=0.01)
    assert report.expected_count == {"transitions": 625.0, "visits": 2500.0, "rewards": 2500.0}
    assert report.delivered_by_paper["epsilon"] == pytest.approx(0.055, rel=0.01)
    assert report.claimed_by_paper == "(1, 1e-06)-SDP"
    assert report.messages_per_user == 288  # of one action per state
    assert report.bytes_per_user == 288 * 52
    assert report.noise_bits["fair_bits_in_all"] == pytest.approx(2574, rel=0.01)


@pytest.mark.filterwarnings("ignore::discreet.errors.DiscreetWarning")
@pytest.mark.parametrize(
    ("trust", "schedule"),
    [
        (Shuffle(epsilon=1, delta=1e-5, mechanism="bits", calibration="paper-000"), "batch"),
        (Shuffle(epsilon=1, delta=1e-5, mechanism="bits", calibration="paper-001"), "batch"),
        (Local(epsilon=1, mechanism="laplace", calibration="paper-002"), "continual"),
        (Local(epsilon=1, mechanism="laplace", calibration="paper-003"), "continual"),
    ],
)
def test_a_paper_is_compared_with_itself_not_with_another(trust, schedule):
    """000 does not split beta, 002 prints twice the scale of 003: each has its own figures."""
    report = calibrate(trust, SHAPE, users=20_000, schedule=schedule)
    assert report.paper_noise_std == pytest.approx(report.noise_std)
    assert report.delivered_by_paper["epsilon"] == report.guarantee.epsilon


@pytest.mark.core
def test_report_of_shuffle_by_groups():
    report = calibrate(Shuffle(epsilon=1, delta=1e-6), SHAPE, users=20_000)
    assert report.mechanism == "histogram"
    assert (report.messages_per_user, report.bytes_per_user) == (22, 22 * 52)
    assert report.noise_std["transitions"] == pytest.approx(19.84, rel=1e-3)
    assert report.noise_std["rewards"] == pytest.approx(14.03, rel=1e-3)
    assert report.noise_std["visits"] == pytest.approx(2**0.5 * 19.84, rel=1e-3)
    assert report.derived == ("visits",)
    assert report.noise_cells["lambda"] == "393799/1000"
    assert report.noise_cells["of"]["transitions"]["cells"] == 17
    assert report.parties["if both collude"].startswith("none")
    assert report.delivered_by_paper["epsilon"] == pytest.approx(0.055, rel=0.01)
    asked = calibrate(
        Shuffle(epsilon=1, delta=1e-6),
        SHAPE,
        users=20_000,
        statistics=("transitions", "visits", "rewards"),
    )
    assert asked.derived == ()
    assert asked.noise_std["visits"] == asked.noise_std["transitions"] > 19.9
    assert asked.noise_cells["groups"] == 17


def test_a_whole_run_costs_more_than_its_last_batch():
    mechanism = usual_batch(Shuffle(epsilon=1, delta=1e-6), SHAPE)
    run = run_traffic(mechanism, [100, 1_000, 18_900])
    sent = [mechanism.traffic(n, support=one_action(SHAPE)).messages for n in (100, 1_000, 18_900)]
    assert run["most_messages_per_user"] == sent[0] > sent[1] > sent[2] == 22
    assert run["users_of_the_dearest_batch"] == 100
    mean = (100 * sent[0] + 1_000 * sent[1] + 18_900 * 22) / 20_000
    assert run["messages_per_user"] == pytest.approx(mean)
    assert run["bytes_in_all"] == pytest.approx(52 * 20_000 * mean)
    assert run_traffic(usual_batch(Central(1), SHAPE), [5]) is None
    assert run_traffic(mechanism, []) is None


def test_both_shuffles_are_compared_under_the_same_policy():
    bits = calibrate(SHUFFLE, SHAPE, users=20_000, statistics=("transitions", "rewards"))
    assert (bits.messages_per_user, bits.bytes_per_user) == (240, 240 * 52)


@pytest.mark.parametrize(
    ("mechanism", "size"),
    [
        ("split", 38 + 4 + 4),
    ],
)
def test_local_reports_have_a_size(mechanism, size):
    trust = Local(epsilon=1, delta=1e-6, mechanism=mechanism)
    report = calibrate(trust, SHAPE, users=100)
    assert (report.messages_per_user, report.bytes_per_user) == (1, size)


def test_printed_local_noise_delivers_twice_its_epsilon():
    trust = Local(epsilon=1, mechanism="laplace")
    report = calibrate(trust, SHAPE, users=100, schedule="continual")
    assert report.messages_per_user is report.bytes_per_user is None
    assert report.delivered_by_paper == {"epsilon": 2.0, "delta": 0.0}
    assert report.noise_std_per_user["visits"] == pytest.approx(50.9, rel=0.01)


@pytest.mark.parametrize("schedule", ["continual"])
def test_printed_noise_is_of_the_mechanism_asked_for(schedule):
    report = calibrate(Local(1, 1e-5, mechanism="gaussian"), SHAPE, users=100, schedule=schedule)
    assert report.paper_noise_std["visits"] == pytest.approx(10 * SHAPE.horizon)  # H/eps each
    assert "paper 002 (Gaussian)" in report.claimed_by_paper


def test_reports_are_plain_json():
    for trust in (SHUFFLE, Central(epsilon=1, delta=1e-6), Central(epsilon=1), NoPrivacy()):
        values = json.loads(json.dumps(calibrate(trust, SHAPE, users=10).to_dict()))
        assert {
            "guarantee",
            "noise_std",
            "paper_noise_std",
            "delivered_by_paper",
            "messages_per_user",
            "bytes_per_user",
        } <= set(values)
        assert values["shape"] == {"states": 4, "actions": 2, "horizon": 6}


def test_no_paper_prints_a_central_batch():
    report = calibrate(Central(epsilon=1, delta=1e-6), SHAPE, users=100)
    assert report.paper_noise_std is None
    assert report.delivered_by_paper is None
    assert report.messages_per_user is None


def test_stream_noise_is_that_of_the_worst_time():
    trust = Central(epsilon=1, mechanism="tree-laplace")
    report = calibrate(trust, SHAPE, users=20_000, schedule="continual")
    assert report.noise_std["visits"] == pytest.approx(2857, rel=0.01)


@pytest.mark.parametrize(
    ("trust", "shape", "changes", "sentence"),
    [
        ("central", SHAPE, {}, r"got trust='central'; write trust=Central\("),
        ((4, 2, 6), SHAPE, {}, r"got trust=\(4, 2, 6\)"),
        (Shuffle, SHAPE, {}, r"the class Shuffle; write trust=Shuffle\("),
        (
            SHUFFLE,
            (4, 2, 6),
            {},
            r"got shape=\(4, 2, 6\); write .* Shape\(states",
        ),
        (SHUFFLE, SHAPE, {"stationary": "yes"}, "stationary to be True or False"),
    ],
)
def test_what_is_no_trust_model_and_no_shape(trust, shape, changes, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        calibrate(trust, shape, users=100, **changes)


def test_a_trust_model_takes_a_shape():
    with pytest.raises(InvalidInputError, match="Expected a Shape"):
        SHUFFLE.calibrate((4, 2, 6))
    with pytest.raises(InvalidInputError, match="stationary to be True or False"):
        Central(1).calibrate_stream(SHAPE, episodes=9, stationary="no")


def test_bad_requests():
    with pytest.raises(InvalidInputError, match="users"):
        calibrate(SHUFFLE, SHAPE, users=0)
    with pytest.raises(UnsupportedError, match="no continual release"):
        calibrate(SHUFFLE, SHAPE, users=10, schedule="continual")
    with pytest.raises(InvalidInputError, match="schedule"):
        calibrate(SHUFFLE, SHAPE, users=10, schedule="waltz")
    with pytest.raises(UnsupportedError, match="streams only"):
        calibrate(SHUFFLE, SHAPE, users=10, stationary=True)


GOLDEN = [  # H, eps, shuffle, central Gaussian, Laplace, printed shuffle (n <= tau)
    (2, 0.1, 125.8, 125.8, 169.7, 1222),
    (2, 1, 14.65, 14.63, 17.0, 122),
    (6, 0.1, 218.0, 217.8, 509, 3780),
    (6, 0.5, 48.4, 48.4, 102, 756),
    (6, 1, 25.37, 25.35, 50.9, 378),
    (6, 2, 13.4, 13.4, 25.5, 189),
    (20, 1, 46.3, 46.3, 170, 1301),
]


@pytest.fixture(scope="module")
def run():
    runner = CliRunner()
    return lambda *words: runner.invoke(make_app(), ["calibrate", *map(str, words)])


@pytest.mark.parametrize(("horizon", "epsilon", "shuffle", "gaussian", "laplace", "paper"), GOLDEN)
def test_golden_values_from_the_command_line(
    run, horizon, epsilon, shuffle, gaussian, laplace, paper
):
    size = ("--horizon", horizon, "--epsilon", epsilon, "--users", 1000, "--json")
    answer = json.loads(run("--trust", "shuffle", "--mechanism", "bits", *size).stdout)
    assert answer["noise_std"]["visits"] == pytest.approx(shuffle, rel=0.01)
    assert answer["paper_noise_std"]["visits"] == pytest.approx(paper, rel=0.01)
    central = json.loads(run("--trust", "central", *size).stdout)
    assert central["noise_std"]["rewards"] == pytest.approx(gaussian, rel=0.01)
    pure = json.loads(run("--trust", "central", "--mechanism", "laplace", *size).stdout)
    assert pure["noise_std"]["transitions"] == pytest.approx(laplace, rel=0.01)
    assert pure["guarantee"]["delta"] == 0


def test_the_table_names_guarantee_cost_and_papers(run):
    text = run("--trust", "shuffle").stdout
    for words in (
        "(1, 1e-06)-SDP, one user's whole episode, replace-one",
        "22 messages, 1,144 bytes",
        "visits (derived)      28.06",
        "If both collude: none",
        "deliver (0.05542, 1e-06)",
        "assuming that the shuffler does not collude",
    ):
        assert words in text


def test_comparison_of_trust_models(run):
    answer = json.loads(run("--json").stdout)
    assert [(r["trust"], r["schedule"]) for r in answer["results"]] == [
        ("central", "batch"),
        ("shuffle", "batch"),
        ("local", "batch"),
        ("central", "continual"),
        ("local", "continual"),
    ]
    assert "Neighbours: replace-one" in run().stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--trust", "shufle"), "did you mean 'shuffle'"),
        (("--trust", "shuffle", "--epsilon", "0"), "epsilon > 0"),
        (("--trust", "shuffle", "--epsilon", "nan"), "finite"),
        (("--trust", "shuffle", "--delta", "1"), "delta"),
        (("--trust", "shuffle", "--delta", "0"), "delta > 0"),
        (("--trust", "shuffle", "--users", "0"), "users"),
        (("--trust", "shuffle", "--honest", "0"), "honest"),
        (("--trust", "central", "--statistics", "visits,visits"), "distinct"),
        (("--mechanism", "laplace"), "--trust"),
        (("--schedule", "waltz"), "schedule"),
    ],
)
def test_bad_input_is_one_sentence(run, words, message):
    result = run(*words)
    assert result.exit_code != 0
    assert message in str(result.exception)
