"""Headless Chromium through a pipe, by its DevTools protocol: no driver and no port."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import time

import pytest

SECONDS = 120
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--window-size=900,1400", "--remote-debugging-pipe"]  # fmt: skip


class Browser:
    """One page; ``with`` ends the browser. What goes wrong in the page is in ``errors``, what it asked for in
    ``requests``.
    """

    def __init__(self, folder):
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if program is None:
            pytest.skip("no Chromium (Debian: apt-get install chromium)")
        # The browser reads from its file 3 and writes to its file 4.
        (read, self.write), (self.read, write) = os.pipe(), os.pipe()
        theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read, write)]

        def place():
            os.dup2(theirs[0], 3)
            os.dup2(theirs[1], 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={folder / 'profile'}"], preexec_fn=place, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (read, write, *theirs):
            os.close(end)
        self.buffer, self.n_sent, self.session = b"", 0, None
        self.errors, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        os.close(self.read)
        os.close(self.write)

    def call(self, method, **params):
        """The result of a command."""
        self.n_sent += 1
        message = {"id": self.n_sent, "method": method, "params": params}
        os.write(
            self.write, json.dumps(message | ({"sessionId": self.session} if self.session else {})).encode() + b"\0"
        )
        answer = self._wait(lambda found: found.get("id") == self.n_sent)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def open(self, url):
        """Load a page, and wait until it has loaded."""
        self.call("Page.navigate", url=url)  # answered once the page has taken the place of the one before
        self.wait_until("location.href != 'about:blank' && document.readyState == 'complete'")

    def evaluate(self, expression):
        """The value of an expression, or of what it promises."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_until(self, expression):
        """Look until the expression is true."""
        until = time.monotonic() + SECONDS
        while not self.evaluate(expression):
            assert time.monotonic() < until, (expression, self.errors)
            time.sleep(0.05)

    def mouse(self, *places):
        """Press at the first place of the window, move along the others, let go at the last one."""
        button = {"button": "left", "buttons": 1, "clickCount": 1}
        for kind, (x, y) in (
            ("mousePressed", places[0]), *(("mouseMoved", place) for place in places), ("mouseReleased", places[-1])
        ):  # fmt: skip
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def _wait(self, is_it):
        until = time.monotonic() + SECONDS
        while True:
            while b"\0" not in self.buffer:
                ready, _, _ = select.select([self.read], [], [], max(0.0, until - time.monotonic()))
                part = os.read(self.read, 1 << 20) if ready else b""
                assert part, "the browser did not answer"
                self.buffer += part
            message, _, self.buffer = self.buffer.partition(b"\0")
            found = json.loads(message)
            self._note(found)
            if is_it(found):
                return found

    def _note(self, found):
        method, params = found.get("method"), found.get("params", {})
        is_error = params.get("type") in ("error", "assert") or params.get("entry", {}).get("level") == "error"
        if method == "Runtime.exceptionThrown" or (
            method in ("Runtime.consoleAPICalled", "Log.entryAdded") and is_error
        ):
            self.errors.append(params)
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
