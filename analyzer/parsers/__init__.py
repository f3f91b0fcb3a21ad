"""From text to values: dumps of rules, and objects of the Kubernetes API."""
