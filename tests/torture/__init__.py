"""The campaign: faults at every write, hostile files for every reader, tables in every layout (docs/reliability.md)."""
