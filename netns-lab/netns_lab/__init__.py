"""The same rules on a real kernel: network namespaces, packets, and their counts."""
