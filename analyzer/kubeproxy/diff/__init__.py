"""What changes for new flows from one dump of kube-proxy's rules to another."""
