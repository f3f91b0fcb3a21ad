"""Reads rows of kube-proxy's rules as text, many at a time, without parsing each rule."""
