"""xtables: the words of one rule, and the extensions that read them."""
