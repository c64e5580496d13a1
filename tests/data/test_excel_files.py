"""Workbooks: the same episodes as from CSV, refused with the row that Excel shows."""

import pytest

from discreet.data import Layout, check_table, read_table
from discreet.errors import InvalidInputError
from helpers.tables import HEADER, NAMES, VISITS, changed, read, same

openpyxl = pytest.importorskip("openpyxl")


def book(path, rows, *sheets):
    made = openpyxl.Workbook()
    for name in sheets or ("Sheet",):
        sheet = made.create_sheet(name)
        for row in (HEADER, *rows):
            sheet.append(row)
    made.remove(made.worksheets[0])
    made.save(path)
    return path


def test_a_workbook_gives_the_same_episodes(tmp_path):
    path = book(tmp_path / "v.xlsx", [*VISITS[:3], (), *VISITS[3:]])
    assert same(read_table(path, NAMES)[0], read(VISITS)[0])
    assert check_table(path, Layout(NAMES)).to_dict() == {"rows": 6, "people": 2, "problems": []}


def test_closing_rows_have_empty_cells(tmp_path):
    rows = [*VISITS, ("ann", 4, "dead")]
    people, _ = read_table(book(tmp_path / "v.xlsx", rows), NAMES)
    assert people.states[0].tolist() == [0, 1, 1, 2]


def test_one_of_several_sheets(tmp_path):
    path = book(tmp_path / "v.xlsx", VISITS, "spring", "autumn")
    assert same(read_table(path, NAMES, sheet="autumn")[0], read(VISITS)[0])
    with pytest.raises(InvalidInputError, match=r"sheet = .*'spring', 'autumn'"):
        read_table(path, NAMES)
    with pytest.raises(InvalidInputError, match="got 'summer'"):
        read_table(path, NAMES, sheet="summer")


def test_a_wrong_cell_is_refused_with_its_row(tmp_path):
    path = book(tmp_path / "v.xlsx", changed(4, "state", "il"))
    with pytest.raises(InvalidInputError, match="got 'il' in column 'state', row 6 of "):
        read_table(path, NAMES)


def test_a_formula_without_a_value_is_refused(tmp_path):
    """It would be read as empty: a person who is lost, and nobody is told."""
    path = book(tmp_path / "v.xlsx", changed(4, "user", '=CONCATENATE("b","ob")'))
    with pytest.raises(InvalidInputError, match=r"CONCATENATE.* column 1, row 6 of .*v\.xlsx"):
        read_table(path, NAMES)
    assert "CONCATENATE" in str(check_table(path, Layout(NAMES)).problems)


@pytest.mark.parametrize("content", [b"", b"user,step", None])
def test_what_is_no_workbook_is_refused(tmp_path, content):
    path = tmp_path / "v.xlsx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"a workbook .* that can be read"):
        read_table(path, NAMES)


def test_an_empty_sheet_is_refused(tmp_path):
    made = openpyxl.Workbook()
    made.save(tmp_path / "v.xlsx")
    with pytest.raises(InvalidInputError, match="is empty"):
        read_table(tmp_path / "v.xlsx", NAMES)
