"""What rules mean: the probability of every path that a packet can take."""
