"""One member from where it stands to its end: train, measure, done. Whoever runs it, the bits are the same."""

import errno
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from lapsus.engine.threads import torch_threads
from lapsus.errors import LapsusError
from lapsus.files import write_json
from lapsus.sweep.folder import Sweep
from lapsus.sweep.holders import Busy, claim
from lapsus.sweep.measures import measure
from lapsus.training.build import build
from lapsus.training.trainer import train

NO_ROOM = "With room on the disk, the same command continues."


@dataclass(frozen=True)
class MemberOutcome:
    """How far a member came: "done", "interrupted" (all is saved), "busy" (someone else works on it), "failed", or "no
    room" (the disk is full or takes nothing, which is no fault of the member, and would be met by every other)."""

    kind: str
    reason: str = ""


def run_member(sweep: Sweep, name: str, threads: int = 1, stop: Callable[[], bool] | None = None) -> MemberOutcome:
    """Go on with a member; a failure is entered in its folder, not raised."""
    stop = stop or sweep.stop_file.exists
    try:
        with claim(sweep.claim_file(name)), torch_threads(threads):
            return _go(sweep, name, threads, stop)
    except Busy as busy:
        return MemberOutcome("busy", str(busy))
    except KeyboardInterrupt:
        return MemberOutcome("interrupted")
    except Exception as error:  # whatever a user's own classes raise is a failure of this member alone
        if no_room(error):
            return MemberOutcome("no room", str(error))
        if isinstance(error, LapsusError):  # says by itself what is wrong
            reason, lines = str(error), sweep.last_lines(name)
        else:
            reason, lines = f"{type(error).__name__}: {error}", traceback.format_exc().splitlines()
        sweep.note_failure(name, reason, lines)
        return MemberOutcome("failed", reason)


def no_room(error: BaseException | None) -> bool:
    """Whether it was raised because the disk is full, over a quota or read-only."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _go(sweep: Sweep, name: str, threads: int, stop: Callable[[], bool]) -> MemberOutcome:
    if sweep.done(name):
        return MemberOutcome("done")
    start = sweep.plan.start(name)
    if start is not None and not sweep.trained(start):
        raise LapsusError(f"{name} starts from {start}, which is not trained.")
    if stop():
        return MemberOutcome("interrupted")
    run = sweep.run(name)
    if run.update < run.experiment.updates or not run.update:
        outcome = train(run, threads=threads, progress=False, stop=stop)
        if outcome.update < outcome.updates:
            return MemberOutcome("interrupted")
    else:
        run.tidy()
    if stop():
        return MemberOutcome("interrupted")
    measured = measure(run.model(), sweep.plan.measure_of(name), threads)
    if not build("objective", run.experiment.stage[-1].objective).forced:
        # It was never asked to denoise: its excess, a hundred times that of others, says nothing.
        for key in ("excess", "excess_interval"):
            measured.get("evaluation", {}).pop(key, None)
    write_json(sweep.measures_file(name), measured)
    return MemberOutcome("done")
