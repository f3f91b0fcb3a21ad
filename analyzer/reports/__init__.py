"""Values become text, JSON and pictures."""
