"""What the command line takes: the options of each verb, and what its help says."""
