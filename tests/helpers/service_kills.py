"""Processes of the service that kill themselves at a commit."""

import contextlib
import multiprocessing
import os
import random
import signal
import socket
import warnings
from collections import Counter

from discreet.service.client import Client, UnreachableError
from discreet.service.protocol import ticket
from discreet.service.protocol.problems import Refusal
from discreet.service.shuffler.server import make_server
from discreet.service.shuffler.web import make_app
from helpers import services


def forked(job):
    """Run a job in a process of its own; False if it was killed, an error if it failed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of threads
        child = os.fork()
    if not child:
        code = 1
        try:
            job()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return False
    assert os.WEXITSTATUS(status) == 0, "the job failed"
    return True


class Apart:
    """Runs a job in processes of its own again and again, while this one has threads.

    A fork of a process whose threads are at work may inherit a lock that nobody opens any more. So
    one is made beforehand, which has no threads, and it makes all others.
    """

    def __init__(self, job):
        self._ours, theirs = multiprocessing.Pipe()
        self._process = os.fork()
        if not self._process:
            try:
                while (arguments := theirs.recv()) is not None:
                    theirs.send(_outcome(job, arguments))
            finally:
                os._exit(0)
        theirs.close()

    def __call__(self, *arguments):
        """As `forked`."""
        self._ours.send(arguments)
        outcome = self._ours.recv()
        assert isinstance(outcome, bool), outcome
        return outcome

    def close(self):
        """End the process."""
        self._ours.send(None)
        self._ours.close()
        os.waitpid(self._process, 0)


def _outcome(job, arguments):
    try:
        return forked(lambda: job(*arguments))
    except AssertionError as error:
        return str(error)


def killer(point):
    """A hook that kills its process the first time it is called with this name."""

    def at(name):
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return at


class Besieged:
    """A shuffler that is killed again and again at any moment, and comes back at its address.

    The process that starts and kills it has no threads; the socket is kept between two lives.
    """

    def __init__(self, of, seed):
        self._ours, theirs = multiprocessing.Pipe()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.kills = 0
        self._process = os.fork()
        if not self._process:
            try:
                _besiege(theirs, self._listener, of, random.Random(seed))
            finally:
                os._exit(0)
        theirs.close()

    def move(self, where, passes):
        """From now on its store is there, and these tickets are known."""
        self._ours.send((where, passes))

    def count(self):
        """Kills so far."""
        while self._ours.poll():
            self.kills += self._ours.recv()
        return self.kills

    def close(self):
        self._ours.send(None)
        os.waitpid(self._process, 0)
        self._listener.close()


def _besiege(pipe, listener, of, draw):
    word = pipe.recv()
    while word is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if not child:
            _serve(listener, of, *word)
        if draw.random() < 0.75:  # else while it starts, perhaps
            _wait_until_there(listener)
        told = pipe.poll(draw.uniform(0.0, 0.4))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if told:
            word = pipe.recv()
        else:
            pipe.send(1)


def _wait_until_there(listener):
    """Whoever connects before it takes connections waits in the socket's queue."""
    with (
        contextlib.suppress(TimeoutError),
        socket.create_connection(listener.getsockname(), timeout=60) as asking,
    ):
        asking.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        asking.recv(1)


def _serve(listener, of, where, passes):
    """Never returns."""
    try:
        shuffler = services.make_test_shuffler(where, of, passes)
        make_server(make_app(shuffler), "127.0.0.1", 0).run(sockets=[listener])
    finally:
        os._exit(1)


def attacked(folder, kills, seed=0, participations=2):
    """Two tickets that come as often as they can, whatever is killed when: what was released."""
    of, draw = services.charter(participations=participations), random.Random(seed)
    of.prepare()  # no life of the shuffler is long enough to compile anything
    besieged, studies, most = Besieged(of, seed), 0, 0
    try:
        while not studies or besieged.count() < kills:
            passes = ticket.make(2 + 4 * _BATCHES)
            besieged.move(folder / f"{studies}.db", passes)
            with Client(besieged.url, services.TOKEN) as client:
                most = max(most, *_attack(client, of, passes, draw).values())
            studies += 1
    finally:
        besieged.close()
    return {
        "participations": participations,
        "kills": besieged.kills,
        "studies": studies,
        "most": most,
    }


_BATCHES = 10
"""Manifests of one study under attack."""


def _attack(client, of, passes, draw):
    """How often each of the first two tickets was handed over, in a study of several batches."""
    released, one, batch, abandons = Counter(passes[:2]), None, 0, None
    released.subtract(passes[:2])
    honest = iter(passes[2:])
    for number in range(_BATCHES):
        before = None if one is None else one.manifest
        one = services.announced(of, number, before=before, batch=batch, users=4, abandons=abandons)
        insist(client.announce, number, one.signed)
        for pass_ in draw.choices(passes[:2], k=6):
            insist(client.send, services.fake_report(one, pass_, b"<%d>" % passes.index(pass_)))
        unseen = draw.random() < 0.2
        while not unseen and insist(client.state, number) == "open":
            insist(client.send, services.fake_report(one, next(honest), b"<honest>"))
        if not unseen:
            released.update(_handed(client, number, one, passes))
            assert all(count <= of.participations for count in released.values()), released
        abandons = number if unseen or draw.random() < 0.2 else None
        if abandons is None:
            insist(client.done, number)
            batch += 1
    return released


def _handed(client, number, one, passes):
    """Who is in what the analyser is handed: in each group as often as one report holds."""
    for place, size in enumerate(one.sizes):
        while isinstance(data := insist(services.envelopes, client, number, place), str):
            assert data == "notFull"
        marks = Counter(data[i + 13 : i + 52].rstrip(b".") for i in range(0, len(data), 52))
        attackers = {mark: count for mark, count in marks.items() if mark != b"<honest>"}
        assert all(count == size for count in attackers.values()), attackers
    return [passes[int(mark[1:-1])] for mark in attackers]


def insist(ask, *arguments):
    """An answer, or the code of a refusal, from somebody who is killed now and then."""
    while True:
        try:
            return ask(*arguments)
        except UnreachableError:
            continue
        except Refusal as refusal:
            if refusal.code not in ("busy", "broken"):
                return refusal.code
