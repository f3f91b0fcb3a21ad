"""What are the odds that a connection through kube-proxy's rules reaches a live endpoint?"""

__version__ = "0.1.0"
