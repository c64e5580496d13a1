"""A proxy on loopback that loses, doubles, cuts and delays what passes through it."""

import contextlib
import random
import socket
import threading
import time


class FaultProxy:
    """One connection, one request: its fate is drawn from a seed.

    Fates: ``pass``, ``lose request`` (the server never hears of it), ``lose response`` (it does,
    the client does not hear back), ``double`` (the server hears it twice), ``truncate`` (half of
    it arrives), ``slow`` (it arrives in pieces).
    """

    FATES = ("pass", "pass", "lose request", "lose response", "double", "truncate", "slow")

    def __init__(self, port, seed=0):
        self._port, self._random = port, random.Random(seed)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.fates = dict.fromkeys(self.FATES, 0)
        self._threads = []
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self):
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            fate = self._random.choice(self.FATES)
            self.fates[fate] += 1
            thread = threading.Thread(target=self._serve, args=(client, fate))
            thread.start()
            self._threads.append(thread)

    def _serve(self, client, fate):
        with client, contextlib.suppress(OSError):
            client.settimeout(10)
            request = _request(client)
            if fate == "lose request" or not request:
                return
            if fate == "truncate":
                self._ask(request[: len(request) // 2], wait=False)
                return
            if fate == "double":
                self._ask(request)
            answer = self._ask(request, slow=fate == "slow")
            if fate != "lose response":
                client.sendall(answer)

    def _ask(self, request, *, wait=True, slow=False):
        with socket.create_connection(("127.0.0.1", self._port), timeout=10) as server:
            pieces = 4 if slow else 1
            size = -(-len(request) // pieces)
            for first in range(0, len(request), size):
                server.sendall(request[first : first + size])
                time.sleep(0.01 * slow)
            return _response(server) if wait else b""

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in (self._thread, *self._threads):
            thread.join()


def _request(connection):
    head, rest = _head(connection)
    return head + rest + _exactly(connection, _length(head) - len(rest))


def _response(connection):
    head, rest = _head(connection)
    return head + rest + _exactly(connection, _length(head) - len(rest))


def _head(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return data, b""
        data += part
    head, _, rest = data.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", rest


def _length(head):
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _exactly(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(65536)
        if not part:
            break
        data += part
    return data
