"""A model of the shuffler's store, and hypothesis against it: every order of events, with kills."""

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from discreet.service.protocol import ticket
from discreet.service.protocol.problems import Refusal
from discreet.service.protocol.report import read
from discreet.service.shuffler.store import LIVE
from helpers.services import announced, charter, fake_report, messages, new_store

PASSES = [ticket.digest(bytes([i])) for i in range(12)]
"""Any 32 bytes are a ticket."""
STRANGER = bytes(32)


class Killed(BaseException):
    """The process ends here."""


class StoreMachine(RuleBasedStateMachine):
    """Subclasses say where stores are (`new_place`), and how many processes share one.

    A ticket is worth ``most`` batches.
    """

    processes = 1
    most = 1

    def new_place(self):
        raise NotImplementedError

    def __init__(self):
        super().__init__()
        self.where, self.of = self.new_place(), charter(participations=self.most)
        self.doom = None
        self.stores = [self.open() for _ in range(self.processes)]
        self.stores[0].admit([ticket.digest(one) for one in PASSES])
        self.last = None
        self.state = None
        self.held = {}  # ticket -> mark, of the open or full batch
        self.uses = Counter()
        self.released = Counter()
        self.sealed = None
        self.marks = 0

    def open(self):
        return new_store(self.where, self.of, at=self.at)

    def at(self, name):
        if self.doom is not None and name.endswith(self.doom):
            raise Killed

    def do(self, job, doom, who=0):
        """Call a store's method, perhaps killed; (what it gave, whether it was committed)."""
        self.doom = doom
        store = self.stores[who % self.processes]
        try:
            return getattr(store, job[0])(*job[1:]), True
        except Refusal as refusal:
            return refusal.code, False
        except Killed:
            self.doom = None
            store.close()
            self.stores[who % self.processes] = self.open()
            return None, doom == "after"
        finally:
            self.doom = None

    def teardown(self):
        for store in self.stores:
            store.close()

    dooms = st.sampled_from([None, None, None, "before", "after"])
    whos = st.integers(0, 1)

    @precondition(lambda self: self.state in (None, "done", "expired"))
    @rule(doom=dooms, who=whos, users=st.sampled_from([3, 4]))
    def announce(self, doom, who, users):
        if self.last is None:
            one = announced(self.of, users=users)
        else:
            before, expired = self.last.manifest, self.state == "expired"
            one = announced(
                self.of,
                before.number + 1,
                before=before,
                batch=before.batch + (not expired),
                users=before.users if expired else users,
            )
        given, committed = self.do(("announce", one), doom, who)
        assert given in (True, None)
        if committed:
            self.last, self.state, self.held, self.sealed = one, "open", {}, None

    @precondition(lambda self: self.last is not None)
    @rule(doom=dooms, who=whos)
    def abandon(self, doom, who):
        """Who may have been seen has used a batch, everybody else may come again."""
        before = self.last.manifest
        one = announced(
            self.of,
            before.number + 1,
            before=before,
            batch=before.batch,
            users=before.users,
            abandons=before.number,
        )
        given, committed = self.do(("announce", one), doom, who)
        assert given in (True, None)
        if committed:
            if self.state in ("open", "full", "sealed"):
                self.uses.subtract(self.held.keys())
            self.last, self.state, self.held, self.sealed = one, "open", {}, None

    @precondition(lambda self: self.last is not None)
    @rule(who=whos)
    def announce_again_or_otherwise(self, who):
        assert self.do(("announce", self.last), None, who) == (False, True)
        manifest = self.last.manifest
        other = announced(self.of, manifest.number, before=None, users=5)
        assert self.do(("announce", other), None, who)[0] == "forbiddenMutation"
        if self.state in LIVE:
            after = announced(self.of, manifest.number + 1, before=manifest)
            assert self.do(("announce", after), None, who)[0] == "batchPending"

    @precondition(lambda self: self.last is not None)
    @rule(
        who=whos,
        doom=dooms,
        stale=st.booleans(),
        choice=st.lists(st.integers(-1, len(PASSES) - 1), min_size=1, max_size=6),
    )
    def submit(self, who, doom, stale, choice):
        """Some tickets, perhaps the same twice, perhaps for another manifest, perhaps unknown."""
        target = announced(self.of, 99, users=self.last.manifest.users) if stale else self.last
        reports, marks = [], []
        for i in choice:
            self.marks += 1
            marks.append(b"<%d>" % self.marks)
            pass_ = STRANGER if i < 0 else PASSES[i]
            reports.append(read(fake_report(target, pass_, marks[-1])))
        codes, held = self._expected(choice, marks, stale)
        given, committed = self.do(("submit", reports), doom, who)
        assert given in (codes, None)
        if committed:
            self.uses.update(held.keys() - self.held.keys())
            self.held = held
            if self.state == "open" and len(held) == self.last.manifest.users:
                self.state = "full"

    def _expected(self, choice, marks, stale):
        held = dict(self.held)
        codes, room = [], self.last.manifest.users - len(held)
        for i, mark in zip(choice, marks, strict=True):
            if i < 0:
                codes.append("unknownTicket")
            elif self.uses[i] + (i in held and i not in self.held) >= self.most:
                codes.append("ticketSpent")
            elif i in held:
                codes.append("alreadyInBatch")
            elif self.state != "open":
                codes.append("noOpenBatch")
            elif stale or room == 0:
                codes.append("policyOutdated")
            else:
                held[i], room = mark, room - 1
                codes.append("accepted")
        return codes, held

    @precondition(lambda self: self.last is not None)
    @rule(who=whos, doom=dooms)
    def expire(self, who, doom):
        was_open = self.state == "open"
        given, committed = self.do(("expire", self.last.manifest.number), doom, who)
        assert given in (was_open, None)
        if committed and was_open:
            self.uses.subtract(self.held.keys())
            self.state, self.held = "expired", {}

    @rule(who=whos, doom=dooms)
    def seal(self, who, doom):
        was_full = self.state == "full"
        given, _ = self.do(("shuffle",), doom, who)
        assert given in (was_full, None)
        if was_full:  # a kill at any of its steps but the last leaves it full, and it goes on later
            self.state = self.stores[0].live().state
            assert self.state in ("full", "sealed")

    @precondition(lambda self: self.state == "sealed")
    @rule(who=whos, doom=dooms)
    def hand_over(self, who, doom):
        """Exactly what was acknowledged is there, as often as it was sent."""
        _, committed = self.do(("buckets", self.last.manifest.number, 0), doom, who)
        if not committed:
            return
        self.state = "handed"
        self.sealed = messages(self.stores[0], self.last.manifest.number, self.last.sizes)
        for place, (part, size) in enumerate(zip(self.sealed, self.last.sizes, strict=True)):
            got = Counter(part[i + 13 : i + 52].rstrip(b".") for i in range(0, len(part), 52))
            assert got == dict.fromkeys(self.held.values(), size), place
        self.released.update(self.held.keys())

    @precondition(lambda self: self.last is not None)
    @rule(who=whos)
    def read_messages(self, who):
        number = self.last.manifest.number
        if self.state == "sealed":
            return
        if self.state == "handed":
            store = self.stores[who % self.processes]
            assert messages(store, number, self.last.sizes) == self.sealed
            return
        codes = {"done": "batchDone", "expired": "batchExpired"}
        assert self.do(("buckets", number, 0), None, who)[0] == codes.get(self.state, "notFull")

    @precondition(lambda self: self.last is not None)
    @rule(who=whos, doom=dooms)
    def done(self, who, doom):
        given, committed = self.do(("done", self.last.manifest.number), doom, who)
        if self.state in ("sealed", "handed") and committed:
            assert given in (True, None)
            self.state, self.sealed, self.held = "done", None, {}
        elif given is not None:
            codes = {"sealed": None, "handed": None, "done": False, "expired": "batchExpired"}
            assert given == codes.get(self.state, "notFull")

    @rule()
    def restart(self):
        for store in self.stores:
            store.close()
        self.stores = [self.open() for _ in range(self.processes)]

    @invariant()
    def nobody_was_released_more_often_than_guaranteed(self):
        assert all(count <= self.most for count in self.released.values())

    @invariant()
    def the_store_says_what_the_model_says(self):
        row = self.stores[0].live()
        if self.state in (None, "done", "expired"):
            assert row is None
        else:
            assert (row.state, row.received) == (self.state, len(self.held))
        totals = self.stores[-1].totals()
        assert totals["tickets_spent"] + totals["tickets_void"] == self.uses.total()
