"""API objects in the forms in which people have them, one module for each."""
