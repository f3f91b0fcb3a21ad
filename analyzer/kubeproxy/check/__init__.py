"""Invariants of rules that kube-proxy wrote, in any version, and what a violation costs."""
