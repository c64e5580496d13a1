"""A policy file where decisions are made, in Python and in JavaScript."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.device.policy import DEFER, LoadedPolicy
from discreet.mdp import sample_counts, uniform_policy

ROWS = [
    {"step": step, "state": state, "action": action, **more}
    for step, state, action, more in [
        ("morning", "well", "wait", {"defer": True}),
        ("morning", "ill", "treat", {"defer": False}),
        ("evening", "well", DEFER, {}),
        ("evening", "ill", "treat", {}),
    ]
]
CONTENT = {"guarantee": "(1, 0)-JDP", "simulated": True, "policy": ROWS}
ASKED = [(s, t, f) for s in ("well", 1) for t in (0, "evening") for f in (None, "rest")]
ANSWERS = ["wait", "rest", DEFER, "rest", "treat", "treat", "treat", "treat"]
BROKEN = [
    {},
    {"policy": []},
    {"policy": [{"step": 0, "state": "a", "action": "b"}]},
    {"policy": ROWS[:3]},
    {"policy": [*ROWS, ROWS[0]]},
    {"policy": ROWS, "format": "discreet-policy-2"},
    {"policy": [{**row, "defer": "false"} for row in ROWS]},
]
VISITS = {
    "policy": [
        {"step": "1", "state": "ill", "action": "wait"},
        {"step": "2", "state": "ill", "action": "treat"},
    ]
}
WEB = Path(discreet.__file__).parent / "device/web/policy.js"


@pytest.mark.core
def test_actions_by_name_and_number_with_defer_and_fallback(tmp_path):
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(CONTENT))
    policy = discreet.load_policy(file)
    assert [policy.action(s, t, fallback=f) for s, t, f in ASKED] == ANSWERS
    assert [policy.defers(s, t) for s, t, _ in ASKED[::2]] == [True, True, False, False]
    assert (policy.guarantee, policy.simulated) == ("(1, 0)-JDP", True)
    assert (policy.states, policy.steps) == (("well", "ill"), ("morning", "evening"))
    for state, step in (("dead", 0), (2, 0), (-1, 0), (True, 0), ("ill", "noon")):
        with pytest.raises(ValueError, match="or its number from 0, got"):
            policy.action(state, step)
    file.write_text("step,state,action")
    with pytest.raises(ValueError, match="Expected the policy as JSON, got"):
        discreet.load_policy(file)


@pytest.mark.core
def test_a_number_that_is_the_name_of_another_step_is_refused():
    """Visits 1 and 2: is 1 the first, by its name, or the second, counted from 0?"""
    policy = LoadedPolicy(VISITS)
    assert [policy.action("ill", step) for step in (0, "1", "2")] == ["wait", "wait", "treat"]
    with pytest.raises(ValueError, match="it is '2', and '1' is another's name"):
        policy.action("ill", 1)


@pytest.mark.core
@pytest.mark.parametrize("content", [[], 1, *BROKEN])
def test_files_that_are_no_policies(content):
    with pytest.raises(ValueError, match="Expected"):
        LoadedPolicy(content)


@pytest.mark.core
def test_a_missing_file_and_a_key_that_stands_twice_are_refused(tmp_path):
    file = tmp_path / "p.json"
    with pytest.raises(ValueError, match=r"a file that can be read, got .*p\.json"):
        discreet.load_policy(file)
    file.write_text(json.dumps(CONTENT).replace('"step"', '"action": "treat", "step"', 1))
    with pytest.raises(ValueError, match="a key stands twice: action, step, state, action"):
        discreet.load_policy(file)


def test_the_javascript_twin_gives_the_same_answers(tmp_path):
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    module, script = tmp_path / "policy.mjs", tmp_path / "ask.mjs"
    shutil.copyfile(WEB, module)
    script.write_text(
        f"""import {{ LoadedPolicy }} from "./policy.mjs";
        const policy = new LoadedPolicy({json.dumps(CONTENT)});
        const answers = {json.dumps(ASKED)}.map(([s, t, f]) => policy.action(s, t, f));
        const refused = [["dead", 0], [2, 0], [-1, 0], [0.5, 0]].filter(([s, t]) => {{
          try {{ policy.action(s, t); return false; }} catch {{ return true; }} }}).length;
        const visits = new LoadedPolicy({json.dumps(VISITS)});
        const named = ["1", "2"].map((step) => visits.action(0, step));
        try {{ named.push(visits.action(0, 1)); }} catch {{ named.push("refused"); }}
        const broken = {json.dumps(BROKEN)}.filter((content) => {{
          try {{ new LoadedPolicy(content); return false; }} catch {{ return true; }} }}).length;
        console.log(JSON.stringify([answers, policy.defers(0, 0), refused, broken, named]));"""
    )
    out = subprocess.run(["node", script], capture_output=True, text=True, check=True).stdout
    assert json.loads(out) == [ANSWERS, True, 4, len(BROKEN), ["wait", "treat", "refused"]]


def test_what_fit_writes_is_read(tmp_path):
    mdp = discreet.make("Treatment")
    people = sample_counts(mdp, uniform_policy(mdp.shape), 20_000, np.random.default_rng(0))
    found = discreet.fit(people, discreet.Central(1, 1e-6), sampler="simulation", seed=0)
    found.save_policy(tmp_path / "p.json")
    policy = discreet.load_policy(tmp_path / "p.json")
    rows = {(row["step"], row["state"]): row["action"] for row in found.rows()}
    assert rows == {(t, s): policy.action(s, t) for t in policy.steps for s in policy.states}
    assert policy.simulated


def test_the_three_lines_of_the_docs_run_in_javascript(tmp_path):
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    page = (Path(__file__).parents[2] / "docs/how-to/engineer/production.md").read_text("utf-8")
    lines = page.split("```js\n")[1].split("```")[0].replace('"remission", "Q1"', '"well", 0')
    shutil.copyfile(WEB, tmp_path / "policy.js")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "policy.json").write_text(json.dumps(CONTENT))
    fetch = (
        'import { readFile } from "node:fs/promises";\n'
        "const read = async (file) => JSON.parse(await readFile(file));\n"
        "globalThis.fetch = async (file) => ({ json: () => read(file) });"
    )
    (tmp_path / "page.js").write_text(f"{fetch}\n{lines}")
    ran = subprocess.run(
        ["node", "page.js"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "wait true\n"
