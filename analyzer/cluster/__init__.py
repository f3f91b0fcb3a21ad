"""The dumps of a whole cluster: what is the same is stored once, and computed once."""
