"""What kube-proxy would write on every node, from API objects alone.

Theory of operation
===================

Most Services are the same at every node. Others differ by node: local policies, topology hints,
source ranges that hold a node's address. `Reaches` says of a ServicePort which endpoints each node
sends flows to; nodes that send them to the same ones, and that rules do not tell apart by their
addresses, are one class.

How flows come to those endpoints, from which source and to which frontend, is not derived a second
time: the rules of a Service of the same shape, with one endpoint at the node and one elsewhere, are
generated and walked (`templates`). Which of the two lists each route draws from is read off there,
and the lists of each class are put in their place. Where that cannot be read off, the rules of the
class itself are walked. `sampled` holds what was predicted against a walk of all rules of a few
Services at a few nodes, in every run.
"""
