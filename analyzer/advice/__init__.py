"""Measures that protect Services from node failures, with the loss before and after each.

Theory of operation
===================

A measure is a function from API objects to API objects (`measures`, one file each and one row in a
table): one more pod, pods on other nodes, a policy. Its benefit is not derived: the changed objects
go through the same prediction and the same `what_if` as the present objects, and both results are
shown side by side. What the objects do not show, such as why pods are placed as they are, is
reported beside the numbers, and a measure that depends on it is refused with the reason.
"""
