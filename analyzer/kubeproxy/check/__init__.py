"""What must hold of rules that kube-proxy wrote, whatever its version, and what follows if not."""
