"""Answers as pages: one file of HTML each, which opens anywhere and loads nothing."""
