"""Replay of a dump's rules on a real kernel: network namespaces, packets, and their counts."""
