"""A recording beside a discovery: which of the matched networks does it resemble?"""

import contextlib
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lapsus.evaluation.sample_sizes import SampleSizes
from lapsus.files import Damaged, write_json
from lapsus.mechanism.recorded import complete, describe
from lapsus.mechanism.resemblance import Resemblance, Windows, recorded_windows, resemblance, single_trials
from lapsus.pipeline.result import Discovery
from lapsus.recordings import read_recording
from lapsus.recordings.nwb import names_of_files
from lapsus.report.findings import RecordingFindings
from lapsus.training.model import Model, weights_digest

__all__ = ["GivenRecording", "compare_recording"]


@dataclass(frozen=True)
class GivenRecording:
    """A recording as it was read: its name, what it has in sentences, the windows that are compared, and a digest of
    its files and of how they were read."""

    source: str
    said: list[str]
    windows: Windows
    digest: str

    @classmethod
    def read(cls, source: str | Path, reading: Mapping[str, Any]) -> "GivenRecording":
        """From NWB files; reading: as `lapsus.recordings.read_sessions` takes it."""
        dataset = read_recording(source, **reading)
        whole = complete(dataset)
        said, _ = describe(dataset, whole)
        digest = hashlib.blake2b(repr(sorted(reading.items())).encode(), digest_size=12)
        for part in names_of_files(source):
            with open(part, "rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
        return cls(Path(str(source)).name, said, recorded_windows(whole), digest.hexdigest())


def compare_recording(
    discovery: Discovery,
    networks: Mapping[str, Model],
    given: GivenRecording,
    sizes: SampleSizes,
    say: Callable[[str], None],
) -> None:
    """Write recording.json: which networks of a discovery the recording resembles. networks: those of both objectives
    that are matched, by name, or none. What was compared already is not compared again."""
    made_of = [given.digest, *map(weights_digest, networks.values())]
    place = discovery / "recording.json"
    if place.is_file():
        # A damaged file is written anew.
        with contextlib.suppress(Damaged):
            if discovery.json("recording.json").get("made_of") == made_of and discovery.recording is not None:
                return
    discovery.undo(["report"])
    comparison: Resemblance | None = None
    if networks:
        say("      comparing the recording with the networks")
        kinds: dict[str, list] = {}
        for model in networks.values():
            kinds.setdefault(f"networks trained by {model.objective}", []).append(partial(single_trials, model))
        comparison = resemblance(
            given.windows,
            kinds,
            recordings=4 * sizes.recordings,
            trials=sizes.single_trials // 2,
            seed=discovery.settings["seed"],
        )
    found = RecordingFindings(given.source, given.said, comparison)
    write_json(place, {"made_of": made_of, "found": found})
