"""The dumps of a cluster's nodes, read once each, by one process or by many."""
