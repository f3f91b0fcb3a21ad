"""Answers that verbs print, computed by the layers below from what was read."""
