"""What rules mean: the chance of every way that a packet can go."""
