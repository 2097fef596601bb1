"""lapsus watch."""

from pathlib import Path
from typing import Never

import typer

from lapsus.cli.options import Trust


def command(run: Path, port: int = 0, trust: Trust = False, browser: bool = True) -> None:
    """Show a training as it happens, on a page that only this machine can see; Ctrl-C closes it.

    run: A run folder, while it trains or after.
    port: Port on this machine; 0 takes a free one.
    browser/no-browser: Open a browser.
    """
    import signal

    from lapsus.report.live import serve

    def ready(address: str) -> None:
        typer.echo(f"Watching {run} at {address} (Ctrl-C closes it)")
        if browser:
            import webbrowser

            webbrowser.open(address)

    def end(number: int, frame: object) -> Never:
        raise KeyboardInterrupt

    # Also SIGINT: a shell that starts commands in the background has them ignore it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    serve(run, port, ready, trust)
    typer.echo("Closed.")
