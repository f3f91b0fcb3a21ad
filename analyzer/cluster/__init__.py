"""A whole cluster's dumps: what is said once is kept once, and every question is one question."""
