"""The command line: options of each verb, and the text of its help."""
