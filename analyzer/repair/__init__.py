"""Changes that remove dead endpoints from a node's rules until kube-proxy is back."""
