"""Answers Services from plain rows, or one of a class for all of it, where a walk would agree."""
