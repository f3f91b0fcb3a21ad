"""What an outage does besides losing endpoints: to the control plane, and as time goes on."""
