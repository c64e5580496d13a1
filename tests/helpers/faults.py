"""A proxy that spoils requests: drops them or their answers, doubles, truncates, delays them."""

import asyncio
import contextlib
import random
import threading
from collections import Counter

KINDS = ("drop request", "drop response", "duplicate", "truncate", "slow")


class FaultProxy:
    """Speaks HTTP/1.1 on loopback, one request per connection.

    Args:
        port: of the shuffler.
        rate: how often a request is spoiled.
        seed: of the choice.
    """

    def __init__(self, port, rate=0.1, seed=0):
        self._port, self._rate, self._random = port, rate, random.Random(seed)
        self.faults = Counter()
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self):
        self._thread.start()
        begin = asyncio.start_server(self._answer, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(begin, self._loop).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self):
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            request = await _message(reader)
            kind = self._random.choice(KINDS) if self._random.random() < self._rate else ""
            self.faults[kind] += 1
            answer = await self._spoiled(request, kind)
            writer.write(answer)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.close()
            await writer.wait_closed()

    async def _spoiled(self, request, kind):
        if kind == "drop request":
            return b""
        if kind == "truncate":
            await self._forward(request[: len(request) // 2], wait=False)
            return b""
        if kind == "slow":
            await asyncio.sleep(self._random.random())
        answer = await self._forward(request)
        if kind == "duplicate":
            answer = await self._forward(request)
        return b"" if kind == "drop response" else answer

    async def _forward(self, request, wait=True):
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(request)
        await writer.drain()
        answer = await reader.read() if wait else b""
        writer.close()
        return answer


async def _message(reader):
    """A request, told to close its connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    fields = [line.partition(b":") for line in lines[1:] if line]
    length = sum(int(value) for name, _, value in fields if name.lower() == b"content-length")
    kept = [lines[0]] + [
        name + b":" + value for name, _, value in fields if name.lower() != b"connection"
    ]
    body = await reader.readexactly(length)
    return b"\r\n".join(kept) + b"\r\nconnection: close\r\n\r\n" + body
