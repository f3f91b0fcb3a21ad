"""Invariants of rules that kube-proxy writes, in any version, and the effects of violations."""
