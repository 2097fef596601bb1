"""The paper's figures, one module each, networks by role, and claims with their statistics."""
