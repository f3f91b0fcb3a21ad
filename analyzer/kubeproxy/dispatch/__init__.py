"""Finds the frontends of Services: which rules send flows to which chains, in either backend."""
