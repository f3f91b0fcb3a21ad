"""Failures: what is dead, and which share of new flows is lost."""
