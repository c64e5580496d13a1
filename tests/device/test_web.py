"""The device in JavaScript: the same bytes as Python in Node and in Chromium, the same refusals."""

import base64
import functools
import html
import http.server
import json
import math
import random
import re
import shutil
import subprocess
import threading
import tomllib
from pathlib import Path

import pytest

from discreet import device
from discreet.device import ByteDraws, DeviceError, cell_to_bytes, load
from helpers.browser import dump_dom
from helpers.devices import (
    ALL,
    BAD_DESCRIPTIONS,
    BAD_EPISODES,
    BAD_FLIPS,
    FOLLOWS,
    Bytes,
    histogram,
    split,
    vector,
)

MODULE = Path(device.__file__).parent / "web" / "device.js"
HARNESS = Path(__file__).parent / "harness.js"
GOLDEN = json.loads((Path(__file__).parent / "golden-reports.json").read_text("ascii"))
DRAWS = {
    "bounds": [2, 7, 97],
    "count": 40_000,
    "cells": 4,
    "weight": 3 * 2**30,
    "numerator": "3",
    "denominator": str(2**60),
}


def random_problem(rng):
    """Sizes, and a policy or played rows."""
    states, actions, horizon = rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, 4)
    size = {"states": states, "actions": actions, "horizon": horizon, "policy": None}
    if rng.random() < 0.5:
        pairs = range(horizon * states * actions)
        return size | {"support": [pair for pair in pairs if rng.random() < 0.7]}
    rows = [[rng.randrange(actions) for _ in range(states)] for _ in range(horizon)]
    start = sorted(rng.sample(range(states), rng.randint(1, states)))
    return size | {"policy": rows} | ({"start": start} if rng.random() < 0.5 else {})


def random_description(rng):
    """Any encoder; fractions from tame to huge."""
    problem, statistics = random_problem(rng), ["transitions", "rewards", "visits"]
    some = rng.sample(statistics, rng.randint(1, 3))
    name = rng.choice(list(ALL))
    wide = problem["horizon"] == 1 and some == ["transitions"]
    last = wide or rng.random() < 0.5
    if name == "histogram":
        scale = rng.choice([1, 7, 2**53 - 1, 2**70 + 3])
        mean = [str(rng.randint(1, 40) * scale), str(scale)]
        return histogram(
            **problem,
            statistics=some,
            last_transitions=last,
            users=rng.choice([1, 3, 20, 10**12]),
            **{"lambda": mean},
        )
    digits = rng.choice([1, 3, 8, 31, 80, 1000])
    flip = [str(rng.randrange(1, 2 ** min(digits, 60))), str(2**digits)]
    return split(**problem, flip=flip, statistics=some, last_transitions=last)


def random_episode(rng, description):
    """Often on the policy, with rewards of every kind of double."""
    states, horizon = description["states"], description["horizon"]
    kinds = [0, 1, 0.5, rng.random(), 5e-324, 1 - 2**-53, rng.random() * 2**-40]
    return {
        "states": [rng.randrange(states) for _ in range(horizon + 1)],
        "actions": [rng.randrange(description["actions"]) for _ in range(horizon)],
        "rewards": [rng.choice(kinds) for _ in range(horizon)],
    }


@functools.cache
def vectors():
    """A thousand, of all encoders."""
    rng, found = random.Random(13), []
    for seed in range(1000):
        description = random_description(rng)
        found.append(vector(description, random_episode(rng, description), seed=seed))
    return found


def edges():
    """Coins that equal a reward to the last of 53 bits; words that are just too large."""
    rewards = {"rewards": [3 * 2.0**-53] * 3}
    given = (bytes(6) + b"\x18") * 3 + b"\xff" * 64
    return [vector(description, FOLLOWS | rewards, given) for description in ALL.values()]


def without_none(changes, base):
    return {key: value for key, value in (base | changes).items() if value is not None}


@functools.cache
def refusals():
    """Attempts that must fail, each with its name."""
    found = []
    for base in ALL.values():
        for changes, code in BAD_DESCRIPTIONS:
            found.append(({"kind": "load", "description": without_none(changes, base)}, code))
        for changes in BAD_EPISODES:
            attempt = {"kind": "encode", "description": base, "episode": FOLLOWS | changes}
            found.append((attempt, "badEpisode"))
        for data in (None, [1, 2], "6473", 7):
            found.append(({"kind": "other", "description": base, "data": data}, "notBytes"))
        for report in (None, [], [[]], [[True]], [["0"]], "0", [0]):
            found.append(({"kind": "pack", "description": base, "report": report}, "badReport"))
        attempt = {"kind": "source", "description": base, "episode": FOLLOWS}
        found.append((attempt, "badRandomness"))
        found += [(attempt, python_code(base, attempt)) for attempt in spoilt(base)]
    for flip in BAD_FLIPS:
        if flip is not None:
            attempt = {"kind": "load", "description": split(flip=flip)}
            found.append((attempt, "badDescription"))
    for data in (None, [], "histogram", 1):
        found.append(({"kind": "load", "description": data}, "badDescription"))
    for bytes_, code in (("0000000a", "cellOutOfRange"), ("000007", "wrongLength")):
        found.append(({"kind": "cell", "cells": 9, "bytes": bytes_}, code))
    for path in (["policy", 0, 1], ["policy", 0], ["statistics", 0], ["lambda", 0]):
        found.append(({"kind": "hole", "description": histogram(), "path": path}, "badDescription"))
    description = histogram(policy=None, support=[0, 3, 5])
    attempt = {"kind": "hole", "description": description, "path": ["support", 1]}
    found.append((attempt, "badDescription"))
    report = load(histogram()).encode(FOLLOWS)
    for path in ([0], [0, 0]):
        attempt = {"kind": "holes", "description": histogram(), "report": report, "path": path}
        found.append((attempt, "badReport"))
    for data in (-1, 2**32, 0.5, "7", None):
        found.append(({"kind": "seal", "data": data}, "cellOutOfRange"))
    large = histogram(users=1, **{"lambda": [10**9, 1]})
    found.append(({"kind": "encode", "description": large, "episode": FOLLOWS}, "tooLarge"))
    return found


def spoilt(description):
    """Every byte of a report changed in turn, cut and continued."""
    one = load(description)
    data = one.to_bytes(one.encode(FOLLOWS, ByteDraws(Bytes(4))))
    changed = [data[:i] + bytes([data[i] ^ 0xFF]) + data[i + 1 :] for i in range(len(data))]
    cut = [data[:i] for i in (0, 5, 37, 38, len(data) - 1)]
    for bad in [*changed, *cut, data + b"\0"]:
        yield {"kind": "read", "description": description, "bytes": bad.hex()}


def python_code(description, attempt):
    try:
        load(description).from_bytes(bytes.fromhex(attempt["bytes"]))
    except DeviceError as error:
        return error.code
    return "accepted"  # a flipped bit can be another report


LAYOUTS = [
    histogram(),
    histogram(users=10**12, **{"lambda": [str(10**30 + 1), str(10**24)]}),
    histogram(statistics=["visits", "transitions"], users=1, **{"lambda": [1, "9" * 300]}),
]


@functools.cache
def work():
    return {
        "vectors": [*GOLDEN, *edges(), *vectors()],
        "reports": [{"description": each, "episode": FOLLOWS} for each in ALL.values()],
        "refusals": [attempt for attempt, _ in refusals()],
        "draws": DRAWS,
        "layouts": LAYOUTS,
        "cell": 2**32 - 2,
    }


def in_node():
    engine = shutil.which("node")
    if engine is None:
        pytest.skip("no Node on this machine; device.js is not run by it")
    urls = [
        "data:text/javascript;base64," + base64.b64encode(path.read_bytes()).decode()
        for path in (MODULE, HARNESS)
    ]
    program = f"""
        import * as device from "{urls[0]}";
        import {{ run }} from "{urls[1]}";
        const chunks = [];
        for await (const chunk of process.stdin) chunks.push(chunk);
        console.log(JSON.stringify(run(device, JSON.parse(Buffer.concat(chunks)))));
    """
    done = subprocess.run(
        [engine, "--input-type=module", "--eval", program],
        input=json.dumps(work(), allow_nan=False),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stderr == "" and done.returncode == 0
    return json.loads(done.stdout)


PAGE = """<!doctype html><meta charset="utf-8"><title>device.js</title>
<link rel="icon" href="data:,"><pre id="out">nothing</pre>
<script type="application/json" id="work">WORK</script>
<script type="module">
import * as device from "./device.js";
import { run } from "./harness.js";
const work = JSON.parse(document.getElementById("work").textContent);
document.getElementById("out").textContent = JSON.stringify(run(device, work));
document.getElementById("work").remove();
</script>"""


class Pages(http.server.BaseHTTPRequestHandler):
    """The page and its two modules, on loopback."""

    def do_GET(self):
        texts = {
            "/": ("text/html", PAGE.replace("WORK", json.dumps(work(), allow_nan=False))),
            "/device.js": ("text/javascript", MODULE.read_text("utf-8")),
            "/harness.js": ("text/javascript", HARNESS.read_text("utf-8")),
        }
        kind, text = texts.get(self.path, ("text/plain", ""))
        body = text.encode()
        self.send_response(200 if self.path in texts else 404)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Silence."""


def in_chromium(folder):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            page = dump_dom(f"http://127.0.0.1:{server.server_port}/", folder)
        finally:
            server.shutdown()
    found = re.search(r'<pre id="out">(.*?)</pre>', page, re.DOTALL)
    return json.loads(html.unescape(found.group(1)))


@pytest.fixture(scope="module", params=["node", "chromium"])
def said(request, tmp_path_factory):
    """What an engine made of the work."""
    return in_node() if request.param == "node" else in_chromium(tmp_path_factory.mktemp("web"))


def test_a_thousand_vectors_give_the_same_bytes(said):
    expected = work()["vectors"]
    assert len(expected) == len(said["vectors"]) > 1000
    for ours, theirs in zip(expected, said["vectors"], strict=True):
        assert theirs["report"] == ours["report"]
        assert theirs["bytes"] == theirs["again"] == ours["bytes"]
        assert theirs["left"] == 0  # exactly the bytes that Python drew


def test_every_bad_input_is_refused_by_the_same_name(said):
    wrong = [
        (attempt, code, theirs)
        for (attempt, code), theirs in zip(refusals(), said["refusals"], strict=True)
        if theirs != code
    ]
    assert wrong == []
    assert len({code for _, code in refusals()}) >= 11


def test_reports_come_from_the_engines_own_randomness_unless_a_test_brings_its_own(said):
    assert len(said["reports"]) == len(ALL)
    for reports in said["reports"]:  # two split ones are alike once in 500: all six never
        assert len(reports) == 6 and len(set(reports)) > 1


def test_a_device_keeps_its_own_description(said):
    assert said["kept"] == [True] * len(ALL)


def deviations(counts, expected):
    """By how many deviations a chi-square is off (Wilson and Hilferty's cube root)."""
    free = len(counts) - 1
    statistic = sum((n - m) ** 2 / m for n, m in zip(counts, expected, strict=True))
    spread = 2 / (9 * free)
    return abs((statistic / free) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)


def test_draws_from_the_engines_own_randomness_are_uniform(said):
    """Unseeded: six deviations."""
    count = DRAWS["count"]
    for bound, counts in zip(DRAWS["bounds"], said["below"], strict=True):
        if bound > 2:
            assert deviations(counts, [count / bound] * bound) < 6
        assert all(abs(n - count / bound) < 6 * math.sqrt(count / bound) for n in counts)
    assert deviations(said["noise"], [count * 3 / 16] * 4 + [count / 4]) < 6
    assert abs(said["rewards"][1] - 0.3 * count) < 6 * math.sqrt(0.21 * count)
    assert said["bits"] == [count, 0]  # 3/2^60 never happens
    assert said["twice"][0] != said["twice"][1]


def test_groups_are_computed_alike(said):
    for description, found in zip(LAYOUTS, said["groups"], strict=True):
        expected = [one._asdict() for one in load(description).groups]
        noise = [one.pop("noise") for one in expected]
        assert [one.pop("noise") for one in found] == pytest.approx(noise, rel=1e-15)
        assert found == expected


def test_parts_of_the_format(said):
    assert said["digest"] == "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"
    assert said["cell"] == cell_to_bytes(2**32 - 2).hex()


def test_the_module_is_alone_and_in_the_package():
    text = MODULE.read_text("utf-8")
    assert not re.search(r"^\s*import |\brequire\(|\bfetch\(|Math\.random", text, re.MULTILINE)
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["setuptools"]["package-data"]["discreet.device"] == ["web/*.js"]
