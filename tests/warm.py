"""Python in a process of its own that has imported nothing of lapsus yet, without the seconds that torch and its
neighbours take: one process imports those, and forks for each piece of code."""

import importlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_OTHERS = (
    "torch",
    "scipy.stats",
    "scipy.optimize",
    "pandas",
    "xarray",
    "h5netcdf",
    "matplotlib.pyplot",
    "pydantic",
    "safetensors.torch",
    "typer",
    "tqdm",
)


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


class Warm:
    def __init__(self, process: subprocess.Popen):
        self.process, self.count = process, 0

    def processor_seconds(self) -> float:
        """What its pieces took so far; where that cannot be seen it counts when the process ends."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def start(self, code: str | Path, *arguments: str, cwd: Path) -> "Started":
        """Code, or the script in a file, as `python -c` and `python FILE` run it in the folder `cwd`."""
        self.count += 1
        streams = [cwd / f".{name}-{self.count}" for name in ("stdout", "stderr")]
        job = {
            "file": str(code) if isinstance(code, Path) else None,
            "code": code.read_text() if isinstance(code, Path) else code,
            "arguments": arguments,
            "cwd": str(cwd),
            "streams": list(map(str, streams)),
        }
        return Started(self, self.ask(job), *streams)

    def ask(self, question: dict) -> int:
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def run(self, code: str | Path, *arguments: str, cwd: Path) -> Done:
        """The same, to its end."""
        return self.start(code, *arguments, cwd=cwd).wait()

    def lapsus(self, *arguments: object, cwd: Path) -> "Started":
        """The command line."""
        return self.start("from lapsus.cli import main; main()", *map(str, arguments), cwd=cwd)


@dataclass
class Started:
    """A process that runs, or has been waited for: then `done` says how it ended. As a context it ends with it."""

    warm: Warm
    pid: int
    stdout: Path
    stderr: Path
    done: Done | None = None

    def __enter__(self) -> "Started":
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever became of the test, nothing of it goes on."""
        self.send_signal(signal.SIGKILL)
        self.wait()

    def send_signal(self, number: int) -> None:
        if self.done is None:
            os.kill(self.pid, number)

    def running(self) -> bool:
        """No zombie either; on systems without /proc, until it is waited for."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return self.done is None and not Path("/proc/self").exists()

    def wait(self) -> Done:
        if self.done is None:
            code = self.warm.ask({"wait": self.pid})
            self.done = Done(code, self.stdout.read_text(), self.stderr.read_text())
        return self.done

    def said(self, pattern: str, seconds: float = 120) -> re.Match:
        """What it printed to stdout, once that matches."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.stdout.read_text() if self.stdout.exists() else "")):
            assert self.running() and time.monotonic() < deadline, self.stderr.read_text()
            time.sleep(0.05)
        return found


@contextmanager
def started() -> Iterator[Warm]:
    """Until it is left; then what its pieces took counts among this process's children."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, __file__], env=environment, **pipes) as process:
        yield Warm(process)


def _serve() -> None:
    del sys.path[0]  # the folder of this file, which no reader has
    for name in _OTHERS:
        importlib.import_module(name)
    for line in io.TextIOWrapper(os.fdopen(os.dup(0), "rb")):
        job = json.loads(line)
        if "wait" in job:
            print(os.waitstatus_to_exitcode(os.waitpid(job["wait"], 0)[1]), flush=True)
        elif (child := os.fork()) == 0:
            _work(**job)
        else:
            print(child, flush=True)


def _work(file: str | None, code: str, arguments: list[str], cwd: str, streams: list[str]) -> None:
    os.chdir(cwd)
    signal.alarm(900)
    for number, path in enumerate((os.devnull, *streams)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), number)
    sys.argv = [file or "-c", *arguments]
    sys.path.insert(0, "" if file is None else str(Path(file).parent))
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    if file is not None:
        main.__file__ = file
    status = 1
    try:
        exec(compile(code, file or "<string>", "exec"), main.__dict__)
        status = 0
    except SystemExit as exit:
        status = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve()
