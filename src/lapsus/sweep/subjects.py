"""Subjects of a trial table as what varies: the behaviour that is fitted to each becomes a target."""

from pathlib import Path

from lapsus.sweep.sweep_file import SweepFile

__all__ = ["fitted_targets"]


def fitted_targets(sweep: SweepFile, output: Path) -> dict[str, dict] | None:
    """Name → behaviour table of each subject, or None for a sweep without subjects."""
    return None
