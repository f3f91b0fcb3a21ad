"""API objects in the forms in which users have them, one module for each."""
