"""Routes from plain rows, or from one frontend of a class, with the results of a full traversal."""
