"""Answers as pictures: SVG, alone in a file or in a page."""
