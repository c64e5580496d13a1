"""Charters: what is guaranteed, what is refused, and whether the noise of a batch is covered."""

from fractions import Fraction

import pytest

from discreet.device import load
from discreet.errors import InvalidInputError
from discreet.service.protocol.charter import Charter, layout_of
from helpers.services import charter

OF = charter()


def test_the_bytes_are_the_charter():
    assert Charter.from_bytes(OF.data) == OF
    assert charter().id == OF.id != charter(purpose="b").id
    assert (OF.states, OF.actions, OF.horizon) == (2, 2, 2)


def test_a_charter_says_which_actions_are_possible_if_not_all_are():
    state, action = OF.names["states"][1], OF.names["actions"][0]
    masked = charter(allowed=({"states": [state], "actions": [action]},))
    assert Charter.from_bytes(masked.data).data == masked.data and masked.id != OF.id
    assert b"allowed" not in OF.data
    with pytest.raises(InvalidInputError, match="Expected allowed states"):
        charter(allowed=({"states": ["nowhere"], "actions": [action]},))


def test_the_promise_is_never_rounded_to_something_smaller():
    said = charter(epsilon=Fraction("1.00000001"), delta=Fraction("1.0000001e-6")).guarantee
    assert said == "(1.001, 1.01e-06)-SDP, one user's whole episode, replace-one"


def test_who_returns_is_protected_as_one_person_and_known_to_the_shuffler():
    twice = charter(participations=2)
    assert Charter.from_bytes(twice.data) == twice
    assert twice.guarantee.endswith("-SDP, one person, up to 2 episodes, replace-one")
    [linked] = [what for what in twice.collusion.values() if what not in OF.collusion.values()]
    assert linked.startswith("which batches one ticket was used in")
    assert OF.data.count(b"participations") == 1  # in the certificate: said only if there are more
    for wrong in (b"1", b"0", b"true", b"2.0"):
        text = twice.data.replace(b'"participations":2', b'"participations":' + wrong)
        assert text != twice.data
        with pytest.raises(InvalidInputError):
            Charter.from_bytes(text)


def test_no_more_users_may_collude_than_are_covered():
    [covered] = [who for who in charter(honest=Fraction("0.3333334")).collusion if "up to" in who]
    assert covered == "up to 66.66% of a batch's users with analyser"
    assert "up to 10% of a batch's users with analyser" in charter(honest=Fraction(9, 10)).collusion


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"min_users": 1}, "two users"),
        ({"patience": 0}, "a second"),
        ({"participations": 0}, "one participation"),
        ({"honest": Fraction(0)}, "honest fraction"),
        ({"honest": Fraction(3, 2)}, "honest fraction"),
        ({"delta": Fraction(0)}, "delta"),
        ({"epsilon": Fraction(0)}, "epsilon"),
        ({"mean": Fraction(0)}, "mean above zero"),
        ({"start": (1, 0)}, "start states"),
        ({"start": (7,)}, "start states"),
        ({"start": ()}, "start states"),
        ({"signing_key": b"x"}, "32 bytes"),
        ({"names": {"states": "ab"}}, "names of states"),
        ({"names": {"states": "aa", "actions": "xy", "steps": "12"}}, "every name once"),
        ({"statistics": ()}, "statistics"),
    ],
)
def test_what_cannot_be_promised_is_refused(change, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        charter(**change)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"purpose":"a test",', b""),
        (b'"min_users":3', b'"min_users":true'),
        (b'"min_users":3', b'"min_users":3.0'),
        (b'"min_users":3', b'"min_users": 3'),
        (b'"rehearsal":false', b'"rehearsal":0'),
        (b'"epsilon":"4"', b'"epsilon":"8/2"'),
        (b'"epsilon":"4"', b'"epsilon":4'),
        (b'"version":1}', b'"version":1,"x":1}'),
        (b'"states":["0","1"]', b'"states":[0,1]'),
        (b'"kind":"charter"', b'"kind":"letter"'),
        (b'"honest":"1"', b'"honest":"1","honest":"1"'),
    ],
)
def test_other_words_are_no_charter(old, new):
    assert old in OF.data
    with pytest.raises(InvalidInputError):
        Charter.from_bytes(OF.data.replace(old, new))


def test_more_users_share_the_noise_and_dishonest_ones_raise_it():
    half = charter(honest=Fraction(1, 2))
    assert OF.intensity(10) == OF.mean
    assert half.intensity(10) == 2 * OF.mean
    assert half.intensity(11) == OF.mean * Fraction(11, 5)
    with pytest.raises(InvalidInputError, match="honest"):
        half.intensity(1)


def test_devices_of_both_languages_take_the_description():
    policy = [[0, 1], [1, 0]]
    description = OF.description(policy, 100)
    assert load(description).groups == OF.device(policy, 100).groups
    assert layout_of(OF.device(policy, 100).groups)[0][0] == 3


def test_the_certificate_proves_the_charter():
    assert 0 < OF.verify() <= OF.delta


@pytest.mark.parametrize("honest", [Fraction(1), Fraction(9, 10), Fraction(1, 3)])
def test_no_report_that_a_charter_allows_is_longer_than_those_of_its_least_batch(honest):
    of = charter(honest=honest)
    bodies = [
        52 * of.device(policy, users).messages
        for users in [*range(of.min_users, 60), 1000]
        for policy in ([[0, 1], [1, 0]], [[1, 1], [0, 0]])
    ]
    assert max(bodies) == bodies[0] == of.largest_body


def test_a_charter_that_cannot_be_read_names_its_file(tmp_path):
    (tmp_path / "charter.json").write_bytes(charter().data)
    assert Charter.read(tmp_path / "charter.json") == charter()
    with pytest.raises(InvalidInputError, match=r"Cannot read .*nothing\.json"):
        Charter.read(tmp_path / "nothing.json")


POLICY = [[0, 1], [1, 0]]


@pytest.mark.parametrize("users", [3, 50])
def test_the_noise_that_the_charter_asks_for_is_covered(users):
    OF.check_noise(users, OF.device(POLICY, users).groups)


def test_a_class_with_one_noise_message_less_is_refused():
    groups = OF.device(POLICY, 3).groups
    for place, one in enumerate(groups):
        fewer = list(groups)
        fewer[place] = one._replace(noise=one.noise - 1)
        with pytest.raises(InvalidInputError):
            OF.check_noise(3, fewer)


def test_the_noise_of_a_larger_batch_is_too_little_for_a_smaller_one():
    with pytest.raises(InvalidInputError):
        OF.check_noise(4, OF.device(POLICY, 40).groups)


def test_only_the_honest_half_of_the_users_is_counted_on():
    groups = OF.device(POLICY, 40).groups
    half = charter(honest=Fraction(1, 2))
    with pytest.raises(InvalidInputError):
        half.check_noise(40, groups)
    half.check_noise(40, half.device(POLICY, 40).groups)
