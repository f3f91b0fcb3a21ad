"""Captures with rules of others in them, in two files or in pieces, and what is answered."""
