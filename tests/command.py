"""`lapsus …` as a user would type it, without the seconds that a new process takes to import torch.

What must be seen in a process of its own (signals, imports, warnings once a process) starts one in its test.
"""

import io
import os
import sys
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from unittest import mock

from lapsus.cli import main


def lapsus(*arguments, cwd: os.PathLike, code: int = 0) -> str:
    """Run the command in the folder `cwd` and return what it printed: to stdout where the exit code is 0, which must be
    `code`, else to stderr. An exception that the command line does not catch is the test's to fail on."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["lapsus", *map(str, arguments)]
    with (
        mock.patch.object(sys, "argv", argv),
        chdir(cwd),
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            main()
            found = 0
        except SystemExit as exit:
            found = exit.code or 0
    assert found == code, out.getvalue() + err.getvalue()
    return out.getvalue() if code == 0 else err.getvalue()
