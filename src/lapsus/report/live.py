"""The live view: a page on this machine alone that shows a training as it happens.

The server listens on the loopback address, answers two fixed addresses and nothing else, and reads only the run folder.
A thread of low priority measures the newest checkpoint now and then on a few trials.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from lapsus.errors import LapsusError
from lapsus.files import to_plain
from lapsus.mechanism.example_trials import glimpse
from lapsus.report.page import render
from lapsus.zoo import Run

_POINTS = 400
# Seconds that a connection may be silent.
_PATIENCE = 8.0
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}


class Watch:
    """What the page shows of one run; `state()` is cheap, `measure()` simulates the newest checkpoint."""

    def __init__(self, path: str | Path, trust: bool = False):
        self.run = Run(path, trust)
        self.measured: dict | None = None
        self.problem = ""

    def state(self) -> dict:
        """Everything the page needs, as plain numbers."""
        experiment, lines = self.run.experiment, self.run.metrics()
        last: dict[str, Any] = lines[-1] if lines else {"update": 0, "stage": 0, "seconds": 0.0}
        stage = experiment.stage[min(last["stage"], len(experiment.stage) - 1)]
        with_excess = [line for line in lines if line.get("excess") is not None]
        series = with_excess or lines
        stride = max(1, -(-len(series) // _POINTS))
        key = "excess" if with_excess else "loss"
        return {
            "name": experiment.name,
            "update": last["update"],
            "updates": experiment.updates,
            "stage": stage.name or f"stage {last['stage'] + 1}",
            "seconds": last["seconds"],
            "seconds_left": _left(lines, experiment.updates),
            "quantity": key,
            "finished": last["update"] >= experiment.updates,
            "series": [
                [line["seconds"] / 60, line[key]]
                for line in series[::stride]
                if line.get(key) is not None and np.isfinite(line[key])
            ],
            "trials_per_second": last.get("trials_per_second"),
            "measured": self.measured,
            "problem": self.problem,
        }

    def measure(self) -> None:
        """Swap curve and a cloud of responses of the newest checkpoint, if it is a new one."""
        update = self.run.update
        if not update or (self.measured and self.measured["update"] == update):
            return
        model = self.run.model()
        model = model.at_stage(self.run.experiment.stage[self.run.experiment.stage_at(max(0, update - 1))[0]])
        self.measured = {"update": update} | vars(glimpse(model))

    def keep_measuring(self, stop: threading.Event) -> None:
        """Measure whenever there is a new checkpoint; at low priority, so that the training hardly feels it."""
        with suppress(AttributeError, OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 15)
        while not stop.is_set():
            began = time.monotonic()
            try:
                self.measure()
                self.problem = ""
            except Exception as error:
                self.problem = f"The newest checkpoint could not be measured: {error}"
            # Never busy for more than a tenth of the time.
            stop.wait(max(15.0, 9 * (time.monotonic() - began)))


def _left(lines: list[dict], updates: int) -> float | None:
    """Seconds to the end at the pace of the last twenty entries."""
    recent = lines[-20:]
    if len(recent) < 2 or recent[-1]["update"] <= recent[0]["update"]:
        return None
    pace = (recent[-1]["seconds"] - recent[0]["seconds"]) / (recent[-1]["update"] - recent[0]["update"])
    return max(0.0, pace * (updates - recent[-1]["update"]))


def _handler(watch: Watch) -> type[BaseHTTPRequestHandler]:
    page = render({"title": "lapsus: training"}, "live.html").encode()
    answers = {
        "/": lambda: (page, "text/html; charset=utf-8"),
        "/state.json": lambda: (json.dumps(to_plain(watch.state())).encode(), "application/json"),
    }

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "lapsus", ""
        timeout = _PATIENCE

        def do_GET(self) -> None:
            assert isinstance(self.server, _Server)
            port = self.server.server_port
            # A page elsewhere cannot read this one by giving its own name our address.
            if self.headers.get("Host") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
                self.send_error(403, "This server answers on 127.0.0.1 only")
                return
            answer = answers.get(self.path)
            if answer is None:
                self.send_error(404, "Not found")
                return
            body, kind = answer()
            self.send_response(200)
            for name, value in ({"Content-Type": kind, "Content-Length": str(len(body))} | _HEADERS).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


class _Server(ThreadingHTTPServer):
    """A thread for each connection, which is dropped when it is silent for a few seconds."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error; anything else is told in a line."""
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError, OSError)):
            print(f"lapsus: a request failed: {error}", file=sys.stderr)


def serve(path: str | Path, port: int = 0, ready: Callable[[str], None] | None = None, trust: bool = False) -> None:
    """Serve the live view of a run until interrupted; `ready` is called with its address. Port 0 takes a free one."""
    if not 0 <= port < 65536:
        raise LapsusError(f"`port` must be 0 to 65535, not {port}.")
    watch = Watch(path, trust)
    try:
        server = _Server(("127.0.0.1", port), _handler(watch))
    except OSError as error:
        raise LapsusError(f"Port {port} cannot be used: {error.strerror}; `port=0` takes a free one.") from error
    stop = threading.Event()
    measuring = threading.Thread(target=watch.keep_measuring, args=(stop,), daemon=True)
    try:
        measuring.start()
        if ready is not None:
            ready(f"http://127.0.0.1:{server.server_address[1]}/")
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        stop.set()
        server.server_close()
        # A measurement that is under way is waited for: an interpreter that ends below the kernel's threads aborts.
        try:
            if measuring.ident is not None:
                measuring.join()
        except KeyboardInterrupt:
            os._exit(130)
