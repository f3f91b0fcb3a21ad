"""The verbs: from options to exit status."""
