"""Walks flows from each kind of source to each frontend, and on to where they end."""
