"""Frontends of Services: which rules send which flows to which chains, in either backend."""
