"""Judging a node's rules again and again, for a monitoring system."""
