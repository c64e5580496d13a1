"""`discreet report`: the page, again and again."""

import json


def test_the_page_is_written_and_named(discreet, finished):
    assert discreet("report", str(finished))[:2] == (0, f"{finished}/report.html\n")
    page = (finished / "report.html").read_bytes()
    answer = json.loads(discreet("report", str(finished), "--json")[1])
    assert answer == {"report": f"{finished}/report.html"}
    assert (finished / "report.html").read_bytes() == page


def test_a_folder_without_results_is_one_sentence(discreet, tmp_path):
    assert discreet("report", str(tmp_path))[0] == 2
