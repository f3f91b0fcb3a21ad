"""What is dead, and what is lost."""
