"""Changes that take dead endpoints out of a node's rules until kube-proxy is back."""
