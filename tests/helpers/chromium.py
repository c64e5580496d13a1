"""A real browser that is clicked through: Chromium, headless, by its DevTools protocol."""

import base64
import contextlib
import json
import subprocess
import time

from helpers.browser import FLAGS, browser


class Browser:
    """One tab.

    Args:
        folder: an empty one for the profile.
        width: of the window.
        phone: whether it is one that is touched.
    """

    def __init__(self, folder, width=1280, phone=False):
        program, profile = browser(), folder / "profile"
        self._process = subprocess.Popen(
            [
                program,
                *FLAGS,
                "--remote-debugging-port=0",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._stack = contextlib.ExitStack()
        self._number, self.complaints, self.requests = 0, [], []
        try:
            self._socket = self._connected(profile / "DevToolsActivePort")
            self._begin(width, phone)
        except BaseException:
            self._end()
            raise

    def _begin(self, width, phone):
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.do(f"{domain}.enable")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": phone}
        self.do("Emulation.setDeviceMetricsOverride", **size)

    def _connected(self, file):
        import httpx
        from websockets.sync.client import connect

        while not file.exists() or "\n" not in file.read_text():
            assert self._process.poll() is None, "Chromium did not start"
            time.sleep(0.05)
        port = file.read_text().split()[0]
        while True:
            tabs = httpx.get(f"http://127.0.0.1:{port}/json", trust_env=False, timeout=600).json()
            pages = [tab for tab in tabs if tab["type"] == "page"]
            if pages:
                address = pages[0]["webSocketDebuggerUrl"]
                return self._stack.enter_context(connect(address, max_size=None, proxy=None))
            time.sleep(0.05)

    def do(self, method, **parameters):
        """One command of the protocol; what it gives."""
        self._number += 1
        words = {"id": self._number, "method": method, "params": parameters}
        self._socket.send(json.dumps(words))
        while True:
            said = json.loads(self._socket.recv(timeout=600))
            if said.get("id") == self._number:
                assert "error" not in said, said
                return said["result"]
            self._notice(said)

    def _notice(self, said):
        method, params = said.get("method"), said.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append((params["request"]["method"], params["request"]["url"]))
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        if method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])

    def go(self, address):
        self.do("Page.navigate", url=address)

    def run(self, script):
        """The value of an expression in the page."""
        said = self.do("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def wait(self, script):
        """Until an expression is true; the page itself says if something failed."""
        while not self.run(f"Boolean({script})"):
            failed = self.run("document.body?.dataset.ready === 'failed'")
            assert not failed, self.run("document.getElementById('error').textContent")
            time.sleep(0.05)

    def click(self, selector):
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def screenshot(self, path):
        whole = self.do("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(whole["data"]))

    def _end(self):
        self._stack.close()
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end()
