"""Who is dead, and what is lost."""
