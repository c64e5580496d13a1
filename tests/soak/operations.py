"""One study to which everything happens, and what its operators saw at every stage.

python -m tests.soak.operations [--users 1000] [--kills 60] [--ages 3] [--log signals.jsonl]

Real processes behind nginx with TLS of a private authority: SIGKILLs of all roles, a full disk of
each role, a lost key and an abandoned batch, every role put back from every age of backup by the
lines of the runbook, new tickets, token and signing key, a clock 40 days ahead. At
every stage livez, readyz, metrics, logs and the operator's page must say what is the case: all of
it stands in the log. At the end every person is in one counted batch at most, whatever copy of the
study counted it, and the ledger fits the manifests of both sides. `--ages 0` leaves out restores,
new keys and full disks.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import httpx

from discreet.service.client import Client
from discreet.service.configs import AnalyserConfig
from discreet.service.demo import users
from discreet.service.demo.run import Arrangement, Role, ending, free_port, set_up
from discreet.service.demo.users import answered, get_world
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol import ticket
from discreet.service.protocol.problems import Refusal
from discreet.study.study import Study
from helpers.nginx import NGINX, nginx
from helpers.strain import strain

GUIDES = pathlib.Path(__file__).parents[2] / "docs" / "how-to" / "operator"
RUNBOOK, ROUTINE = GUIDES / "recover.md", GUIDES / "operate.md"
DAY = 86_400
PARTS = 2
DISK = 96
"""Megabytes of each role's disk."""
DISKS = ("shuffler", "analyser")
CLONE_NEWNS = 0x20000
SECONDS = 120
"""In which whatever is awaited has to happen."""
ROLE = """
import sys, time
ahead = float(sys.argv.pop(1))
from discreet.service import configs
configs.SystemClock.now = lambda _: time.time() + ahead
from discreet.cli.app import main
main()
"""
"""A command of discreet on a machine whose clock is ahead."""
ROW = re.compile(r'<td class="light (\w+)">\w+</td><th>(.*?)</th><td>(.*?)</td>')


class Signals:
    """What the operators of both roles can see at a moment."""

    def __init__(self, site):
        self.shuffler, self.analyser, self.page = {}, {}, {}
        for role, address in (("shuffler", site.private), ("analyser", site.page)):
            found = getattr(self, role)
            with contextlib.suppress(httpx.HTTPError), httpx.Client(timeout=10) as http:
                found["livez"] = http.get(f"http://{address}/livez").status_code
                ready = http.get(f"http://{address}/readyz")
                found["readyz"] = ready.status_code
                found["checks"] = {c["name"]: c["colour"] for c in ready.json()["checks"]}
                found["words"] = {c["name"]: c["words"] for c in ready.json()["checks"]}
                lines = http.get(f"http://{address}/metrics").text.splitlines()
                pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
                found["metrics"] = {k.removeprefix("discreet_"): float(v) for k, v in pairs}
                if role == "analyser":
                    rows = ROW.findall(http.get(f"http://{address}/").text)
                    self.page = {name: colour for colour, name, _ in rows}
        self.logs = {role: site.lines(role) for role in ("shuffler", "analyser")}

    def said(self, role, words):
        """Whether a line of the log since the last stage holds these words."""
        return any(words in line for line in self.logs[role])

    def metric(self, role, name):
        return getattr(self, role).get("metrics", {}).get(name)

    def green(self):
        """Claims of a study that goes well."""
        users_ = self.metric("analyser", "analyser_users")
        return {
            "livez 200": self.shuffler.get("livez") == self.analyser.get("livez") == 200,
            "readyz 200": self.shuffler.get("readyz") == self.analyser.get("readyz") == 200,
            "nothing red": {
                *self.page.values(),
                *self.shuffler.get("checks", {"-": "red"}).values(),
            }
            <= {"green", "yellow"},
            "no red in metrics": self.metric("analyser", "analyser_red") == 0,
            "page is readyz": self.page == self.analyser.get("checks"),
            "users in metrics": users_ is not None,
            "seconds to deadline": (self.metric("shuffler", "batch_seconds_left") or 1) > 0,
        }

    def short(self):
        """In one line."""
        both = {
            role: {k: v for k, v in getattr(self, role).items() if k in ("livez", "readyz")}
            for role in ("shuffler", "analyser")
        }
        red = sorted(n for n, c in self.page.items() if c == "red")
        red += [f"shuffler's {n}" for n, c in self.shuffler.get("checks", {}).items() if c == "red"]
        totals = {
            name: self.metric(role, name)
            for role, name in (
                ("analyser", "analyser_users"),
                ("shuffler", "tickets_spent"),
                ("shuffler", "tickets_void"),
                ("shuffler", "batches_done"),
                ("shuffler", "batches_abandoned"),
            )
        }
        return both | {"red": red, "totals": totals}


class Site:
    """All organisations on one machine, each role a process, nginx between them."""

    def __init__(self, folder, people, log):
        self.folder, self.log = folder / "site", log
        ports = [free_port() for _ in range(4)]
        self.private, self.page = (f"127.0.0.1:{port}" for port in ports[1:3])
        self.ports, self.proxy = ports, folder / "nginx"
        self.url = f"https://127.0.0.1:{ports[3]}"
        self.ca_file = self.proxy / "ca.pem"
        arrangement = Arrangement(users=people)
        made = set_up(
            self.folder, arrangement, self.url, ports[0], page=self.page, ca_file=str(self.ca_file)
        )
        self.charter = made.charter
        (folder / "backups").mkdir()
        (self.folder / "backup").mkdir()
        (self.folder / "logs").mkdir()
        (self.folder / "enroller-site").mkdir()
        (self.folder / "enroller").rename(self.folder / "enroller-site" / "enroller")
        (self.folder / "enroller").mkdir()
        private = ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0  # mounts end with this process
        private = private and not os.system("mount --make-rprivate /")
        self.disks = [mounted(self.folder / role) for role in DISKS] if private else []
        command = re.search(r'backup = "(sh .*?)"', ROUTINE.read_text("utf-8"))[1]
        (self.folder / "back-up").write_text(
            f"{command} && cp ../backup/analyser.tar {folder}/backups/$(date +%s%N).tar\n"
        )
        edit(made.config("shuffler"), private=self.private)
        edit(made.config("analyser"), backup="sh ../back-up")
        self.backups = folder / "backups"
        self.read = dict.fromkeys(("shuffler", "analyser"), 0)
        self.shuffler, self.analyser = self.role("shuffler"), self.role("analyser")
        self.users = [self.crowd(part) for part in range(PARTS)]
        self.stages, self.kills, self.spent, self.counted = [], {}, {}, {}
        self.began, self.handed = time.monotonic(), 0
        self.gate(open_=False)
        self.hand_out()

    # --- processes

    def role(self, name, ahead=0):
        config = str(self.folder / name / f"{name}.toml")
        words = ["-c", ROLE, str(ahead), "service", name, "--config", config, "--rehearsal"]
        log = self.folder / "logs" / f"{name}.log"
        log.touch()
        return Role(name, [*words, "--log-format", "json"], log)

    def replace_analyser(self, ahead):
        kills, self.analyser = self.analyser.kills, self.role("analyser", ahead)
        self.analyser.kills = kills
        self.analyser.start()

    def crowd(self, part):
        words = [__file__, "--crowd", str(self.folder), str(part)]
        return Role(f"users {part}", words, self.folder / "logs" / f"users-{part}.log")

    @property
    def roles(self):
        return [self.shuffler, self.analyser, *self.users]

    def gate(self, *, open_):
        """Whether people who have a ticket take part."""
        (self.folder / "gate").write_text("open" if open_ else "closed")

    def systemctl(self, what, name):
        role = getattr(self, name)
        if what == "start":
            role.start()
            if name == "shuffler":
                self.until("the shuffler's start", self.answers)
        elif what == "stop":
            role.stop()
        else:
            os.kill(role.number, signal.SIGHUP)

    def answers(self):
        self.shuffler.check()
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"http://{self.private}/livez").is_success
        return False

    def run(self, line):
        """One line of the runbook."""
        if line.startswith("systemctl "):
            _, what, unit = line.split()
            self.systemctl(what, unit.removeprefix("discreet-"))
            return ""
        if line.startswith("discreet "):
            words = line.replace("http://127.0.0.1:8700", self.url).split()[1:]
            words += ["--ca-file", str(self.ca_file)] if "--url" in words else []
            words += ["--rehearsal"] if words[1] in ("abandon", "recover") else []
            command = [sys.executable, "-m", "discreet", *words]
        else:
            command = ["sh", "-c", line]
        done = subprocess.run(
            command, cwd=self.folder, check=False, capture_output=True, encoding="utf-8"
        )
        need(done.returncode == 0, f"{line}: {done.stdout}{done.stderr}")
        if "service tickets" in line:
            self.hand_out()
        return done.stdout

    def follow(self, section, count=0):
        """A section of the runbook; as many new tickets as the rest of the study needs."""
        text = RUNBOOK.read_text("utf-8")
        lines = re.search(rf"## {section}.*?```sh\n(.*?)```", text, re.DOTALL)[1].splitlines()
        for line in lines:
            self.run(line.replace("--count 500", f"--count {count}"))

    def lines(self, role):
        """What a role has logged since the last stage, with what it said as it ended."""
        text = (self.folder / "logs" / f"{role}.log").read_text("utf-8", "replace")
        return text[self.read[role] :].splitlines()

    # --- people

    def hand_out(self):
        """Every ticket that the enroller's list has goes to somebody."""
        own = self.folder / "enroller" / "tickets.txt"
        given = ticket.read(own) if own.exists() else []
        made = ticket.read(self.folder / "enroller-site" / "enroller" / "tickets.txt")
        ticket.write(own, given + [one for one in made if one not in set(given)])
        for role in self.users:
            if role.number:
                role.stop()
                role.start()

    def sent(self):
        return answered(self.folder / "users", 1)

    def study(self):
        return Study.read(self.folder / "analyser" / "study.db")

    def left(self):
        """Tickets for whoever may still be asked, and some more."""
        study = self.study()
        return study.episodes - study.users + 20

    # --- what happens

    def until(self, what, wanted):
        last = time.monotonic() + SECONDS
        while not (found := wanted()):
            need(time.monotonic() < last, f"waited in vain: {what}")
            time.sleep(0.05)
        return found

    def ends(self, words):
        """The analyser gives up with a code that systemd counts, and says why."""
        self.until("the analyser's end", lambda: self.analyser.ended is not None)
        said = "\n".join(self.lines("analyser")[-30:])
        need(self.analyser.ended > 0, f"code {self.analyser.ended}: {said}")
        need(re.search(words, said) is not None, f"expected {words!r} in: {said}")
        return True

    def batch(self, more=1):
        """People take part until so many more batches are counted."""
        aim = self.study().batches + more
        self.gate(open_=True)
        self.until("a batch", lambda: self.study().batches >= aim or self.study().finished)
        self.gate(open_=False)

    def some(self):
        """Some reports in a batch that is open and stays so."""

        def received():
            with contextlib.suppress(httpx.HTTPError, TypeError):
                text = httpx.get(f"http://{self.private}/metrics").text
                found = re.search(r"(?m)^discreet_batches_open 1.0$", text)
                return found and float(re.search(r"(?m)^discreet_received (\S+)", text)[1])
            return 0

        while not received():
            self.gate(open_=True)
            self.until("reports", received)
            self.gate(open_=False)
            time.sleep(0.5)  # who was under way

    def chaos(self, kills):
        """SIGKILL in the middle of whatever they do, each role in turn."""
        self.gate(open_=True)
        for _ in range(kills):
            aim = self.sent() + 1 + random.randrange(3)
            self.until("progress", lambda aim=aim: self.sent() >= aim)
            least = min(role.kills for role in self.roles)
            victim = random.choice([role for role in self.roles if role.kills == least])
            need(victim.kill(), f"{victim.name} had ended: {victim.words}")
        self.gate(open_=False)

    def note(self):
        """Who was spent under which manifest, before anything is lost; which were counted."""
        store = self.folder / "shuffler" / "shuffler.db"
        with contextlib.closing(sqlite3.connect(store)) as database:
            rows = database.execute("SELECT hash, number FROM ticket WHERE number >= 0").fetchall()
        for digest, number in rows:
            self.spent.setdefault(bytes(digest), set()).add(number)
        by_hash = {}
        for path in (self.folder / "analyser" / "manifests").glob("*.manifest"):
            manifest = manifests.parse(path.read_bytes())
            by_hash[manifest.hash.hex()] = manifest
        for entry in self.study().ledger:
            if entry["kind"] == "batch":
                manifest = by_hash[entry["note"]["manifest"]]
                self.counted[manifest.number] = manifest.users

    def stage(self, name, claims=Signals.green):
        """Until all signals are right; what they said goes to the log."""
        last = time.monotonic() + SECONDS
        while True:
            seen = Signals(self)
            wrong = [claim for claim, holds in claims(seen).items() if not holds]
            if not wrong:
                break
            if time.monotonic() > last:
                need(False, f"{name}: not true: {wrong}\n{json.dumps(vars(seen), indent=1)}")
            time.sleep(0.2)
        row = {"stage": name, "seconds": round(time.monotonic() - self.began)}
        row |= {"kills": sum(role.kills for role in self.roles), "right": list(claims(seen))}
        self.log.write(json.dumps(row | vars(seen)) + "\n")
        self.log.flush()
        self.stages.append(row | seen.short())
        said = seen_in_short(self.stages[-1])
        print(f"{row['seconds']:4d} s | {row['kills']} kills | {name} | {said}", flush=True)
        for role in self.read:
            self.read[role] = len(
                (self.folder / "logs" / f"{role}.log").read_text("utf-8", "replace")
            )
        return seen


def need(truth, words):
    if not truth:
        raise SystemExit(f"The service did not do what it should: {words}")


def edit(path, **values):
    """Other values in a role's file."""
    text = path.read_text()
    for key, value in values.items():
        text, times = re.subn(rf"(?m)^{key} = .*$", lambda _: f'{key} = "{value}"', text)  # noqa: B023
        need(times == 1, f"no {key} in {path}")
    path.write_text(text)


def mounted(place):
    """A small disk for a role's folder."""
    kept = place.with_suffix(".kept")
    place.rename(kept)
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK}m", "tmpfs", str(place)]
    subprocess.run(words, check=True)
    for path in kept.iterdir():
        shutil.move(path, place)
    return place


def fill(place):
    """Every byte of a disk."""
    with contextlib.suppress(OSError), (place / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))


# The stages.


def operate(site, kills, ages):
    for role in site.roles:
        role.start()
    site.stage("all roles run")
    site.chaos(kills // 2)
    site.batch(3)
    site.stage(f"{kills // 2} SIGKILLs")
    shuffler_away(site)
    lost_key(site)
    if ages:
        full_disks(site)
        new_token(site)
        new_signing_key(site)
    new_tickets(site)  # from here on a batch of all who are left can be filled
    wrong_clock(site)
    for age in range(1, ages + 1):
        restored_analyser(site, age)
    site.chaos(kills - kills // 2)
    site.stage(f"{kills} SIGKILLs")
    for age in ("this batch", "the batch before", "none")[:ages]:
        restored_shuffler(site, age)
    site.gate(open_=True)
    site.until("the end of the study", lambda: site.analyser.ended is not None)
    need(site.analyser.ended == 0, site.analyser.words)
    site.stage(
        "finished",
        lambda seen: {
            "shuffler's readyz 200": seen.shuffler.get("readyz") == 200,
            "nothing open": seen.metric("shuffler", "batches_open") == 0,
            "no body is left": seen.metric("shuffler", "received") == 0,
        },
    )


def shuffler_away(site):
    site.systemctl("stop", "shuffler")
    site.stage(
        "the shuffler is away",
        lambda seen: {
            "page: shuffler red": seen.page.get("answers") == "red",
            "analyser's readyz 503": seen.analyser.get("readyz") == 503,
            "analyser's livez 200": seen.analyser.get("livez") == 200,
            "red in metrics": (seen.metric("analyser", "analyser_red") or 0) >= 1,
            "said": seen.said("analyser", "trying again until the shuffler answers"),
        },
    )
    site.systemctl("start", "shuffler")
    site.stage("the shuffler is back")


def full_disks(site):
    if not site.disks:
        print("The full disks are left out: this process may not mount a small one.", flush=True)
    for disk in site.disks:
        role = disk.name
        site.some()
        fill(disk)
        site.gate(open_=True)
        if role == "shuffler":
            site.stage(
                "the shuffler's disk is full",
                lambda seen: {
                    "readyz 503": seen.shuffler.get("readyz") == 503,
                    "livez 200": seen.shuffler.get("livez") == 200,
                    "disk red": seen.shuffler.get("checks", {}).get("disk") == "red",
                    "0 bytes free": seen.metric("shuffler", "bytes_free") == 0,
                    "said": seen.said("shuffler", "disk is full"),
                },
            )
        else:
            site.ends("No space left|Make room")
            site.stage(
                "the analyser's disk is full",
                lambda seen: {
                    "page away": not seen.page,
                    "shuffler ready": seen.shuffler.get("readyz") == 200,
                    "said": seen.said("analyser", "Make room"),
                },
            )
        (disk / "filler").unlink()
        if role == "analyser":
            site.systemctl("start", "analyser")
        site.batch()
        site.stage(f"the {role}'s disk has room")


def given_up(site, name, before):
    """A batch was abandoned: both sides say so."""
    site.stage(
        name,
        lambda seen: (
            seen.green()
            | {"abandoned": (seen.metric("shuffler", "batches_abandoned") or 0) > before}
        ),
    )


def abandoned(site):
    return Signals(site).metric("shuffler", "batches_abandoned")


def lost_key(site):
    site.some()
    before = abandoned(site)
    site.systemctl("stop", "analyser")
    shutil.rmtree(site.folder / "analyser" / "keys")
    site.systemctl("start", "analyser")
    site.ends("`discreet service abandon --config FILE`")
    site.run("discreet service abandon --config analyser/analyser.toml")
    need(site.study().ledger[-1]["note"]["tickets"].endswith("are free again"), "tickets are free")
    site.systemctl("start", "analyser")
    given_up(site, "a key was lost, its batch abandoned, its tickets free", before)
    site.batch()


def restored_analyser(site, age):
    site.some()
    site.note()
    before, kept = abandoned(site), sorted(site.backups.iterdir())[-age].read_bytes()
    site.systemctl("stop", "analyser")
    for path in (site.folder / "analyser").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (site.folder / "backup" / "analyser.tar").write_bytes(kept)
    site.run("tar -xf backup/analyser.tar")
    site.systemctl("start", "analyser")
    site.ends("`discreet service abandon --config FILE`")
    site.follow("The analyser's disk is lost")
    given_up(site, f"the analyser from a backup {age - 1} batches old", before)
    site.batch()


def new_tickets(site):
    (site.folder / "enroller-site" / "enroller" / "tickets.txt").unlink()
    before, process = Signals(site).metric("shuffler", "tickets"), site.shuffler.number
    site.follow("The enroller's list is lost", 40)
    site.stage(
        "the enroller's list was lost; new tickets by SIGHUP",
        lambda seen: (
            seen.green()
            | {
                "40 tickets more": seen.metric("shuffler", "tickets") == before + 40,
                "without a start": site.shuffler.number == process,
                "said": seen.said("shuffler", "were read again"),
            }
        ),
    )


def restored_shuffler(site, age):
    store, copy = site.folder / "shuffler" / "shuffler.db", site.folder / "copy.db"
    site.some()
    with (
        contextlib.closing(sqlite3.connect(copy)) as to,
        contextlib.closing(sqlite3.connect(store)) as source,
    ):
        source.backup(to)
    if age == "the batch before":
        site.batch()
    site.some()
    site.note()
    site.systemctl("stop", "shuffler")
    for path in store.parent.glob("shuffler.db*"):
        path.unlink()
    if age != "none":
        shutil.copy(copy, store)
    if age != "this batch":
        site.systemctl("start", "shuffler")
        site.systemctl("stop", "analyser")
        site.systemctl("start", "analyser")
        site.ends("`discreet service recover`")
    site.follow("The shuffler's store is lost", site.left())
    site.stage(
        f"the shuffler's store from a copy: {age}",
        lambda seen: (
            seen.green()
            | {
                "tickets void": (seen.metric("shuffler", "tickets_void") or 0) > 0,
                "said": seen.said("shuffler", "were read again"),
            }
        ),
    )
    site.batch()


def new_token(site):
    config = AnalyserConfig.read(site.folder / "analyser" / "analyser.toml")
    old = config.token
    said = site.run("discreet service rotate token --config analyser/analyser.toml")
    both = re.search(r'analyser_token_sha256 = "(.*)"', said)[1]
    file = site.folder / "shuffler" / "shuffler.toml"
    for digests in (both, both.split(",")[0]):
        edit(file, analyser_token_sha256=digests)
        site.systemctl("reload", "shuffler")
        site.until("reading", lambda: any("read again" in x for x in site.lines("shuffler")))
        site.systemctl("stop", "analyser")
        site.systemctl("start", "analyser")
    site.batch()
    with Client(site.url, old, ca_file=site.ca_file) as client, contextlib.suppress(Refusal):
        client.state(0)
        need(False, "the old token still works")
    site.stage("a new token")


def new_signing_key(site):
    site.run("discreet service rotate signing-key --config analyser/analyser.toml")
    for batches in (2, 0):  # one manifest names the new key, the one after it is signed with it
        site.systemctl("stop", "analyser")
        site.systemctl("start", "analyser")
        site.batch(batches)
        site.some()
    gone = site.folder / "analyser" / "signing.key.old"
    site.stage(
        "a new signing key", lambda seen: seen.green() | {"the old one gone": not gone.exists()}
    )


def wrong_clock(site):
    site.some()
    site.systemctl("stop", "analyser")
    site.replace_analyser(ahead=40 * DAY)
    site.stage(
        "the analyser's clock is 40 days ahead",
        lambda seen: {
            "page: clock red": seen.page.get("clock") == "red",
            "readyz 503": seen.analyser.get("readyz") == 503,
            "shuffler ready": seen.shuffler.get("readyz") == 200,
        },
    )
    site.gate(open_=True)
    site.ends(r"3,45\d,\d+ seconds ahead of the shuffler's")
    site.gate(open_=False)
    site.stage(
        "and it has to write a manifest",
        lambda seen: {
            "the shuffler said": seen.said("shuffler", "in the future: the analyser's clock"),
            "the analyser said": seen.said("analyser", "Set the clock that is wrong"),
            "metrics": (seen.metric("shuffler", "manifests_refused_total") or 0) >= 1,
        },
    )
    site.replace_analyser(ahead=0)
    site.batch()
    site.stage("the clock is right again")


def examine(site):
    """Counted once, and the ledger fits."""
    site.note()
    study = site.study()
    per_person = [len(numbers & site.counted.keys()) for numbers in site.spent.values()]
    need(max(per_person) == 1, f"somebody is in {max(per_person)} counted batches")
    for number, wanted in site.counted.items():
        found = sum(number in numbers for numbers in site.spent.values())
        need(found == wanted, f"manifest {number}: {found} tickets for {wanted} people")
    command = (
        "discreet service verify charter.json --manifests analyser/manifests "
        "--study analyser/study.db --url http://127.0.0.1:8700 --json"
    )
    verified = json.loads(site.run(command))
    need(verified["batches_counted"] == study.batches, "the ledger does not fit")
    need(not list((site.folder / "analyser" / "keys").iterdir()), "a batch key is left")
    return {
        "users": study.users,
        "batches": study.batches,
        "people in counted batches, each in one": sum(per_person),
        "of them in batches that a restored study forgot": sum(per_person) - study.users,
        "manifests": verified["manifests_at_the_shuffler"],
        "kills": {role.name: role.kills for role in site.roles},
        "stages with right signals": len(site.stages),
        "ledger verified": True,
        "seconds": round(time.monotonic() - site.began),
    }


def crowd(folder, part):
    """People of a part take part, one after the other, while the gate is open."""
    one = users.start(folder, get_world("treatment"), (0, part, PARTS, 0))
    while True:
        if (folder / "gate").read_text() != "open" or next(one.live(1 << 30), None) is None:
            time.sleep(0.05)


def main():
    if "--crowd" in sys.argv:
        crowd(pathlib.Path(sys.argv[2]), int(sys.argv[3]))
        return
    sizes = {"users": 1000, "kills": 60, "ages": 3, "log": "signals.jsonl"}
    with (
        strain(__doc__, **sizes) as (chosen, folder),
        pathlib.Path(chosen.log).open("w") as log,
        running(Site(folder, chosen.users, log)) as site,
    ):
        operate(site, chosen.kills, chosen.ages)
        print(json.dumps(examine(site), indent=1), flush=True)


def seen_in_short(row):
    """One stage in some words: what both roles answered, what was red."""
    roles = [
        f"{name} {row[name]['livez']}/{row[name]['readyz']}" if row[name] else f"{name} away"
        for name in ("shuffler", "analyser")
    ]
    return "; ".join([*roles, f"red: {', '.join(row['red']) or 'nothing'}"])


@contextlib.contextmanager
def running(site):
    """nginx before it; at the end no process and no disk is left."""
    need(NGINX is not None, "nginx is not installed here")
    with nginx(site.proxy, site.ports[0], site.ports[1], site.ports[3]), ending([]):
        try:
            yield site
        finally:
            for role in site.roles:
                role.stop()
            for disk in site.disks:
                subprocess.run(["umount", str(disk)], check=True)


if __name__ == "__main__":
    main()
