"""Measures that protect Services from node failures, with the loss before and after each.

Theory of operation
===================

A measure is a function from API objects to API objects (`measures`, one file each and one row in a
table): a pod more, pods on other nodes, a policy. What it buys is not derived: the changed objects
are given to the same prediction and the same `what_if` as the objects that are there, and both
answers stand side by side. What the objects do not tell, such as why pods are placed as they are,
is said beside the numbers, and a measure that rests on it is refused with the reason.
"""
