"""What a person sees: tables that fit, sentences that wrap between words."""

import io
import re
import sys
import time

import pytest

from discreet.cli.output import (
    FACTS,
    Progress,
    answer,
    compact,
    echo_json,
    facts,
    need_extra,
    noted,
    print_table,
    say,
    warn,
)
from discreet.errors import DiscreetWarning, MissingExtraError


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Standard output is a terminal of the width that the test asks for."""

    def open_terminal(width):
        screen = Terminal()
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")
        return lambda: [
            re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in screen.getvalue().splitlines()
        ]

    return open_terminal


ROWS = [
    ["flow-ucb", "(1, 1e-06)-JDP", "100,000,000", "5,000,000", "a summary of quite a few words"],
    ["dp-ucbvi", "(1, 0)-LDP", "1", "2", "short"],
]
COLUMNS = ["learner", "guarantee", "noise of a count", "regret so far", "summary"]


@pytest.mark.parametrize("width", [66, 80, 160])
def test_a_table_fits_and_no_number_is_broken(terminal, width):
    lines = terminal(width)
    print_table("Title", COLUMNS, ROWS, right=(2, 3), caption="A caption.")
    shown = lines()
    assert shown[0] == "Title"
    assert shown[-1] == "A caption."
    assert max(map(len, shown)) <= width
    text = "\n".join(shown)
    for cell in ("flow-ucb", "(1, 1e-06)-JDP", "100,000,000", "5,000,000"):
        assert cell in text
    assert "…" not in text


@pytest.mark.parametrize("width", [30, 44, 50])
def test_where_a_table_does_not_fit_its_rows_are_lines_and_nothing_is_cut_off(terminal, width):
    lines = terminal(width)
    print_table("Title", COLUMNS, ROWS, right=(2, 3), caption="A caption.")
    shown = lines()
    assert shown[0] == "Title" and shown[-1] == "A caption."
    assert max(map(len, shown)) <= width
    assert {"learner: flow-ucb", "noise of a count: 100,000,000", "regret so far: 2"} <= {*shown}
    assert "…" not in "".join(shown)


def test_redirected_output_is_a_table_however_wide(capsys):
    print_table("Title", [f"column{i}" for i in range(20)], [["1,234,567"] * 20])
    assert capsys.readouterr().out.count("1,234,567") == 20


def test_an_indented_sentence_stays_indented(terminal):
    lines = terminal(30)
    say("  assuming that nobody tells anybody else what they saw")
    assert len(lines()) == 2
    assert all(line.startswith("  ") and line[2] != " " for line in lines())


def test_a_wide_table_keeps_rows_and_headings_on_one_line(terminal):
    lines = terminal(160)
    print_table("Title", COLUMNS, ROWS)
    assert sum(1 for line in lines() if line) == 1 + 1 + 1 + 2  # title, head, rule, rows
    assert any("noise of a count" in line for line in lines())


def test_titles_and_headings_are_bold_where_a_terminal_can(terminal, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal(80)
    print_table("Title", ["a"], [["x"]])
    assert sys.stdout.getvalue().startswith("\x1b[1mTitle\x1b[0m\n\n\x1b[1m")
    assert sys.stdout.getvalue().endswith("\n x\n\n")
    monkeypatch.setenv("NO_COLOR", "1")
    terminal(80)
    print_table("Title", ["a"], [["x"]])
    assert sys.stdout.getvalue() == "Title\n\n a\n───\n x\n\n"


def test_numbers_stand_on_the_right_and_a_line_break_stays_one(capsys):
    print_table("T", ["name", "users"], [["a", "12,345"], ["one\ntwo", "7"]], right=[1])
    *_, first, second, third, _ = capsys.readouterr().out.split("\n")[:-1]
    assert (first, second, third) == (" a     12,345", " one        7", " two")


def test_a_name_stays_whole_while_sentences_wrap(terminal):
    lines = terminal(50)
    rows = [["a-name-of-more-than-twenty-letters", "words that may be wrapped between them"]]
    print_table("T", ["name", "what"], rows)
    assert "a-name-of-more-than-twenty-letters" in "\n".join(lines())
    assert max(map(len, lines())) <= 50


def test_markup_in_a_cell_is_text(capsys):
    print_table("[bold]t[/bold]", ["a"], [["[red]x[/red]"]])
    out = capsys.readouterr().out
    assert "[red]x[/red]" in out
    assert "[bold]t[/bold]" in out


def test_an_empty_table_is_its_head(capsys):
    print_table("Nothing", ["a", "b"], [])
    assert "Nothing" in capsys.readouterr().out


@pytest.mark.parametrize("speak", [say, warn])
def test_a_sentence_wraps_between_words_on_a_terminal(terminal, speak):
    lines = terminal(30)
    speak("A sentence that does not fit into thirty columns, with discreet/privacy inside.")
    assert len(lines()) == 3
    assert max(map(len, lines())) <= 30
    assert "discreet/privacy" in " ".join(lines())


def test_a_sentence_stays_one_line_for_a_script(capsys):
    say("word " * 60)
    assert capsys.readouterr().out.count("\n") == 1


def test_an_answer_is_json_or_tables_and_sentences_and_its_notes_are_for_both(capsys):
    def shown():
        yield facts("Title", [["what", "that"]])
        yield "A sentence."

    answer({"what": "that"}, shown(), json=False, notes=["A note."])
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "Title" and out.splitlines()[-1] == "A sentence."
    assert "that" in out and err == "A note.\n"
    unseen = (pytest.fail(text) for text in ["Nobody looks at it."])
    answer({"what": "that"}, unseen, json=True, notes=["A note."])
    assert capsys.readouterr() == ('{\n  "what": "that"\n}\n', "A note.\n")


def test_json_has_no_infinity():
    with pytest.raises(ValueError, match="not JSON compliant"):
        echo_json({"epsilon": float("inf")})


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (9_999, "9,999"), (1e5, "1e5"), (1e12, "1e12"), (20_001, "20,001")],
)
def test_compact_numbers_are_exact(number, text):
    assert compact(number) == text


@pytest.mark.parametrize(
    ("patience", "said"), [(1e6, ""), (0, "checking one ...\nchecking two ...\n")]
)
def test_quick_steps_are_not_worth_a_line_and_slow_ones_are(capsys, patience, said):
    with Progress(patience=patience) as progress:
        progress("one")
        progress("two")
    assert capsys.readouterr().err == said


def test_a_long_step_is_named_while_it_runs(capsys):
    with Progress(patience=0.01) as progress:
        progress("one")
        deadline, said = time.monotonic() + 10, ""
        while not said and time.monotonic() < deadline:
            said = capsys.readouterr().err
            time.sleep(0.01)
        assert said == "checking one ...\n"


def test_scripts_want_no_progress(capsys):
    with Progress(quiet=True, patience=0) as progress:
        progress("one")
    assert capsys.readouterr().err == ""


def test_a_word_that_is_longer_than_its_column_is_folded_and_not_cut_off(terminal):
    rows = [["GridWorld", "words that wrap, and wrap", "layout=S...|.#..|..O.|...G, relabel=None"]]
    lines = terminal(60)
    print_table("Environments", ["name", "summary", "parameters"], rows)
    assert max(map(len, lines())) <= 60
    last = lines()[2].index("parameters")
    folded = "".join(line[last:].strip() for line in lines())
    assert "layout=S...|.#..|..O.|...G," in folded
    assert "relabel=None" in "\n".join(lines())


def test_facts_on_a_narrow_terminal_are_called_by_what_they_are(terminal):
    lines = terminal(40)
    print_table("Study", FACTS, [["guaranteed", "a " * 30], ["", "b"], ["head", "f" * 64]])
    assert any(line.startswith("guaranteed: a a") for line in lines())
    assert "b" in lines()
    assert not any(line.startswith(("what:", "value:")) for line in lines())


SIZES = ("--states", "2", "--actions", "2")


@pytest.mark.parametrize(
    "command",
    [
        ("calibrate", *SIZES, "--horizon", "2", "--trust", "central"),
        ("calibrate", *SIZES, "--horizon", "2", "--schedule", "batch"),
        (
            *("study", "start", "s.db", *SIZES, "--steps", "2", "--trust", "central"),
            *("--learner", "flow-ucb", "--episodes", "100", "--rehearse"),
        ),
        (
            *("run", "--learner", "flow-ucb", "--environment", "RiverSwim", "--trust", "central"),
            *("--episodes", "100", "--runs", "1", "--dry-run"),
        ),
    ],
    ids=lambda words: words[0],
)
def test_every_command_that_guarantees_says_what_a_large_epsilon_means(
    discreet, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    code, _, err = discreet(*command, "--epsilon", "20")
    assert code == 0
    assert err.count("odds about one person may change by a factor of up to e^20 < 10^9;") == 1
    monkeypatch.chdir(tmp_path.parent)
    code, _, err = discreet(*command, "--epsilon", "2")
    assert "odds" not in err


def test_warnings_of_the_library_are_notes_and_are_said_once(capsys):
    show = noted()
    for _ in range(2):
        show(DiscreetWarning("look-alikes"), DiscreetWarning, "file.py", 1)
    assert capsys.readouterr().err == "Note: look-alikes\n"
    with pytest.warns(UserWarning, match="elsewhere"):
        noted()(UserWarning("elsewhere"), UserWarning, "file.py", 1)


@pytest.mark.core
def test_what_is_missing_is_named():
    need_extra(("json", "sqlite3"), "service")
    with pytest.raises(MissingExtraError, match="no_such_package"):
        need_extra(("json", "no_such_package"), "service")


@pytest.mark.parametrize(
    ("columns", "kept"), [(80, ["a", "b", "c", "d"]), (30, ["a", "b", "d"]), (25, ["a", "d"])]
)
def test_a_narrow_table_leaves_out_what_can_be_spared(monkeypatch, capsys, columns, kept):
    monkeypatch.setenv("COLUMNS", str(columns))  # also where output is piped
    print_table(
        "T", ["a", "b", "c", "d"], [["12345678"] * 4], right=[0, 3], spare=["none", "c", "b"]
    )
    _, _, heads, line, cells, *_ = capsys.readouterr().out.splitlines()
    assert heads.split() == kept and cells.split() == ["12345678"] * len(kept)
    assert len(line) <= columns and len(heads) <= columns
    assert heads.index("a") == 8 and heads.endswith("d")  # numbers stay on the right


def test_a_column_is_left_out_rather_than_numbers_and_heads_cut_off(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "36")
    cells = ["(1, 1e-06)-JDP", "0.0213", "0.0011", "0.0003"]
    print_table("T", ["guarantee", "return", "± se", "at random"], [cells], spare=["at random"])
    _, _, heads, _, row, *_ = capsys.readouterr().out.splitlines()
    assert heads.split() == ["guarantee", "return", "±", "se"]
    assert row.split("  ")[0].strip() == cells[0] and row.split()[-2:] == cells[1:3]


def test_a_piped_sentence_is_one_line_for_whatever_reads_it(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "50")
    say("word " * 40)
    assert len(capsys.readouterr().out.splitlines()) == 1
