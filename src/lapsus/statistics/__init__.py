"""Statistics that several rooms need: each has its one home here."""
