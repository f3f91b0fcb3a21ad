"""Whether manifests are safe to deploy: where their pods may be scheduled, and what that loses.

Theory of operation: manifests become groups of pods that are alike, and nodes (`workloads`,
`nodes`, `problem`). A `SchedulerState` says where pods are so far, and which nodes the scheduler's filters
leave for the next one. Whatever order pods come in and whichever of these nodes is taken, the
scheduler ends in one of a set of placements: `search` finds the worst of them for a Service, or
bounds it; `expected` follows the scheduler's scores. Of a placement `objects` makes what the API
would hold, and what that loses is `kubeproxy.predict`'s and `failure.whatif`'s to say (`verdict`).
"""
