"""A browser that a test steers, by the DevTools protocol over pipes: messages are JSON, each with a zero behind it."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time

PROGRAMS = ("chromium", "chromium-headless-shell", "google-chrome")


def program():
    """Where a browser is, or nothing."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Failure(AssertionError):
    """What a page threw, or the browser refused."""


class Page:
    """One page of a browser."""

    def __init__(self, asked, answered):
        self.asked, self.answered, self.number, self.rest, self.session = asked, answered, 0, b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method, timeout=120, **parameters):
        """Asks the browser for something."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.asked, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + timeout
        while True:
            answer = self._next(end)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failure(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self, end):
        while b"\0" not in self.rest:
            if not select.select([self.answered], [], [], max(0, end - time.monotonic()))[0]:
                raise Failure("the browser does not answer")
            piece = os.read(self.answered, 1 << 20)
            if not piece:
                raise Failure("the browser has ended")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, address):
        """Goes to an address, and waits until the document is there."""
        self.call("Page.navigate", url=address)
        self.wait_for(f"location.href === {json.dumps(address)} && document.readyState === 'complete'")

    def evaluate(self, expression):
        """The value of an expression in the page; promises are waited for."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise Failure(found["exceptionDetails"].get("exception", {}).get("description") or found["exceptionDetails"]["text"])
        return found["result"].get("value")

    def wait_for(self, expression, seconds=120):
        """Waits until an expression is true; what it is then."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.evaluate(expression)
            if found:
                return found
            time.sleep(0.05)
        raise Failure(f"did not become true: {expression}; the page says: {self.evaluate('document.body?.innerText')}")

    def screenshot(self, path, scheme="light", width=1200, height=860):
        """A picture of the page, as it is in light or dark surroundings."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextlib.contextmanager
def page(folder):
    """A page of a browser of its own, whose profile is in the folder."""
    (given, asked), (answered, giving) = os.pipe(), os.pipe()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={folder}", "--remote-debugging-pipe"]
    # The browser hears what is written to its descriptor 3, and answers on 4. Descriptors up there are not in the way.
    shell = f'exec "$0" "$@" 3<&{given} 4>&{giving}'
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(["bash", "-c", shell, program(), *flags], pass_fds=(given, giving), **quiet) as running:
        os.close(given)
        os.close(giving)
        try:
            yield Page(asked, answered)
        finally:
            running.terminate()
            os.close(asked)
            os.close(answered)
