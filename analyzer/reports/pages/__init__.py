"""Answers as HTML pages: one self-contained file each, which loads nothing."""
