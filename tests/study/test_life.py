"""The life of a study: prospects, drop-outs, issues, the policy and its value, the end."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.special import gammaln

import discreet
from discreet.errors import InvalidInputError, StudyError
from discreet.learners.base import Batch
from discreet.mdp import evaluate
from discreet.mdp.policies import DeterministicPolicy
from helpers.studies import RIVER, advance, begin, episodes_of, names, reports_of

SHUFFLE = discreet.Shuffle(epsilon=1, delta=1e-6)


def test_a_study_says_before_it_begins_what_it_can_do(tmp_path):
    trial = {"learner": "trial", "aim": "policy", "episodes": 5_000}
    found = begin(tmp_path / "a.db", **trial).expected
    least = found.smallest_difference
    assert 0.03 < least < 0.15
    assert f"earns about {least:.2g} more than today's" in found.sentence
    assert "where it leads to others, fewer do" in found.sentence
    scaled = begin(tmp_path / "c.db", **trial, table={"reward_range": [-10, 90]}).expected
    assert scaled.smallest_difference == pytest.approx(100 * least)
    local = begin(tmp_path / "b.db", discreet.Local(0.1), **trial).expected
    assert local.smallest_difference is None
    assert local.sentence.startswith("Too small: 5,000 users are too few to tell two actions")


def test_what_is_not_simulated_is_said(tmp_path):
    large = begin(tmp_path / "b.db", learner="trial", states=300).expected
    assert large.smallest_difference is None
    assert "takes more than seconds" in large.sentence


@pytest.mark.parametrize("trust", [discreet.Central(1, 1e-6), discreet.Local(1)], ids=str)
@pytest.mark.parametrize("learner", ["flow-ucb", "pe"])
def test_fewer_users_may_come_and_that_is_written_down(tmp_path, learner, trust):
    study = begin(tmp_path / "study.db", trust, learner=learner, episodes=300)
    asked = study.batch_size
    advance(study, 0, users=asked - 3)
    assert study.users == asked - 3
    entry = study.ledger[-1]
    assert (entry["users"], entry["asked"]) == (asked - 3, asked)
    while not study.finished:
        advance(study, study.batches, users=max(1, study.batch_size - 1))
    assert 270 < study.users < 300
    assert "who does not come is not replaced" in study.ending
    study.verify()


def test_under_shuffle_exactly_those_who_were_asked_for(tmp_path):
    study = begin(tmp_path / "study.db", SHUFFLE, episodes=400)
    few = study.batch_size - 2
    data = episodes_of(study, 0, few)
    with pytest.raises(StudyError, match=rf"hides among exactly .* reissue\(users={few}\)"):
        study.tell(reports_of(study, data), users=names(study, few), token=study.token)
    least = study.min_users
    with pytest.raises(StudyError, match=rf"got {least - 1}; .* reissue\(users={least}\)"):
        study.tell([], users=names(study, least - 1), token=study.token)
    study.reissue(few)
    assert study.batch_size == few
    study.tell(reports_of(study, data), users=names(study, few), token=study.token)
    assert study.users == few
    assert study.batch_size != few or study._issue["users"] == 0


def test_a_batch_that_is_issued_again_has_another_token(tmp_path):
    study = begin(tmp_path / "study.db", SHUFFLE, episodes=400)
    old, policy, reports = study.token, study.ask(), reports_of(study, episodes_of(study, 0))
    study.reissue()
    assert study.token != old
    assert study.ask().key == policy.key
    with pytest.raises(StudyError, match="another batch or under another policy"):
        study.tell(reports, users=names(study), token=old)
    again = discreet.open_study(study.path, study.head)
    assert again.token == study.token
    assert again.ledger[-1]["kind"] == "reissue"
    advance(again, 1)
    assert again.guarantee.epsilon == 1


@pytest.mark.parametrize(
    ("trust", "returning", "charged"),
    [
        (SHUFFLE, "nobody", 1),
        (SHUFFLE, "unseen", 1),
        (discreet.Central(1, 1e-6, mechanism="gaussian"), "seen", 2),
        (discreet.Local(1, 1e-6), "seen", 2),
    ],
)
def test_who_reports_again_is_charged_unless_nothing_was_seen(tmp_path, trust, returning, charged):
    study = begin(tmp_path / "study.db", trust, episodes=400)
    before = study.guarantee
    study.reissue(returning=returning)
    study = discreet.open_study(study.path, study.head)
    assert study.guarantee.epsilon == charged * before.epsilon
    assert study.guarantee.delta == charged * before.delta
    advance(study)
    assert study.guarantee.epsilon == charged * before.epsilon  # for ever
    assert study.ledger[1]["returning"] == returning


@pytest.mark.parametrize("trust", [discreet.Central(1, 1e-6), discreet.Local(2)], ids=["c", "l"])
@pytest.mark.parametrize("asked", [None, 0, -3, -(10**9)], ids=["again", "all", "fewer", "one"])
@pytest.mark.parametrize("come", [0, 2])
def test_every_report_that_was_seen_is_charged_however_few_are_asked_again(
    tmp_path, trust, asked, come
):
    """And however few of them come; each time anew, and for ever."""
    study, seen = begin(tmp_path / "study.db", trust, episodes=4_000), 0
    for batch in range(2):
        for _ in range(batch + 1):
            users = None if asked is None else max(study.batch_size + asked, 1)
            study.reissue(users, returning="seen")
            seen += 1
            assert study.guarantee.epsilon == (seen + 1) * trust.epsilon
        study.reissue(users, returning="nobody")
        advance(study, users=max(study.batch_size - come, 1))
        study = discreet.open_study(study.path, study.head)
        assert study.guarantee.epsilon == (seen + 1) * trust.epsilon
        assert study.ledger[-1]["guarantee"] == str(study.guarantee)


def delta_of_views(plan, users, *seen, epsilon):
    """At least the delta of views of ``seen`` of ``users`` reports, by the protocol alone.

    One user's unit is in cell a or in cell b of every class, among the noise messages of all who
    were seen, each in a and in b with probability q. Then P(x, y)/Q(x, y) = x/y, and the other
    cells say nothing more. Losses are rounded down to a grid, which lowers delta by little.
    """
    step, total, certain = 1e-3, np.ones(1), 1.0
    for some, one in itertools.product(seen, plan.groups(users)):
        trials, q = some * one.noise, one.weight / 2**32 / one.cells
        x, y = np.meshgrid(np.arange(1.0, trials + 2), np.arange(trials + 1.0), indexing="ij")
        x, y = x[x - 1 + y <= trials], y[x - 1 + y <= trials]
        rest = trials - (x - 1) - y
        log = gammaln(trials + 1) - gammaln(x) - gammaln(y + 1) - gammaln(rest + 1)
        mass = np.exp(log + (x - 1 + y) * np.log(q) + rest * np.log1p(-2 * q))
        assert mass.sum() == pytest.approx(1)
        certain *= mass[y > 0].sum()  # x/0 tells the two apart
        place = np.floor(np.log(x / np.maximum(y, 1)) / step).astype(int)[y > 0]
        total = np.convolve(total, np.bincount(place + 8_000, mass[y > 0], minlength=16_000))
    losses = (np.arange(total.size) - 8_000 * len(seen) * len(plan.groups(users))) * step
    above = losses > epsilon
    return 1 - certain + float(total[above] @ -np.expm1(epsilon - losses[above]))


def test_a_part_of_a_shuffle_batch_that_was_seen_cannot_be_charged(tmp_path):
    problem = {"states": 2, "actions": 2, "horizon": 2, "episodes": 400}
    trust = discreet.Shuffle(1, 1e-6)
    study = discreet.start_study(tmp_path / "study.db", learner="flow-ucb", trust=trust, **problem)
    study.reissue(17)
    head, plan = study.head, study.mechanism
    assert 0.9e-6 < delta_of_views(plan, 17, 17, epsilon=1) <= 1e-6
    assert delta_of_views(plan, 17, 17, 17, epsilon=2) <= 2e-6
    # Four reports that were seen, then all: far above (2, 2e-6). Two of them, and nothing else:
    assert delta_of_views(plan, 17, 4, 17, epsilon=2) > 4.7e-5
    assert delta_of_views(plan, 17, 2, epsilon=2) > 1.4e-3
    with pytest.raises(StudyError, match=r"hides among all 17 .* returning='nobody' .* ask new"):
        study.reissue(returning="seen")
    assert study.head == head
    assert (study.guarantee.epsilon, study.guarantee.delta) == (1, 1e-6)


def test_under_local_trust_a_report_that_was_sent_has_been_seen(tmp_path):
    study = begin(tmp_path / "study.db", discreet.Local(2), episodes=400)
    head = study.head
    with pytest.raises(StudyError, match=r"has been seen; say returning='seen', or 'nobody'"):
        study.reissue(returning="unseen")
    assert study.head == head
    study.reissue(returning="seen")
    assert study.guarantee.epsilon == 4


def test_a_token_is_of_one_batch_and_one_policy(tmp_path, monkeypatch):
    """Even if two batches ask the same of equally many, and if one batch were asked otherwise."""
    study = begin(tmp_path / "study.db", SHUFFLE, episodes=400)
    batch, tokens = study.learner.ask(), [study.token]
    monkeypatch.setattr(study.learner, "ask", lambda: batch)
    monkeypatch.setattr(study, "_tail", dataclasses.replace(study._tail, batches=1))
    tokens.append(study.token)
    other = Batch(DeterministicPolicy(np.ones((4, 3), np.int64)), batch.users)
    monkeypatch.setattr(study.learner, "ask", lambda: other)
    tokens.append(study.token)
    assert len(set(tokens)) == 3


def test_what_cannot_be_issued_again(tmp_path):
    study = begin(tmp_path / "study.db", SHUFFLE, episodes=400)
    head = study.head
    with pytest.raises(StudyError, match="takes 2 to"):
        study.reissue(study.batch_size + 1)
    with pytest.raises(InvalidInputError, match="returning to be one of"):
        study.reissue(returning="everybody")
    with pytest.raises(InvalidInputError, match="users to be an integer >= 1"):
        study.reissue(0)
    assert study.head == head


@pytest.mark.parametrize("learner", ["explore-then-commit", "flow-ucb"])
def test_a_shuffle_study_goes_on_without_those_who_do_not_come(tmp_path, learner):
    # Nobody is ever left alone in a batch: a report hides among others.
    study = begin(tmp_path / "study.db", SHUFFLE, learner=learner, episodes=60)
    while not study.finished:
        assert study.batch_size >= study.min_users == 2
        if study.batch_size > 2:
            study.reissue(study.batch_size - 1)
        advance(study, study.batches)
    assert 50 < study.users < 60
    with pytest.raises(StudyError, match="of 60 users: its last batch asked for all who were left"):
        study.ask()
    with pytest.raises(StudyError, match="takes 2 to"):
        begin(tmp_path / "other.db", SHUFFLE, learner=learner, episodes=60).reissue(1)
    with pytest.raises(InvalidInputError, match="episodes >= 2, the smallest release"):
        begin(tmp_path / "tiny.db", SHUFFLE, learner=learner, episodes=1)
    assert not (tmp_path / "tiny.db").exists()


def test_a_closed_shuffle_study_says_that_it_was_closed(tmp_path):
    study = begin(tmp_path / "study.db", SHUFFLE, episodes=60)
    study.close()
    with pytest.raises(StudyError, match="was closed after 0 users;"):
        study.ask()


def test_a_closed_study_takes_nobody_and_still_answers(tmp_path):
    study = begin(tmp_path / "study.db")
    advance(study, 0)
    policy = study.close()
    again = discreet.open_study(study.path, study.head)
    for one in (study, again):
        assert one.finished
        np.testing.assert_array_equal(one.policy.actions, policy.actions)
        with pytest.raises(StudyError, match=f"was closed after {study.users} users"):
            one.ask()
        with pytest.raises(StudyError, match="nothing more to ask or to tell"):
            one.tell(None, users=["late"])
    assert again.ledger[-1]["kind"] == "close"
    head = again.head
    again.close()
    assert again.head == head  # closed once


def test_the_policy_is_good_and_its_value_is_covered(tmp_path):
    inside, share = 0, []
    optimum = discreet.mdp.solve(RIVER).value
    for seed in range(10):
        study = begin(tmp_path / f"{seed}.db", learner="trial", aim="policy", episodes=10_000,
                      seed=seed)  # fmt: skip
        while not study.finished:
            advance(study, 100 * seed + study.batches)
        true = evaluate(RIVER, study.policy)
        inside += study.value.low <= true <= study.value.high
        share.append(true / optimum)
    assert inside >= 7  # the same data chose the policy: fewer than 95 of 100
    assert np.mean(share) > 0.95


def test_before_the_first_batch_nothing_is_known(tmp_path):
    study = begin(tmp_path / "study.db")
    assert study.answer.defer.all() and not np.isfinite(study.answer.standard_error).any()
    assert (study.value.low, study.value.high) == (0.0, 4.0)


def test_users_are_remembered_while_a_study_stays_open(tmp_path):
    study = begin(tmp_path / "study.db")
    first = names(study)[0]
    for batch in range(3):
        advance(study, batch)
    with pytest.raises(StudyError, match="has taken part already"):
        study.tell(episodes_of(study, 9), users=[first, *names(study)[1:]])


@pytest.mark.parametrize("trust", [discreet.Central(1, 1e-6), SHUFFLE], ids=str)
@pytest.mark.parametrize("learner", ["flow-ucb", "trial"])
def test_no_batches_of_those_who_are_left_of_those_who_are_left(tmp_path, learner, trust):
    """One of ten does not come: once the study ended in batches of 154, 16, 1 and 1."""
    study = begin(tmp_path / "study.db", trust, learner=learner, episodes=1_000)
    told = []
    while not study.finished:
        users = study.batch_size * 9 // 10
        if study.encoded:
            study.reissue(users)
        advance(study, study.batches, users=users)
        told.append(users)
        study = discreet.open_study(study.path)  # that it is over is known after a restart
    assert told[-1] > told[0] > 20  # the first is as large as shows a reward above its noise
    assert 900 < study.users < 1_000
    assert study.ledger[-1]["asked"] >= told[-1]


@pytest.mark.parametrize("trust", [discreet.Central(1, 1e-6), SHUFFLE], ids=str)
@pytest.mark.parametrize("learner", ["flow-ucb", "trial"])
def test_a_study_goes_on_with_more_users_than_were_planned(tmp_path, learner, trust):
    study = begin(tmp_path / "study.db", trust, learner=learner, episodes=500)
    advance(study, 0)
    asked = study.batch_size, study.ask().key, study.token, str(study.guarantee)
    study.extend(1_200)
    again = discreet.open_study(study.path, study.head)
    for one in (study, again):  # whoever was asked already was asked for the same
        now = one.batch_size, one.ask().key, one.token, str(one.guarantee)
        assert now == asked
        assert (one.episodes, one.problem.episodes) == (1_200, 1_200)
    entry = study.ledger[-1]
    assert [entry[name] for name in ("kind", "before", "episodes")] == ["extend", 500, 1_200]
    while not again.finished:
        advance(again, again.batches)
    assert again.users == 1_200
    assert min(entry["users"] for entry in again.ledger if "users" in entry) >= 20
    again.verify()


def test_what_was_seen_of_a_batch_is_charged_after_an_extension_too(tmp_path):
    study = begin(tmp_path / "study.db", episodes=500)
    study.reissue(returning="seen")
    study.extend(1_200)
    for one in (study, discreet.open_study(study.path, study.head)):
        assert (one.guarantee.epsilon, one.guarantee.delta) == (2, 2e-6)


def test_whoever_came_last_does_not_come_again_after_an_extension(tmp_path):
    """In the same object, which has read nothing from its file since."""
    study = begin(tmp_path / "study.db", learner="trial", episodes=400)
    while not study.finished:
        people = names(study)
        advance(study, study.batches)
    study.extend(800)
    data, head = episodes_of(study, 9, len(people)), study.head
    with pytest.raises(StudyError, match="has taken part already; a user takes part once"):
        study.tell(data, users=people)
    assert (study.users, study.head) == (400, head)


def test_widths_are_those_of_a_study_that_was_planned_so(tmp_path):
    study = begin(tmp_path / "study.db", episodes=500)
    planned = begin(tmp_path / "planned.db", episodes=5_000)
    advance(study, 0)
    before = study.learner.width(study.learner.model())
    study.extend(5_000)
    planned.learner.restore(study.learner.state())
    now, then = (one.learner for one in (study, planned))
    assert np.array_equal(now.width(now.model()), then.width(then.model()))
    assert (now.width(now.model()) > before).all()


def test_a_trial_that_is_over_is_taken_up_again(tmp_path):
    """For those who did not come, and for more; a trial for the policy stays randomised."""
    study = begin(tmp_path / "study.db", learner="trial", episodes=400, aim="policy")
    first = study.ask().key
    advance(study, 0, users=300)
    assert study.finished
    study.extend(400)
    assert (study.batch_size, study.ask().key) == (100, first)
    advance(study, 1)
    assert study.ending == "has counted all its 400 users"
    study.extend(401)
    assert study.batch_size == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"learner": "pe"}, "The learner 'pe' divides"),
        ({"learner": "explore-then-commit"}, "The learner 'explore-then-commit' divides"),
        ({"to": 500}, "Expected episodes >= 501"),
        ({"closed": True}, "was closed after 0 users"),
    ],
)
def test_what_cannot_be_extended_stays_as_it_is(tmp_path, options, said):
    given = dict(options)
    to, closed = given.pop("to", 900), given.pop("closed", False)
    study = begin(tmp_path / "study.db", episodes=500, **given)
    if closed:
        study.close()
    head = study.head
    with pytest.raises(StudyError, match=said):
        study.extend(to)
    assert (study.head, study.episodes) == (head, 500)
    assert discreet.open_study(study.path).head == head
