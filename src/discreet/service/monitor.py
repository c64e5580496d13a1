"""The operator's page of an analyser: every role and every promise in green, yellow or red.

What trialists call fidelity monitoring. The analyser's thread looks at its study after every step
(`Monitor.look`); a second thread serves what was seen last, at an address of the file, on loopback:
the page, ``/livez``, ``/readyz`` and ``/metrics``. Only what is public stands there: totals, the
policy in force, the guarantee.
"""

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

import jinja2
import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet._types import Plain
from discreet.errors import DiscreetError
from discreet.privacy.guarantee import rounded_up
from discreet.service import configs, health, verification
from discreet.service.analyser import Analyser
from discreet.service.client import UnreachableError
from discreet.service.configs import AnalyserConfig, Clock, SystemClock
from discreet.service.health import Check, Colour
from discreet.service.protocol.problems import Refusal
from discreet.service.worker import last_backup

log = logging.getLogger("discreet.service.monitor")
_SKEW = 60.0
"""Seconds by which clocks may differ: a tenth of the shortest patience that makes sense."""
_PAUSE = 2.0
"""Seconds between looks while nothing happens."""
_LONG = 60.0
"""Seconds after which a step is a long one."""
_STUCK = 3600.0
"""Seconds that no step takes: the process hangs."""
_STARTING = "starting"
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


@dataclass(frozen=True, kw_only=True)
class Sight:
    """What was seen after one step.

    Attributes:
        state: what the step gave.
        at: when, in seconds that the clock has counted.
        totals: public numbers by name: metrics.
        checks: by role or subject, all but those that depend on the moment.
        facts: what else the page says, in words.
        policy: in force: step -> the action for each state, by name.
        paused: nobody is asked anything at the moment, so it is what is done without a study.
        deadline: of the open batch.
    """

    state: str
    at: float
    totals: dict[str, float] = field(default_factory=dict)
    checks: dict[str, list[Check]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    policy: dict[str, list[str]] = field(default_factory=dict)
    paused: bool = False
    deadline: float | None = None


class Monitor:
    """What is seen of one analyser, and how it is shown.

    Args:
        analyser: whose thread calls `look`.
        config: its file.
        clock: where time comes from.
    """

    def __init__(
        self, analyser: Analyser, config: AnalyserConfig, clock: Clock | None = None
    ) -> None:
        self._analyser, self._config, self._clock = analyser, config, clock or SystemClock()
        self._fits = Check("ledger", "yellow", "was not compared with the manifests yet")
        self._opened = self._opening = 0.0
        self._red: set[str] = set()
        self.sight = Sight(state=_STARTING, at=self._clock.elapsed())

    def look(self, state: str) -> None:
        """After a step: never a reason for the analyser to end. Of equal ones some are left out."""
        age = self._clock.elapsed() - self.sight.at
        if state == self.sight.state and state != "counted" and age < _PAUSE:
            return
        try:
            self.sight = self._seen(state)
            self._say_changes()
        except Exception as error:  # whatever the shuffler, a file or the disk gave
            said = error if isinstance(error, DiscreetError | OSError) else type(error).__name__
            log.warning("the page is out of date: %s", said, extra={"code": "monitor"})

    def _say_changes(self) -> None:
        for one in (one for some in self.checks().values() for one in some):
            if (one.colour == "red") == (one.name in self._red):
                continue  # a line for each change
            self._red ^= {one.name}
            level = logging.ERROR if one.colour == "red" else logging.INFO
            words = f"{one.name} is {one.colour}: %s"  # a kind of line of its own
            log.log(level, words, one.words, extra={"code": one.colour})

    def _seen(self, state: str) -> Sight:
        analyser, now = self._analyser, self._clock.elapsed()
        study, charter, current = analyser.study, analyser.charter, analyser.latest()
        if state == "counted":
            self._opened += 1
            self._opening += now - self.sight.at
        if state == "counted" or self._fits.colour != "green":
            self._fits = self._compared()
        shuffler, public = self._asked()
        unreadable, share = _unreadable(study.ledger)
        totals: dict[str, float] = {
            "users": study.users,
            "batches": study.batches,
            "opens": self._opened,
            "open_seconds": self._opening,
            "envelopes_unreadable": unreadable,
            "unreadable_share": share,
        }
        colour: Colour = "green" if share <= 0.01 else "yellow"  # more than allowed: it has ended
        checks = {
            "analyser": [self._fits, self._keys_gone(), health.check_disk(self._config.folder)],
            "shuffler": [shuffler, health.check_clock(self._skew(), _SKEW)],
            "participants": [
                Check(
                    "envelopes that cannot be read",
                    colour,
                    f"{share:.1%} of the worst group of the last batch",
                ),
                self._counted_once(public),
            ],
        }
        most, epsilon = charter.participations, rounded_up(charter.epsilon)
        often = "once" if most == 1 else f"in {most} batches together"
        facts = {
            "reports counted": f"{study.users:,} of {study.episodes:,}, in {study.batches} "
            "batches; each is one use of a ticket",
            "privacy spent": f"by each ticket, {often}: epsilon {epsilon}, delta "
            f"{rounded_up(charter.delta, 3)}, unless shuffler and analyser work together",
        }
        names, paused = charter.names, not public.get("batches_open")
        rows = [[0] * charter.states] * charter.horizon  # the first action: what is done today
        if current is not None:
            manifest = current.manifest
            rows = rows if paused else manifest.policy
            received = public.get("received", 0)
            facts["open batch"] = f"{received:,} of {manifest.users:,} reports"
            totals["batch_wanted"], totals["batch_received"] = manifest.users, received
        return Sight(
            state=state,
            at=now,
            totals=totals,
            checks=checks,
            facts=facts,
            policy={
                step: [names["actions"][action] for action in row]
                for step, row in zip(names["steps"], rows, strict=True)
            },
            paused=paused,
            deadline=None if current is None else float(current.manifest.deadline),
        )

    def _compared(self) -> Check:
        if self._analyser.latest() is None:
            return Check("ledger", "yellow", "there is no manifest yet to compare it with")
        try:
            signed = verification.read_manifests(self._config.folder / "manifests")
            chain = verification.check_chain(self._analyser.charter, signed)
            counted = verification.check_ledger(self._analyser.study, chain)
        except DiscreetError as error:
            return Check("ledger", "red", str(error))
        return Check("ledger", "green", f"fits {len(chain)} manifests, {counted} batches counted")

    def _keys_gone(self) -> Check:
        """One key at most is there: that of the open batch."""
        there = len(list((self._config.folder / "keys").glob("*.key")))
        if there > 1:
            return Check("keys of counted batches", "red", f"{there - 1} were not destroyed")
        return Check("keys of counted batches", "green", "destroyed")

    def _asked(self) -> tuple[Check, dict[str, int]]:
        try:
            public = self._analyser.client.metrics()
        except (UnreachableError, Refusal) as error:
            return Check("answers", "red", str(error)), {}
        if self._analyser.trouble:  # it answers, and yet no step is done
            return Check("answers", "red", self._analyser.trouble), public
        return Check("answers", "green", f"{public.get('batches_done', 0)} batches done"), public

    def _skew(self) -> float | None:
        date = self._analyser.client.date
        return None if date is None else self._clock.now() - date

    def _counted_once(self, public: dict[str, int]) -> Check:
        """No more reports are counted than tickets gave, or could have before a store was lost."""
        often, users = self._analyser.charter.participations, self._analyser.study.users
        name = "each ticket counted once" + (f" in {often} batches at most" if often > 1 else "")
        if "tickets_spent" not in public:
            return Check(name, "yellow", "the shuffler does not answer")
        spent, void = public["tickets_spent"], public["tickets_void"]
        colour: Colour = "green" if users <= spent + often * void else "red"
        return Check(name, colour, f"{users:,} counted, {spent:,} uses of tickets, {void:,} void")

    def checks(self) -> dict[str, list[Check]]:
        """All checks, those of this moment too."""
        sight, now = self.sight, self._clock.now()
        silent = self._clock.elapsed() - sight.at
        long: Colour = "green" if silent < _LONG else "yellow" if silent < _STUCK else "red"
        if sight.state == _STARTING:  # who ends before its first step is never ready
            long = "red"
        alive = Check("last step", long, f"{sight.state}, {_span(silent)} ago")
        found = {role: list(some) for role, some in sight.checks.items()}
        found["analyser"] = [alive, *found.get("analyser", []), self._backup(now)]
        if sight.deadline is not None and sight.state != "finished":
            left, whole = sight.deadline - now, self._analyser.charter.deadline
            colour: Colour = "green" if left > whole / 4 else "yellow"
            words = f"{_span(whole - left)} old, {_span(left)} to its deadline"
            found.setdefault("shuffler", []).append(Check("open batch", colour, words))
        return found

    def _backup(self, now: float) -> Check:
        """Its age; one that is waited for is red when it takes long."""
        if not self._config.backup:
            return Check("backup", "yellow", "none: set backup = ... in the analyser's file")
        try:
            counted, (kept, at) = self._analyser.study.batches, last_backup(self._config)
        except DiscreetError as error:
            return Check("backup", "red", str(error))
        words = f"{_span(now - at)} ago, with {kept} of {counted} batches" if at else "none yet"
        hangs = self._clock.elapsed() - self.sight.at >= _LONG
        colour: Colour = "green" if kept == counted else "red" if hangs else "yellow"
        return Check("backup", colour, words)

    def alive(self) -> bool:
        """Whether the analyser's loop goes round."""
        return self._clock.elapsed() - self.sight.at < _STUCK

    def metrics(self) -> bytes:
        sight, now = self.sight, self._clock.now()
        totals = sight.totals | {"step_age_seconds": self._clock.elapsed() - sight.at}
        if sight.deadline is not None:
            totals["batch_seconds_left"] = sight.deadline - now
        registry = CollectorRegistry()
        for name, value in totals.items():
            health.gauge(f"analyser_{name}", value, registry)
        red = sum(one.colour == "red" for some in self.checks().values() for one in some)
        health.gauge("analyser_red", red, registry)
        return generate_latest(registry)

    def page(self) -> str:
        charter = self._analyser.charter
        return _template().render(
            purpose=charter.purpose,
            study=charter.id.hex(),
            rehearsal=charter.rehearsal,
            checks=self.checks(),
            sight=self.sight,
            states=charter.names["states"],
        )


def _unreadable(ledger: list[dict[str, Plain]]) -> tuple[int, float]:
    """Envelopes of the last counted batch that could not be read; the share of its worst group."""
    for entry in reversed(ledger):
        note = entry.get("note")
        if entry["kind"] == "batch" and isinstance(note, dict):
            return int(str(note["unreadable"])), float(str(note["unreadable_share"]))
    return 0, 0.0


def _span(seconds: float) -> str:
    """A span of time in words.

    >>> _span(89), _span(90), _span(7200), _span(-5), _span(3 * 86400)
    ('89 s', '2 min', '2 h', '0 s', '3 d')
    """
    seconds = max(0.0, seconds)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 2 * 86_400 else f"{seconds / 86_400:.0f} d"


@cache
def _template() -> jinja2.Template:
    path = resources.files("discreet.service") / "templates" / "operator.html"
    return jinja2.Environment(autoescape=True).from_string(path.read_text("utf-8"))


def make_app(monitor: Monitor, host: str) -> Starlette:
    """The page and its neighbours, for who names this machine: other sites cannot read them."""

    async def page(_: Request) -> Response:
        return Response(monitor.page(), media_type="text/html", headers=_HEADERS)

    async def alive(_: Request) -> Response:
        ok = monitor.alive()
        body = json.dumps({"ok": ok})
        return Response(body, 200 if ok else 503, media_type="application/json")

    async def ready(_: Request) -> Response:
        checks = [one for some in monitor.checks().values() for one in some]
        status = 200 if health.ready(checks) else 503
        return Response(health.to_json(checks), status, media_type="application/json")

    async def metrics(_: Request) -> Response:
        return Response(monitor.metrics(), media_type=CONTENT_TYPE_LATEST)

    known = [host, "localhost", "127.0.0.1", "[::1]"]
    return Starlette(
        routes=[
            Route("/", page),
            Route("/livez", alive),
            Route("/readyz", ready),
            Route("/metrics", metrics),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=known, www_redirect=False),
        ],
    )


@contextlib.contextmanager
def watched(analyser: Analyser, config: AnalyserConfig) -> Iterator[Callable[[str], object]]:
    """Serve the page of an analyser, if its file says where; what to call after every step."""
    monitor = Monitor(analyser, config)
    with contextlib.ExitStack() as stack:
        for host, port in configs.addresses(config.page):
            listener = stack.enter_context(configs.listen(host, port))
            server = uvicorn.Server(
                uvicorn.Config(
                    make_app(monitor, host),
                    ws="none",
                    lifespan="off",
                    access_log=False,
                    log_config=None,
                    server_header=False,
                )
            )
            thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(setattr, server, "should_exit", True)
            log.info("the operator's page is at http://%s:%d/", *listener.getsockname()[:2])
            yield monitor.look
            return
        yield lambda _: None
