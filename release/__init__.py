"""What makes packages, pictures and pages out of the project; no part of what is installed."""
