"""Both learning curves, their drawing, and the page."""

import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest

import discreet
from discreet.learners.result import RegretCurve
from discreet.mdp import evaluate, solve
from discreet.service.demo.page import (
    Spread,
    draw,
    final,
    real_curve,
    simulate,
    spread_of,
    ticks,
    write_page,
)
from discreet.service.demo.run import (
    NOT_PROTECTED,
    Arrangement,
    Findings,
)

CURVE = RegretCurve(np.array([0, 50, 100]), np.array([0.0, 20.0, 25.0]))
BAND = Spread(
    np.array([1, 100]),
    np.array([0.0, 15.0]),
    np.array([0.2, 24.0]),
    np.array([0.4, 40.0]),
    np.array([15.0, 24.0, 40.0]),
)


def found(**changes):
    fields = {
        "users": 100,
        "batches": 2,
        "kills": {"shuffler": 0},
        "counted_once": True,
        "seconds": 3.0,
    }
    fields |= {"ledger_verified": True, "forgotten": True, "curve": CURVE}
    return Findings(**(fields | changes))


def test_the_real_curve_stands_at_its_numbers():
    drawing = ET.fromstring(draw(CURVE, BAND))
    lines = drawing.findall("{http://www.w3.org/2000/svg}polyline")
    real = [tuple(map(float, p.split(","))) for p in lines[-1].get("points").split()]
    assert len(real) == 3
    heights = [real[0][1] - y for _, y in real]
    assert heights[1] / heights[2] == pytest.approx(20 / 25, rel=0.01)


@pytest.mark.parametrize("top", [1e-9, 0.3, 1, 7, 126.3, 2000, 1e6])
def test_ticks_are_few_and_below_the_top(top):
    chosen = ticks(top)
    assert 3 <= len(chosen) <= 12 and chosen[-1] <= top * (1 + 1e-6)


def test_the_page_says_what_is_not_protected_and_what_failed(tmp_path):
    page = write_page(tmp_path, Arrangement(), found(counted_once=False), BAND).read_text()
    assert "NOT TRUE" in page and "protects nobody" in page
    assert all(line.split(":")[0] in page for line in NOT_PROTECTED)
    assert "src=" not in page and "href=" not in page and (tmp_path / "curve.svg").exists()


def test_the_summary_has_the_shape_that_scripts_rely_on():
    said = found(kills={"shuffler": 3}).summary(BAND)
    expected = {"users", "batches", "kills", "counted_once", "ledger_verified", "regret"}
    assert expected | {"simulated_regret", "seconds"} <= set(said)
    assert said["regret"] == 25.0 and set(said["simulated_regret"]) == {"low", "high"}


def test_regret_of_manifests_is_users_times_the_loss_of_their_policies():
    mdp = Arrangement().home.mdp
    worst = np.zeros((mdp.horizon, mdp.shape.states), int)
    best = solve(mdp).policy.actions
    manifests = [
        SimpleNamespace(users=30, policy=worst.tolist()),
        SimpleNamespace(users=70, policy=best.tolist()),
    ]
    curve = real_curve(mdp, manifests)
    loss = solve(mdp).value - evaluate(mdp, discreet.mdp.DeterministicPolicy(worst))
    seen = dict(zip(curve.episodes.tolist(), curve.values.tolist(), strict=True))
    assert seen[1] == pytest.approx(loss) and loss > 0.1
    assert seen[20] == pytest.approx(20 * loss) and final(curve) == pytest.approx(30 * loss)
    assert max(seen) == 100 and seen[max(k for k in seen if k < 100)] == final(curve)


def test_a_band_is_made_of_percentiles():
    curves = [RegretCurve(np.array([0, 10]), np.array([0.0, float(top)])) for top in range(101)]
    band = spread_of(curves, 10, points=3)
    assert band.middle[-1] == 50 and band.interval == (2.5, 97.5)
    assert band.low[-1] == 2.5 and band.high[-1] == 97.5


def test_simulated_runs_are_of_the_same_learner():
    told = []
    band = simulate(Arrangement(users=100), 3, told.append)
    assert told == [1, 2, 3] and len(set(band.finals.tolist())) > 1
    assert band.users[-1] == 100
