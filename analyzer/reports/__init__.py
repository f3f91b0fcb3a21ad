"""Renders answers as text, JSON and pictures."""
