"""Recordings: sessions of spike times and trials, as spike counts in the form that every analysis takes."""

from lapsus.recordings.counts import count_spikes, pseudo_population
from lapsus.recordings.layout import PRESETS, Layout, layout_of
from lapsus.recordings.nwb import read_nwb, write_nwb
from lapsus.recordings.reading import read_recording, read_sessions
from lapsus.recordings.session import Session
from lapsus.recordings.spikes import as_neurons, spike_session

__all__ = [
    "PRESETS",
    "Layout",
    "Session",
    "as_neurons",
    "count_spikes",
    "layout_of",
    "pseudo_population",
    "read_nwb",
    "read_recording",
    "read_sessions",
    "spike_session",
    "write_nwb",
]
