"""kube-proxy's rules become Services again."""
