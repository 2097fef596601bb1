"""lapsus info."""

import typer


def command(json_: bool = False) -> None:
    """Versions, and which engine runs on this machine.

    json_: Print one JSON object.
    """
    import json
    import platform

    import torch

    from lapsus import __version__
    from lapsus.engine import fused
    from lapsus.engine.threads import resolve

    isa = fused.instruction_set()
    facts = {
        "lapsus": __version__,
        "engine": "reference" if isa is None else "fused",
        "instruction_set": isa,
        "instruction_sets": fused.instruction_sets(),
        "threads": resolve(None),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
    }
    if json_:
        typer.echo(json.dumps(facts, indent=2))
        return
    if isa is None:
        facts["engine"] = f"reference (plain torch: {fused.unbuilt()})"
    facts["instruction_sets"] = ", ".join(fused.instruction_sets())
    for name, value in facts.items():
        typer.echo(f"{name.replace('_', ' ') + ':':18}{value or 'none'}")
