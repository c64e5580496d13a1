"""What is cited: every learner says it, and every entry is there once."""

from discreet.learners.registry import learner_names
from discreet.papers.references import CITED, bibtex


def test_every_learner_says_what_to_cite_and_every_entry_is_cited():
    assert sorted(CITED) == learner_names()
    keys = {key for learner in CITED for key in CITED[learner]}
    entries = bibtex(CITED)
    assert entries.count("@") == len(keys) + 1
    assert all(entries.count(f"{{{key},") == 1 for key in keys)
    for entry in entries.partition("\n\n%")[0].split("\n\n"):
        assert entry.count("{") == entry.count("}") and entry.endswith("}")
        assert "author = " in entry and "year = " in entry
