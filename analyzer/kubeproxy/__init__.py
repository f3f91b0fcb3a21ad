"""Recognises Services in kube-proxy's rules."""
