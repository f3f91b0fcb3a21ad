"""xtables: the words of one rule, and the extensions that parse them."""
