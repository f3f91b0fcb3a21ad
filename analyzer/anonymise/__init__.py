"""The same rules and objects with other names and addresses, so that they can be shared.

Theory of operation: the output is rendered from values that one of our parsers has understood,
never from the input's own text. So what is not understood cannot leak: it is replaced by a mark
that again parses as not understood, which widens bounds as the original did. Each word of a value
is kept if it is one of netfilter's or of the Kubernetes API's (``tcp``, ``NodePort``), and
otherwise replaced by a pseudonym: a keyed hash (HMAC-SHA256) of the word and of its kind. Addresses
keep their prefixes (`addresses`), chains of kube-proxy get the hash of their new name (`chains`).
Numbers that are not addresses (ports, marks, counters, probabilities) stay.

The same salt gives the same names in every file and for every node of a cluster.
"""
