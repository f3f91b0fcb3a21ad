"""Traverses the rules with flows from each kind of source to each frontend, up to their ends."""
