"""Python in a process of its own that has imported nothing of lapsus yet, without the seconds that torch and its
neighbours take: one process imports those, and forks for each piece of code."""

import importlib
import io
import json
import os
import signal
import subprocess
import sys
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
        self.process = process

    def run(self, code: str | Path, *arguments: str, cwd: Path) -> Done:
        """Code, or the script in a file, as `python -c` and `python FILE` run it in the folder `cwd`."""
        streams = [cwd / f".{name}" for name in ("stdout", "stderr")]
        file = str(code) if isinstance(code, Path) else None
        job = {
            "file": file,
            "code": code.read_text() if isinstance(code, Path) else code,
            "arguments": arguments,
            "cwd": str(cwd),
            "streams": list(map(str, streams)),
        }
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        return Done(int(answer), *(path.read_text() for path in streams))


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
        if (child := os.fork()) == 0:
            _work(**job)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


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
