"""What an outage does beyond dead endpoints: to the control plane, and over time."""
