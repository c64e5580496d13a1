"""`discreet plot` and `discreet report` from a folder that `run` left."""

import json


def test_figures_as_svg_and_png(discreet, finished):
    figures = json.loads(discreet("plot", str(finished), "--json")[1])["figures"]
    assert [name.rpartition(".")[2] for name in figures] == ["svg", "png"]
    assert discreet("plot", str(finished))[:2] == (0, "\n".join(figures) + "\n")


def test_a_folder_without_results_is_one_sentence(discreet, tmp_path):
    code, out, err = discreet("plot", str(tmp_path))
    assert (code, out) == (2, "")
    assert "no results.parquet" in err
    assert err.count("\n") == 1
