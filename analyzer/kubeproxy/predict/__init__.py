"""What kube-proxy would write on every node, from API objects alone.

Theory of operation
===================

Most Services are the same at every node. Others differ by node: local policies, topology hints,
source ranges that contain a node's address. `Reaches` computes to which endpoints of a ServicePort
each node sends flows; nodes that send them to the same ones, and whose addresses rules do not
distinguish, are one class.

How flows reach those endpoints, from which source and to which frontend, is not derived a second
time: the rules of a Service of the same shape, with one endpoint at the node and one elsewhere, are
generated and evaluated (`templates`). From the result follows which of the two lists each route
draws from, and the lists of each class take their place. If it does not follow, the rules of the
class itself are evaluated. In every run, `sampled` compares the predictions of a few Services at a
few nodes with an evaluation of all their rules.
"""
