"""One code per reason, one document per code."""

import json

import pytest

from discreet.service.protocol.problems import PROBLEMS, Refusal, code_of, document


@pytest.mark.parametrize("code", PROBLEMS)
def test_every_code_has_a_document_of_rfc_9457(code):
    found = json.loads(document(code))
    assert found["type"] == f"urn:discreet:problem:{code}"
    assert found["status"] == PROBLEMS[code].status == Refusal(code).status
    assert 400 <= found["status"] < 600 and found["title"].endswith(".")
    assert code_of(document(code)) == code


def test_what_is_no_document_of_ours_is_broken():
    for body in (b"", b"<html>", b'{"code":"x"}', b'{"code":3}', b"[]"):
        assert code_of(body) == "broken"


def test_titles_differ():
    titles = [problem.title for problem in PROBLEMS.values()]
    assert len(set(titles)) == len(titles)
