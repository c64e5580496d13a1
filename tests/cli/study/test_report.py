"""`discreet study report`: the page beside the study, or where one wants it."""

from discreet.privacy.guarantee import REHEARSED
from helpers.study_commands import resumed


def test_the_page_is_written_and_named(rehearsed, discreet, run):
    code, out, _ = discreet("study", "report", "study.db")
    assert code == 0
    assert out.startswith(f"study.html: {REHEARSED}")
    page = (rehearsed / "study.html").read_text("utf-8")
    assert resumed(rehearsed).head in page
    assert "Who is trusted" in page


def test_where_it_cannot_be(rehearsed, discreet):
    code, out, err = discreet("study", "report", "study.db", "--output", "page.txt")
    assert (code, out) == (2, "")
    assert "ends in .html" in err
    code, _, err = discreet("study", "report", "study.db", "--head", "0" * 64)
    assert code == 2
    assert "an older copy" in err
    assert not (rehearsed / "study.html").exists()
