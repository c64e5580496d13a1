"""The page in a real browser against a live shuffler: a person takes part, and is counted."""

import asyncio
import base64
import json
import os
import re
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from discreet.service.demo.users import WORLDS
from discreet.service.opening import open_cells
from discreet.service.protocol import report, ticket
from discreet.service.shuffler import web
from helpers.chromium import Browser
from helpers.services import (
    NOW,
    TOKEN,
    announced,
    batch_key,
    charter,
    make_test_shuffler,
    real_report,
    serving,
)

BROKEN = 10**9
"""Stands for what does not open."""
SHOTS = os.environ.get("DISCREET_SCREENSHOTS")
WORLD = json.dumps(
    {
        "name": "a test",
        "initial": [1.0, 0.0],
        "transitions": [[[[0.5, 0.5]] * 2] * 2] * 2,
        "rewards": [[[0.5] * 2] * 2] * 2,
        "reward_kind": "bernoulli",
    }
).encode()


@pytest.fixture
def live(tmp_path):
    """A shuffler with an open batch that lacks one user; address, manifest, store and ticket."""
    of = charter()
    passes = ticket.make(4)
    shuffler = make_test_shuffler(tmp_path / "shuffler.db", of, passes)
    one = announced(of, deadline=int(NOW) + 500)
    with (
        serving(shuffler, world=WORLD) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=120) as http,
    ):
        headers = {"authorization": f"Bearer {TOKEN}"}
        assert http.put("/v1/batches/0", content=one.signed, headers=headers).status_code == 201
        for own in passes[1:3]:
            assert http.post("/v1/reports", content=real_report(one, own)).status_code == 201
        yield url, of, one, passes, http


def opened(http, one):
    """What the analyser finds in every class."""
    headers = {"authorization": f"Bearer {TOKEN}"}
    found = []
    for place, size in enumerate(one.sizes):
        answer = http.get(f"/v1/batches/0/messages/{place}", headers=headers)
        while answer.status_code == 425:  # full, not yet shuffled
            answer = http.get(f"/v1/batches/0/messages/{place}", headers=headers)
        assert answer.status_code == 200, answer.text
        cells = one.device.groups[place].cells
        found.append(open_cells(answer.content, batch_key(0), one.hash, place, BROKEN))
        assert len(found[-1]) == 3 * size
        assert found[-1].max() <= cells  # the browser's envelopes open, every one of them
    return found


def picture(browser, name):
    if SHOTS:
        browser.screenshot(Path(SHOTS) / f"{name}.png")


@pytest.mark.parametrize(("width", "phone"), [(1280, False), (390, True)])
def test_a_person_takes_part(live, tmp_path, width, phone):
    url, of, one, passes, http = live
    with Browser(tmp_path, width, phone) as browser:
        browser.go(f"{url}/#study={of.id.hex()}&ticket={passes[0].hex()}")
        browser.wait("document.body?.dataset.ready")
        assert browser.run("location.href") == f"{url}/#study={of.id.hex()}"  # the ticket is gone
        assert "2 of 3 reports" in browser.text("#batch")
        assert "at most 54.60 times" in browser.text("#guarantee")  # e^4 = 54.598...
        assert "epsilon 4" in browser.text("#guarantee")
        assert browser.run("document.querySelectorAll('#chain tbody tr').length") == 1
        fits = "document.documentElement.scrollWidth <= innerWidth"
        assert browser.run(fits)
        picture(browser, f"{width}-begin")
        browser.click("#begin")
        for step in range(2):
            browser.wait(f"document.querySelectorAll('.told li').length === {step}")
            browser.wait("document.querySelector('#asked')")
            picture(browser, f"{width}-play-{step}")
            browser.click("#asked")
        browser.wait("document.querySelector('#send')")
        assert not any(method == "POST" for method, _ in browser.requests)  # nothing left yet
        shown = browser.run("[...document.querySelectorAll('pre')].map((p) => p.textContent)")
        digits = "".join("".join(shown).split())
        rows = browser.run("document.querySelectorAll('#messages tbody tr').length")
        assert rows == len(one.sizes) and browser.run(fits)
        picture(browser, f"{width}-review")
        browser.click("#send")
        browser.wait("!document.querySelector('#outcome').hidden")
        assert "was taken" in browser.text("#outcome") and "is spent" in browser.text("#outcome")
        assert not browser.run("document.querySelector('#linked').checkVisibility()")
        picture(browser, f"{width}-sent")
        sent = [address for method, address in browser.requests if method == "POST"]
        assert sent == [f"{url}/v1/reports"]
        assert all(address.startswith(url) for _, address in browser.requests)
        assert browser.run("Object.values(localStorage)") == [""]  # no bytes, and no second report
        # that no batch is open any more is answered with 404, and nothing else is complained of
        assert all("404" in complaint for complaint in browser.complaints)
        # what was shown is what was sent: the very same bytes are spent now
        again = http.post("/v1/reports", content=bytes.fromhex(digits))
        assert again.json()["code"] == "ticketSpent"
        assert len(bytes.fromhex(digits)) == 65 + one.body
    opened(http, one)


def test_a_person_comes_back_with_the_same_ticket(tmp_path):
    of, passes = charter(participations=2), ticket.make(5)
    shuffler = make_test_shuffler(tmp_path / "shuffler.db", of, passes)
    one = announced(of, deadline=int(NOW) + 500)
    two = announced(of, 1, before=one.manifest, deadline=int(NOW) + 500)
    headers = {"authorization": f"Bearer {TOKEN}"}
    with (
        serving(shuffler, world=WORLD) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=120) as http,
        Browser(tmp_path) as browser,
    ):
        assert http.put("/v1/batches/0", content=one.signed, headers=headers).status_code == 201
        assert http.post("/v1/reports", content=real_report(one, passes[1])).status_code == 201
        browser.go(f"{url}/#study={of.id.hex()}&ticket={passes[0].hex()}")
        browser.wait("document.body?.dataset.ready")
        assert "all of your episodes together: up to 2" in browser.text("#guarantee")
        assert "this server can tell that it came back" in browser.text("#linked")
        play(browser)
        browser.click("#send")
        browser.wait("document.querySelector('#outcome').innerText.includes('good for 1 batch')")
        browser.click("#begin")  # the same batch takes no second report, and none is encoded
        browser.wait("document.querySelector('#outcome').innerText.includes('in this batch')")
        assert http.post("/v1/reports", content=real_report(one, passes[2])).status_code == 201
        opened(http, one)
        assert http.post("/v1/batches/0/done", headers=headers).status_code == 200
        assert http.put("/v1/batches/1", content=two.signed, headers=headers).status_code == 201
        play(browser)
        browser.click("#send")
        browser.wait("document.querySelector('#outcome').innerText.includes('is spent')")
        assert http.post("/v1/reports", content=real_report(two, passes[0])).json()["code"] == (
            "ticketSpent"
        )


def play(browser):
    """An episode, up to the question whether to send it."""
    browser.click("#begin")
    for step in range(2):
        browser.wait(f"document.querySelectorAll('.told li').length === {step}")
        browser.wait("document.querySelector('#asked')")
        browser.click("#asked")
    browser.wait("document.querySelector('#send')")


def test_bytes_are_kept_and_sent_again_after_an_error(live, tmp_path):
    url, of, _, passes, http = live
    with Browser(tmp_path) as browser:
        browser.go(f"{url}/#study={of.id.hex()}&ticket={passes[0].hex()}")
        browser.wait("document.body?.dataset.ready")
        browser.run(f"""import("/page/protocol.js").then(async (p) => {{
            const manifest = await new p.Chain(await p.fetchCharter()).current();
            await p.outbox.settle(manifest, p.fromHex("{passes[0].hex()}"));
        }})""")
        browser.click("#begin")  # answered once: whatever the shuffler says, nothing is encoded
        browser.wait("document.querySelector('#outcome').innerText.includes('already')")
        assert not any(method == "POST" for method, _ in browser.requests)
        browser.run("localStorage.clear()")
        play(browser)
        kept = "Object.values(localStorage)[0]"
        before = browser.run(kept)
        browser.do("Network.emulateNetworkConditions", offline=True, **NO_NETWORK)
        browser.click("#send")
        browser.wait("document.querySelector('#outcome').innerText.includes('unreachable')")
        assert browser.run(kept) == f"sent {before}"
        browser.do("Network.emulateNetworkConditions", offline=False, **NO_NETWORK)
        browser.go("about:dummy")
        browser.go(f"{url}/#study={of.id.hex()}&ticket={passes[0].hex()}")
        browser.wait("document.body?.dataset.ready")
        assert browser.run(kept) == f"sent {before}"
        browser.click("#begin")  # the kept bytes go at once, no second encoding
        browser.wait("document.querySelector('#outcome').innerText.includes('was taken')")
    again = http.post("/v1/reports", content=base64.b64decode(before))
    assert again.json()["code"] == "ticketSpent"


HELD = """(() => {
    window.posts = [];
    const real = window.fetch;
    window.fetch = async (path, options) => {
        if (options?.method !== "POST") return real(path, options);
        window.posts.push(options.body.join());
        await new Promise((done) => { window.lose = done; });
        throw new TypeError("lost");
    };
})()"""


def test_what_is_being_sent_cannot_be_forgotten(live, tmp_path):
    """A second encoding of a ticket under one manifest would be a second look at its owner."""
    url, of, _, passes, _ = live
    with Browser(tmp_path) as browser:
        browser.go(f"{url}/#study={of.id.hex()}&ticket={passes[0].hex()}")
        browser.wait("document.body?.dataset.ready")
        browser.run(HELD)
        play(browser)
        browser.run("window.forgetting = document.querySelector('#forget')")
        browser.click("#send")
        browser.wait("window.posts.length === 1")
        assert browser.run("document.querySelector('#forget')") is None
        browser.run("window.forgetting.click()")  # who was faster than the page
        browser.run("window.lose()")
        browser.wait("document.querySelector('#outcome').innerText.includes('are kept')")
        browser.run("[...document.querySelectorAll('#review button')].at(-1).click()")
        browser.wait("window.posts.length === 2")
        assert browser.run("window.posts[0] === window.posts[1]")


def test_two_windows_of_a_browser_send_one_report(live, tmp_path):
    """What the other one has sealed, and perhaps sent, is neither overwritten nor forgotten."""
    url, of, _, passes, _ = live
    other = f"""import("/page/protocol.js").then(async (p) => {{
        const manifest = await new p.Chain(await p.fetchCharter()).current();
        const ticket = p.fromHex("{passes[0].hex()}");
        return JSON.stringify(await (%s)(p.outbox, manifest, ticket));
    }})"""
    keep = "async (box, ...whose) => box.keep(...whose, Uint8Array.of(1, 2))"
    send = "async (box, ...whose) => { await box.sending(...whose); return box.clear(...whose); }"
    read = "async (box, ...whose) => [...(await box.read(...whose))]"
    with Browser(tmp_path) as browser:
        browser.go(f"{url}/#study={of.id.hex()}&ticket={passes[0].hex()}")
        browser.wait("document.body?.dataset.ready")
        browser.click("#begin")
        browser.wait("document.querySelector('#asked')")
        browser.click("#asked")
        browser.wait("document.querySelectorAll('.told li').length === 1")
        assert browser.run(other % keep) == "true"  # the other window was faster
        browser.click("#asked")
        browser.wait("document.querySelector('#outcome').innerText.includes('Another window')")
        assert browser.run("document.querySelector('#review').hidden")
        assert browser.run(other % keep) == "false"
        assert browser.run(other % send) == "false"  # sent: it cannot be forgotten
        assert browser.run(other % read) == "[1,2]"
        assert not any(method == "POST" for method, _ in browser.requests)


@pytest.mark.parametrize(
    ("number", "shown"), [("Math.exp(1)", "2.72"), ("Math.exp(1.5)", "4.49"), ("1.5", "1.50")]
)
def test_a_promise_is_not_rounded_down(live, tmp_path, number, shown):
    source = (Path(web.__file__).parent / "page" / "page.js").read_text()
    function = re.search(r"const roundedUp = .*?\n};", source, re.DOTALL)[0]
    with Browser(tmp_path) as browser:
        browser.go(live[0])
        assert browser.run(f"(() => {{ {function} return roundedUp({number}); }})()") == shown


NO_NETWORK = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}


def test_another_study_than_the_link_names_is_refused(live, tmp_path):
    url, *_ = live
    with Browser(tmp_path) as browser:
        browser.go(f"{url}/#study={'0' * 64}")
        browser.run("new Promise((done) => setTimeout(done, 0))")
        while browser.run("document.body?.dataset.ready") is None:
            asyncio.run(asyncio.sleep(0.05))
        assert browser.run("document.body.dataset.ready") == "failed"
        assert "another study" in browser.text("#error")


def test_envelopes_of_the_browser_open_and_rfc_9180(live, tmp_path):
    """RFC 9180 has no vector of this suite with 4 bytes; Python opens what JavaScript seals."""
    url, *_ = live
    key = X25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    with Browser(tmp_path) as browser:
        browser.go(url)
        browser.wait("document.body?.dataset.ready")
        script = f"""import("/page/hpke.js").then(async ({{ Sealer }}) => {{
            const key = Uint8Array.from({list(public)});
            const info = Uint8Array.from({list(report.info(bytes(range(32)), 7))});
            const sealed = [];
            for (let cell = 0; cell < 20; cell++) {{
              sealed.push(...(await new Sealer(key).seal(Uint8Array.of(0, 0, 1, cell), info)));
            }}
            return sealed;
        }})"""
        sealed = bytes(browser.run(script))
    cells = open_cells(sealed, key, bytes(range(32)), 7, BROKEN)
    assert cells.tolist() == list(range(256, 276))
    moved = open_cells(sealed, key, bytes(range(32)), 8, BROKEN)
    assert set(moved.tolist()) == {BROKEN + 1}


def test_a_manifest_with_a_broken_signature_or_another_noise_is_refused(live, tmp_path):
    url, _, one, *_ = live
    with Browser(tmp_path) as browser:
        browser.go(url)
        browser.wait("document.body?.dataset.ready")
        script = f"""import("/page/protocol.js").then(async (p) => {{
            const charter = await p.fetchCharter();
            const bytes = Uint8Array.from({list(one.signed)});
            const say = (b, c) => p.readManifest(b, c).then(() => "fine", (e) => e.message);
            const bent = bytes.slice();
            bent[140] ^= 1;
            const more = {{ ...charter, lambda: charter.lambda.map(String) }};
            more.lambda[0] = String(2n * BigInt(charter.lambda[0]));
            const least = {{ ...charter, min_users: 4 }};
            return [await say(bytes, charter), await say(bent, charter),
                    await say(bytes, more), await say(bytes, least)];
        }})"""
        said = browser.run(script)
    assert said[0] == "fine" and "not signed" in said[1]
    assert "another noise" in said[2] and "smaller than the charter allows" in said[3]


def test_without_a_world_outcomes_are_typed(tmp_path):
    of, passes = charter(), ticket.make(1)
    one = announced(of)
    with serving(make_test_shuffler(tmp_path / "shuffler.db", of, passes)) as url:
        headers = {"authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=url, trust_env=False, timeout=120) as http:
            http.put("/v1/batches/0", content=one.signed, headers=headers)
        with Browser(tmp_path) as browser:
            browser.go(f"{url}/#ticket={passes[0].hex()}")
            browser.wait("document.body?.dataset.ready")
            browser.click("#begin")
            browser.wait("document.querySelector('.card button')")
            browser.click(".card button")  # the only start state
            for _ in range(2):
                browser.wait("document.querySelector('#asked')")
                browser.click("#asked")
                browser.wait("document.querySelector('#next')")
                browser.run("document.querySelector('#reward').value = '0.25'")
                browser.click(".card button")
            browser.wait("document.querySelector('#send')")
            browser.click("#send")
            browser.wait("document.querySelector('#outcome').innerText.includes('was taken')")


def test_files_say_what_they_are_and_load_nothing_from_elsewhere(tmp_path):
    shuffler = make_test_shuffler(tmp_path / "shuffler.db", charter())
    with (
        serving(shuffler) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=120) as client,
    ):
        whole = client.get("/")
        assert "default-src 'none'" in whole.headers["content-security-policy"]
        assert whole.headers["content-type"] == web.KINDS["html"]
        for name in (*web.FILES, "device.js"):
            answer = client.get(f"/page/{name}")
            assert answer.status_code == 200 and answer.headers["x-content-type-options"]
            assert not re.search(r"https?://", answer.text)
        assert client.get("/page/world.json").json() is None
        assert client.get("/page/page.py").json()["code"] == "notFound"
        assert "https:" not in whole.text and " onclick" not in whole.text


def test_worlds_of_demonstrations_are_what_the_page_reads():
    for world in WORLDS.values():
        told = world.description()
        assert len(told["transitions"]) == len(told["rewards"]) == len(world.steps)
