"""Headless Chromium driven over its DevTools pipe: no driver program and no dependency."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

EXECUTABLE = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Chromium:
    """One page. `events` keeps every message that was not an answer: console lines, exceptions, requests."""

    def __init__(self, profile: Path):
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def wire():
            # Copies first: the pipe's own numbers may be 3 or 4.
            high_in, high_out = os.dup(to_browser), os.dup(from_browser)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        environment = os.environ | {"HOME": str(profile)}
        self.process = subprocess.Popen(
            [EXECUTABLE, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=wire,
            close_fds=False,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self.events, self.session = b"", 0, [], None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.send(f"{domain}.enable")

    def _message(self, deadline: float) -> dict:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("Chromium did not answer in time")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise RuntimeError(f"Chromium ended with code {self.process.poll()}")
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def send(self, method: str, timeout: float = 60.0, **params) -> dict:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self._message(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, address: str, timeout: float = 60.0) -> None:
        """Load the page and wait for its load event."""
        self.events.clear()
        self.send("Page.navigate", url=address)
        self.wait(lambda: any(event.get("method") == "Page.loadEventFired" for event in self.events), timeout)

    def wait(self, condition, timeout: float = 30.0) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError("the page did not get there in time")
            self.send("Runtime.evaluate", expression="0")
            time.sleep(0.05)

    def run(self, script: str, timeout: float = 60.0):
        """The value of a JavaScript expression (promises awaited)."""
        result = self.send("Runtime.evaluate", timeout, expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(
                result["exceptionDetails"].get("exception", {}).get("description", "exception in the page")
            )
        return result["result"].get("value")

    def size(self, width: int, height: int = 900, dark: bool = False, mobile: bool = False) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )

    def offline(self) -> None:
        self.send("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def key(self, name: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        mouse = lambda kind, at, **more: self.send("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], **more)
        mouse("mousePressed", start, button="left", buttons=1, clickCount=1)
        mouse("mouseMoved", end, button="left", buttons=1)
        mouse("mouseReleased", end, button="left", buttons=0, clickCount=1)

    def screenshot(self, path: Path, whole: bool = True) -> None:
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000), "scale": 1}
        shot = self.send(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole, **({"clip": clip} if whole else {})
        )
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Console errors and warnings, exceptions, and requests for anything that is not inside the page."""
        self.send("Runtime.evaluate", expression="0")
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(str(params["args"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(
                ("data:", "file:", "http://127.0.0.1:", "about:")
            ):
                found.append("request to " + params["request"]["url"])
        return found

    def close(self) -> None:
        try:
            self.session = None
            self.send("Browser.close", timeout=5)
        except (OSError, RuntimeError, TimeoutError):
            self.process.kill()
        self.process.wait(10)
        os.close(self._write)
        os.close(self._read)
