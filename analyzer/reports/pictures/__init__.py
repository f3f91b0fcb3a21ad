"""Answers as SVG pictures, in a file of their own or in a page."""
