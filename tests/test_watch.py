"""The live view: what it shows, and that it shows nothing else to nobody else."""

import http.client
import json
import signal
import threading
import time
from contextlib import contextmanager

import pytest
from made_discovery import TINY

from lapsus.errors import LapsusError
from lapsus.report.live import Watch, serve
from lapsus.training import Experiment, train
from lapsus.zoo import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    described = Experiment.model_validate(
        {
            "name": "</script><b>name",
            "task": {"kind": "feature-cued", "delay": 2, "denoise": 6},
            "network": TINY,
            "behaviour": {"kind": "bns", "swap": {"kind": "smooth"}},
            "stage": [{"updates": 60, "conditions": 8, "trials": 4}],
        }
    )
    run = Run.create(tmp_path_factory.mktemp("watch") / "run", described)
    train(run, steps=40, progress=False)
    return run


def test_state_is_what_training_wrote(run):
    watch = Watch(run.path)
    state = watch.state()
    assert (state["update"], state["updates"], state["finished"]) == (40, 60, False)
    last = [line["excess"] for line in run.metrics() if "excess" in line][-1]
    assert state["quantity"] == "excess" and state["series"][-1][1] == last and state["measured"] is None
    assert state["seconds_left"] is None or state["seconds_left"] >= 0
    watch.measure()
    shown = watch.state()["measured"]
    assert (
        shown["update"] == 40
        and len(shown["cloud"]) == 300
        and {"rate", "target", "distance"} <= set(shown["curve"][0])
    )
    json.dumps(watch.state())


def test_a_run_that_has_not_begun(tmp_path, run):
    fresh = Watch(Run.create(tmp_path / "fresh", run.experiment).path)
    fresh.measure()
    state = fresh.state()
    assert state["update"] == 0 and state["series"] == [] and state["measured"] is None


def test_mistakes_are_sentences(run, tmp_path):
    with pytest.raises(LapsusError, match="does not exist"):
        serve(tmp_path / "nowhere")
    with pytest.raises(LapsusError, match="`port` must be"):
        serve(run.path, 70_000)


def ask(port, path, host=None, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host or f"127.0.0.1:{port}")
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


@contextmanager
def started(run, warm):
    """`lapsus watch` as a process of its own, on a free port."""
    with warm.lapsus("watch", run.path, "--no-browser", cwd=run.path.parent) as process:
        yield process, int(process.said(r"http://127\.0\.0\.1:(\d+)/")[1])


@pytest.fixture(scope="module")
def watching(run, warm):
    with started(run, warm) as found:
        yield found


@pytest.mark.slow
def test_two_addresses_and_nothing_else(watching):
    _, port = watching
    answer, body = ask(port, "/")
    assert (
        answer.status == 200
        and b"<title>lapsus" in body
        and "default-src 'none'" in answer.headers["Content-Security-Policy"]
    )
    answer, body = ask(port, "/state.json")
    assert answer.status == 200 and json.loads(body)["update"] == 40
    for path in (
        "/config.toml",
        "/../config.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/state.json/../config.toml",
        "/state.json?x",
        "/" + "a" * 5000,
    ):
        assert ask(port, path)[0].status == 404, path
    assert ask(port, "/state.json", host="evil.example")[0].status == 403
    assert ask(port, "/", method="POST")[0].status == 501
    assert ask(port, "/", method="HEAD")[1] == b""


@pytest.mark.slow
def test_only_the_loopback_address_listens(watching):
    process, port = watching
    with open(f"/proc/{process.pid}/net/tcp") as file:
        listening = [
            line.split()[1] for line in file if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
        ]
    assert listening == [f"0100007F:{port:04X}"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_closes_cleanly(run, number, warm):
    with started(run, warm) as (process, port):
        process.send_signal(number)
        done = process.wait()
        assert done.returncode == 0 and "Closed." in done.stdout and "Traceback" not in done.stderr
        with pytest.raises(OSError):
            ask(port, "/")


@pytest.mark.slow
def test_damaged_checkpoints_do_not_stop_it(run, tmp_path):
    import shutil

    copy = shutil.copytree(run.path, tmp_path / "copy")
    for path in copy.glob("checkpoint-*.safetensors"):
        path.write_bytes(b"damaged")
    watch, stop = Watch(copy), threading.Event()
    thread = threading.Thread(target=watch.keep_measuring, args=(stop,))
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thread.start()
        deadline = time.monotonic() + 30
        while not watch.problem and time.monotonic() < deadline:
            time.sleep(0.05)
        stop.set()
        thread.join(30)
    assert "could not be measured" in watch.state()["problem"]
