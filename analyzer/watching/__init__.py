"""Periodic checks of a node's rules, for a monitoring system."""
