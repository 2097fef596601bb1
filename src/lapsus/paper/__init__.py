"""The paper's figures, one module each, and what they share: style, networks by role, trial designs, claims."""
