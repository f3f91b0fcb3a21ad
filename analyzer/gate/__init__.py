"""Whether manifests are safe to deploy: where their pods may be scheduled, and what that loses.

Theory of operation: manifests become groups of pods that are alike, and nodes (`workloads`,
`nodes`, `problem`). A `SchedulerState` has the pods placed so far, and the nodes that the
scheduler's filters allow for the next one. Whatever the order of the pods, and whichever of these
nodes is taken, the scheduler ends in one of a set of placements: `search` finds the worst of them
for a Service, or bounds it; `expected` follows the scheduler's scores. From a placement `objects`
makes the API objects, whose losses `kubeproxy.predict` and `failure.whatif` compute (`evaluation`).
"""
