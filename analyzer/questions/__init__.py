"""What was read, put to the layers below: answers that verbs print."""
