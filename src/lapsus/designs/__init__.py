"""Experiments described by a file: what each column of a trial table is, and when it is shown."""

from lapsus.designs.design import Design, DesignFile, guess_design, read_design
from lapsus.designs.packed import pack, unpack
from lapsus.designs.tables import read_table
from lapsus.designs.variables import Variable

__all__ = ["Design", "DesignFile", "Variable", "guess_design", "pack", "read_design", "read_table", "unpack"]
