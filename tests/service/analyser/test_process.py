"""The analyser from its file: what is missing or wrong is one sentence, before anything runs."""

import pytest

from discreet.errors import InvalidInputError
from discreet.service.analyser import process
from discreet.service.configs import AnalyserConfig
from helpers.services import charter

OF = charter()


@pytest.fixture
def folder(tmp_path):
    """The charters of a study and of its rehearsal."""
    (tmp_path / "charter.json").write_bytes(OF.data)
    (tmp_path / "rehearsal.json").write_bytes(charter(rehearsal=True).data)
    return tmp_path


def analyser_of(folder, **changes):
    fields = {"charter": "charter.json", "study": "s.db", "signing_key": "k", "token_file": "t"}
    return AnalyserConfig(folder=folder, url="http://127.0.0.1:9", **(fields | changes))


def test_a_rehearsal_is_analysed_only_by_who_says_so(folder):
    with pytest.raises(InvalidInputError, match="--rehearsal"):
        process.make_analyser(analyser_of(folder, charter="rehearsal.json"))


def test_engines_are_known_by_name(folder):
    assert callable(process._opener(analyser_of(folder)))
    with pytest.raises(InvalidInputError, match="'processes' or 'ray', got 'dask'"):
        process._opener(analyser_of(folder, engine="dask"))


def test_a_second_analyser_on_one_study_is_refused(folder):
    config = analyser_of(folder)
    refused = pytest.raises(InvalidInputError, match="Another analyser")
    with process._alone(config), refused, process._alone(config):
        pass
    with process._alone(config):
        pass
