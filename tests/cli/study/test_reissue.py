"""`discreet study reissue`: other users, fewer users, and what it costs."""

from helpers.study_commands import resumed


def test_fewer_users_and_a_new_token(place, run, discreet):
    run("start", "study.db", "--design", "design.toml", "--trust", "shuffle", "--rehearse")
    before = resumed(place)
    again = run("reissue", "study.db", "--users", "7")
    assert again["next_batch"] == 7
    assert again["token"] == resumed(place).token != before.token
    assert again["epsilon"] == 1
    assert run("reissue", "study.db", "--returning", "unseen")["epsilon"] == 1
    code, _, err = discreet("study", "reissue", "study.db", "--returning", "seen")
    assert code == 2
    assert "hides among all 7 of its batch" in err
    assert resumed(place).guarantee.epsilon == 1


def test_users_whose_data_was_seen_are_charged_again(rehearsed, discreet):
    code, out, _ = discreet("study", "reissue", "study.db", "--returning", "seen")
    assert code == 0
    assert "(2, 2e-06)-JDP" in out


def test_what_cannot_be(rehearsed, discreet):
    code, _, err = discreet("study", "reissue", "study.db", "--returning", "everybody")
    assert code == 2
    assert "'nobody', 'unseen', 'seen'" in err
    code, _, err = discreet("study", "reissue", "study.db", "--users", "999999")
    assert code == 2
    assert "users, got users=" in err
    assert len(resumed(rehearsed).ledger) == 1
