"""Parsers of dumps of rules and of Kubernetes API objects."""
