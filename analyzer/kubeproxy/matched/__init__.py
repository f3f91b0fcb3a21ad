"""What rules on the node match on: marks, devices, sets, conntrack."""
