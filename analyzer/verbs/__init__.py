"""What each verb does, from its options to its exit status."""
