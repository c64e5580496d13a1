"""What one report costs: processor time of device, shuffler and analyser, memory of large batches.

python -m benchmarks.service [--reports 20000] [--postgres] [--sealed 100000] [--fetched 5000000]
python -m benchmarks.service --ready 500000    # how a server answers while it seals so many
python -m benchmarks.service --devices    # the device alone, from four states to ICU-Sepsis
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

import httpx

from discreet.device import ENVELOPE, HistogramDevice, load
from discreet.service import opening
from discreet.service.client import Client
from discreet.service.opening import Fetched
from discreet.service.protocol import ticket
from discreet.service.protocol.charter import Charter
from discreet.service.protocol.manifest import Announced
from discreet.service.protocol.report import Submission
from discreet.service.shuffler.server import make_server
from discreet.service.shuffler.web import make_app
from discreet.study.participants import digests_of
from helpers.postgres import Server
from helpers.services import (
    TOKEN,
    announced,
    batch_key,
    charter,
    fake_report,
    make_test_shuffler,
    new_store,
    real_report,
    submissions,
)

OF = charter(
    names={"states": "abcd", "actions": "xy", "steps": "123456"},
    mean=Fraction(393799, 1000),
    min_users=2,
    patience=10**9,
)
"""S=4, H=6 at (1, 1e-6): 22 messages from each of 20,000 users."""
POLICY = [[0] * 4] * 6
LIFE = {"states": [0, 1, 1, 2, 2, 3, 3], "actions": [0] * 6, "rewards": [0.5] * 6}
DEVICES = {
    "S=4, H=6, 2e4 users": (4, 2, 6, 20_000, [39371, 100]),
    "S=50, H=20, 1e6 users": (50, 5, 20, 10**6, [1393, 1]),
    "ICU-Sepsis size, 1e6 users": (716, 25, 20, 10**6, [1393, 1]),
    "ICU-Sepsis size, 1e8 users": (716, 25, 20, 10**8, [1393, 1]),
}
"""States, actions, steps, users, lambda (epsilon = 1, delta = 1e-6)."""
_CONNECTIONS = 64
_USERS = 1_000_000


def most_memory(pid: int | str = "self") -> float:
    """Megabytes of memory that a process held at most."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(fields["VmHWM"].split()[0]) / 1024


def processor_seconds(pid: int) -> float:
    """Of a process, so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def serving_for_ever(where: str, of: Charter, tickets: list[bytes]) -> None:
    """A shuffler that says its port and serves until it is told to end."""
    one = make_test_shuffler(where, of, tickets)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        make_server(make_app(one), "127.0.0.1", 0).run(sockets=[listener])


def batch(users: int) -> Announced:
    """The open batch."""
    return announced(OF, users=users, policy=POLICY)


def devices() -> None:
    """Messages, bytes, time to load a batch and to encode an episode (best of five), memory."""
    print(f"{'size':<28} {'messages':>8} {'sealed':>11} {'load ms':>8} {'encode ms':>9} {'MB':>6}")
    for name, (states, actions, horizon, users, mean) in DEVICES.items():
        rng = random.Random(0)
        policy = [[rng.randrange(actions) for _ in range(states)] for _ in range(horizon)]
        plain = {
            "version": 1,
            "encoder": "histogram",
            "states": states,
            "actions": actions,
            "horizon": horizon,
            "policy": policy,
            "statistics": ["transitions", "rewards"],
            "last_transitions": False,
            "users": users,
            "lambda": mean,
        }
        met = [rng.randrange(states) for _ in range(horizon + 1)]
        support = [row[s] for row, s in zip(policy, met, strict=False)]
        life = {"states": met, "actions": support, "rewards": [0.3] * horizon}
        text = json.dumps(plain)
        loading, encoding = (
            1e3 * min(times) for times in zip(*(_encoded(text, life) for _ in "12345"), strict=True)
        )
        tracemalloc.start()
        _encoded(text, life)
        most = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        messages = HistogramDevice(plain).messages
        sizes = f"{messages:>8,} {messages * ENVELOPE:>11,}"
        print(f"{name:<28} {sizes} {loading:>8.1f} {encoding:>9.1f} {most:>6.1f}")


def _encoded(text: str, life: dict) -> tuple[float, float]:
    """Seconds from the description as it came, and from there to the bytes of a report."""
    started = time.process_time()
    one = load(json.loads(text))
    loaded = time.process_time()
    one.to_bytes(one.encode(life))
    return loaded - started, time.process_time() - loaded


def device(reports: int = 300) -> None:
    """Encode and seal."""
    one = batch(20_000)
    start = time.process_time()
    for _ in range(reports):
        real_report(one, bytes(32), LIFE)
    each = (time.process_time() - start) / reports
    print(f"device: {1e3 * each:.2f} ms for {one.device.messages} envelopes", flush=True)


def analyser(reports: int = 300) -> None:
    """Open all envelopes of some reports."""
    one = batch(20_000)
    bodies = [real_report(one, bytes(32), LIFE)[65:] for _ in range(reports)]
    first, tasks = 0, []
    for place, size in enumerate(one.sizes):
        part = b"".join(body[52 * first : 52 * (first + size)] for body in bodies)
        key = batch_key(0).private_bytes_raw()
        tasks.append(opening.Task(part, key, one.hash, place, one.device.groups[place].cells))
        first += size
    start = time.process_time()
    for task in tasks:
        task.open()
    each = (time.process_time() - start) / reports
    print(f"analyser: {1e3 * each:.2f} ms per report of {one.device.messages}", flush=True)


def store(where: str, name: str, reports: int) -> None:
    """The store alone, in groups of 256."""
    one, passes = batch(reports), ticket.make(reports)
    kept = new_store(where, OF, passes)
    kept.announce(one)
    ready = submissions(one, passes)
    start = time.process_time()
    for first in range(0, reports, 256):
        kept.submit(ready[first : first + 256])
    seconds = time.process_time() - start
    _need(kept.live().received == reports)
    kept.close()
    print(f"store {name}: {reports / seconds:,.0f} reports per processor second", flush=True)


def shuffler(where: str, name: str, reports: int) -> None:
    """The whole server, over loopback, with many connections at once."""
    passes = ticket.make(reports)
    with tempfile.TemporaryDirectory() as folder:
        names = pathlib.Path(folder) / "tickets"
        ticket.write(names, passes)
        process = subprocess.Popen(
            [sys.executable, __file__, "--serve", where, "--tickets", str(names)],
            stdout=subprocess.PIPE,
            text=True,
        )
        port = int(process.stdout.readline())
        one = batch(reports)
        with Client(f"http://127.0.0.1:{port}", TOKEN) as client:
            client.announce(0, one.signed)
            bodies = [fake_report(one, pass_) for pass_ in passes]
            before, wall = processor_seconds(process.pid), time.monotonic()
            codes = asyncio.run(_send(port, bodies))
            seconds, wall = processor_seconds(process.pid) - before, time.monotonic() - wall
            while client.metrics()["batches_sealed"] == 0:
                time.sleep(0.1)
        most = most_memory(process.pid)
        process.terminate()
        process.wait()
        process.stdout.close()
    _need(codes == {b"201": reports})
    print(
        f"shuffler {name}: {reports / seconds:,.0f} reports per processor second, "
        f"{reports / wall:,.0f} per second here, at most {most:.0f} MB",
        flush=True,
    )


async def _send(port: int, bodies: list[bytes]) -> dict[bytes, int]:
    """All bodies through many connections; how often each status came."""
    rest, codes = iter(bodies), {}

    async def worker() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for body in rest:
            head = f"POST /v1/reports HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            status = answer[9:12]
            codes[status] = codes.get(status, 0) + 1
        writer.close()

    await asyncio.gather(*(worker() for _ in range(_CONNECTIONS)))
    return codes


def sealing(where: str, name: str, reports: int) -> None:
    """Memory and disk of sealing, in this process; the disk is looked at after every commit."""
    one, passes = batch(reports), ticket.make(reports)
    kept = new_store(where, OF, passes)
    kept.announce(one)
    for first in range(0, reports, 512):
        kept.submit(submissions(one, passes[first : first + 512]))
    disk, before, start = [kept.size()], most_memory(), time.process_time()
    while (state := kept.shuffle_step()) == "full":
        disk.append(kept.size())
    _need(state == "sealed")
    seconds = time.process_time() - start
    kept.done(0)
    kept.close()
    size = reports * one.body / 1e6
    print(
        f"sealing {name}: {reports:,} reports of {one.body} bytes ({size:,.0f} MB), "
        f"{seconds:.1f} s of processor time, at most {most_memory():.0f} MB ({before:.0f} before), "
        f"disk at most {max(disk) / disk[0]:.2f} times what it was",
        flush=True,
    )


def readiness(where: str, reports: int) -> None:
    """The longest answers of a server while it seals a batch of so many reports."""
    one, passes = batch(reports), ticket.make(reports)
    kept = new_store(where, OF, passes)
    kept.announce(one)
    for first in range(0, reports, 5000):
        some = passes[first : first + 5000]
        kept.submit([Submission(ticket.digest(x), one.hash, os.urandom(one.body)) for x in some])
    kept.close()
    command = [sys.executable, __file__, "--serve", where, "--tickets", os.devnull]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        most, asked, began = dict.fromkeys(("/livez", "/readyz", "/metrics"), 0.0), 0, 0.0
        with httpx.Client(timeout=60) as http:
            while "discreet_batches_sealed 1.0" not in (text := http.get(f"{url}/metrics").text):
                began = began or time.monotonic()
                for path in most:
                    start = time.monotonic()
                    http.get(url + path)
                    most[path] = max(most[path], time.monotonic() - start)
                asked += 1
        process.terminate()
    _need(f"discreet_received {float(reports)}" in text)
    longest = ", ".join(f"{path} {seconds:.3f} s" for path, seconds in most.items())
    print(
        f"readiness: {reports:,} reports sealed in {time.monotonic() - began:.0f} s, asked {asked} "
        f"times meanwhile, at most {longest}",
        flush=True,
    )


def fetching(envelopes: int) -> None:
    """Memory of an analyser that keeps so many envelopes and looks for copies, in this process."""
    before, start = most_memory(), time.process_time()
    with tempfile.TemporaryDirectory() as folder, Fetched(pathlib.Path(folder), [envelopes]) as one:
        one.begin(0)
        for first in range(0, envelopes, 20_000):
            one.take(os.urandom(min(20_000, envelopes - first) * ENVELOPE))
        one.end()
        _need(one.dummy_copies() == 0)
        _need(sum(len(part) for _, part in one.slices()) == envelopes * ENVELOPE)
    seconds, after = time.process_time() - start, most_memory()
    print(
        f"fetching: {envelopes:,} envelopes ({envelopes * ENVELOPE / 1e6:,.0f} MB), "
        f"{seconds:.1f} s of processor time, at most {after:.0f} MB ({before:.0f} MB before)",
        flush=True,
    )
    people = digests_of([f"0:{i}" for i in range(_USERS)], bytes(32))
    each = (most_memory() - after) / len(people) * 2**20
    print(f"telling: {each:,.0f} bytes for each of {len(people):,} users", flush=True)


def _need(truth: bool) -> None:
    if not truth:
        sys.exit("Not every report was taken: these numbers mean nothing.")


@contextlib.contextmanager
def _places(folder: str, postgres: bool) -> Iterator[list[tuple[str, Callable[[], str]]]]:
    """Names of stores, and functions that give a new place for each."""
    numbers = itertools.count()
    places = [("SQLite", lambda: f"{folder}/{next(numbers)}.db")]
    if not postgres:
        yield places
        return
    server = Server()
    try:
        yield [*places, ("PostgreSQL", server.database)]
    finally:
        server.stop()


def main() -> None:
    """All of it, or the part that a process of its own does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=20_000)
    parser.add_argument("--sealed", type=int, default=100_000)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--serve")
    parser.add_argument("--tickets", type=pathlib.Path)
    parser.add_argument("--fetched", type=int, default=5_000_000)
    parser.add_argument("--seal")
    parser.add_argument("--ready", type=int, default=0)
    parser.add_argument("--fetch", action="store_true")
    parser.add_argument("--devices", action="store_true")
    chosen = parser.parse_args()
    if chosen.devices:
        devices()
        return
    if chosen.serve:
        serving_for_ever(chosen.serve, OF, ticket.read(chosen.tickets))
        return
    if chosen.seal:
        sealing(chosen.seal, chosen.seal.partition(":")[0][:10], chosen.sealed)
        return
    if chosen.ready:
        with tempfile.TemporaryDirectory() as folder:
            readiness(f"{folder}/s.db", chosen.ready)
        return
    if chosen.fetch:
        fetching(chosen.fetched)
        return
    device()
    analyser()
    command = [sys.executable, __file__, "--fetch", "--fetched", str(chosen.fetched)]
    subprocess.run(command, check=True)
    with tempfile.TemporaryDirectory() as folder, _places(folder, chosen.postgres) as places:
        for name, place in places:
            store(place(), name, chosen.reports)
            shuffler(place(), name, chosen.reports)
            command = [sys.executable, __file__, "--seal", place(), "--sealed", str(chosen.sealed)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
