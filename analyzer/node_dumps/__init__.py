"""The dumps of a cluster's nodes, each read once, by one process or many."""
