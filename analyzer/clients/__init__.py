"""What a client sees of a failure: the chance that its operation fails, and how long it waits."""
