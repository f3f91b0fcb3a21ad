"""The same rules and objects with other names and addresses, so that they can be shared.

Theory of operation: what is written is made anew from values that a reader of ours has understood,
never from the input's own text. So what nobody understands cannot be carried along: a mark takes
its place that reads as not understood again, which widens bounds as the original did. Each word of
a value is kept if it is one of netfilter's or of the Kubernetes API's (``tcp``, ``NodePort``),
else replaced by a pseudonym: a keyed hash (HMAC-SHA256) of the word and of its kind. Addresses
keep their prefixes (`addresses`), chains of kube-proxy get the hash of their new name (`chains`).
Numbers that are no addresses (ports, marks, counters, probabilities) are no names and stay.

The same salt gives the same names in every file and for every node of a cluster.
"""
