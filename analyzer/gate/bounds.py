"""Bounds over all placements without enumerating them: the most pods that some nodes can hold.

Each bound looks at one constraint and leaves out the others, which can only take placements away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from analyzer.gate.problem import PodGroup, Problem, Spread, Term


def most_on(problem: Problem, g: int, nodes: Collection[int]) -> int:
    """Return the most pods of a group that these nodes can hold together."""
    group = problem.groups[g]
    running = sum(group.fixed.get(v, 0) for v in nodes)
    if group.stuck is not None or not group.number:
        return running
    places = [v for v in nodes if v in group.nodes]
    most = min(group.number, sum(_most(problem, g, v) for v in places))
    for term in group.anti:
        if g in term.groups:
            domains = {term.domains[v] for v in places}
            if -1 not in domains:
                most = min(most, len(domains))
    for spread in group.spread:
        if spread.groups == {g} and not group.fixed:
            most = min(most, _most_spread(problem, g, spread, frozenset(places)))
    return running + most


def _most(problem: Problem, g: int, v: int) -> int:
    """Return how many pods of a group one node takes at most."""
    group = problem.groups[g]
    if group.one_each or g in group.conflicting:
        return 1
    numbers = [group.number]
    for key, need in group.requests.items():
        if key in problem.room[v] and need:
            numbers.append(max(0, problem.room[v][key]) // need)
    return min(numbers)


def _most_spread(problem: Problem, g: int, spread: Spread, nodes: frozenset[int]) -> int:
    """Return the same by one constraint.

    Where M pods are in the fullest domain at least M less maxSkew are in each.
    """
    number, allowed = problem.groups[g].number, frozenset(problem.groups[g].nodes)
    capacity: dict[int, int] = {}
    touched: dict[int, int] = {}
    for v in spread.counted:
        domain = spread.domains[v]
        own = _most(problem, g, v) if v in allowed else 0
        capacity[domain] = capacity.get(domain, 0) + own
        if v in nodes:
            touched[domain] = touched.get(domain, 0) + own
    if not nodes <= set(spread.counted):
        return number
    found = 0
    for fullest in range(1, number + 1):
        least = 0 if len(capacity) < spread.least_domains else min(capacity.values(), default=0)
        if fullest - spread.most > least:
            break
        # What each domain has to hold on other nodes than these.
        others = max(0, fullest - spread.most)
        rest = others * (len(capacity) - len(touched))
        rest += sum(max(0, others - each) for each in touched.values())
        held = sum(min(fullest, each) for each in touched.values())
        found = max(found, min(held, number - rest))
    return found


def least_placed(problem: Problem, g: int) -> int:
    """Return how many pods of a group are placed in any case; 0 if that is not evident."""
    group = problem.groups[g]
    running = sum(group.fixed.values())
    if group.stuck is not None or not group.number or group.affine is not None:
        return running
    terms: tuple[Term, ...] = (*group.anti, *group.kept_from)
    others = frozenset().union(*(t.groups for t in terms), group.conflicting) - {g}
    if others or group.fixed:
        return running
    blocked = blockable(problem, g)
    # Pods of its own that keep others away: each takes a node, or a whole domain.
    alone = [t for t in terms if g in t.groups]
    if group.spread:
        excludes = alone or g in group.conflicting or group.one_each or len(group.spread) > 1
        if excludes or blocked >= min(_sizes(group.spread[0], group.nodes), default=0):
            return running
        return group.number if _is_always_open(group, group.spread[0], g) else running
    domains = [_domains(t, group.nodes) for t in alone]
    if g in group.conflicting or group.one_each:
        domains.append(len(group.nodes))
    if not blocked:
        return min([group.number, *domains]) if group.nodes else running
    # What is not filled by others is closed to its pods by its own alone, a node by each.
    rest = len(group.nodes) - blocked
    if not domains:
        return group.number if rest > 0 else running
    is_by_node = all(each == len(group.nodes) for each in domains)
    return min(group.number, max(0, rest)) if is_by_node else running


def _domains(term: Term, nodes: Iterable[int]) -> int:
    told = [term.domains[v] for v in nodes]
    return len({each for each in told if each >= 0}) + sum(each < 0 for each in told) * len(told)


def _is_always_open(group: PodGroup, spread: Spread, g: int) -> bool:
    """Return whether the emptiest domain of a constraint takes a pod however others stand."""
    if spread.groups - {g} or not spread.own:
        return False
    counted = {spread.domains[v] for v in spread.counted}
    # With fewer domains than minDomains the emptiest counts as empty, however many it has.
    is_enough = len(counted) >= spread.least_domains
    return is_enough and counted == {spread.domains[v] for v in group.nodes}


def is_free(problem: Problem, g: int) -> bool:
    """Return whether other pods' requests alone cannot leave a group's pods Pending."""
    group = problem.groups[g]
    blocked = blockable(problem, g)
    if not blocked or not group.number:
        return True
    if group.affine is not None:
        return False
    excludes = g in group.conflicting or group.one_each or any(g in t.groups for t in group.anti)
    if group.spread:
        return not excludes and all(
            blocked < min(_sizes(each, group.nodes), default=0) for each in group.spread
        )
    return blocked + (group.number - 1 if excludes else 0) < len(group.nodes)


def _sizes(spread: Spread, nodes: Iterable[int]) -> list[int]:
    """Return how many nodes that take a pod each counted domain has."""
    sizes = dict.fromkeys((spread.domains[v] for v in spread.counted), 0)
    for v in nodes:
        sizes[spread.domains[v]] = sizes.get(spread.domains[v], 0) + 1
    return [*sizes.values()]


def blockable(problem: Problem, g: int) -> int:
    """Return the most nodes that all other pods can fill, so that none is left for a group.

    Of each resource the nodes with least room are filled first, as far as all requests go.
    """
    group = problem.groups[g]
    found = 0
    for key, need in group.requests.items():
        demand = sum(h.requests.get(key, 0) * h.number for h in problem.groups) - need
        demand += sum(h.requests.get(key, 0) * n for h in problem.groups for n in h.fixed.values())
        rooms = sorted(problem.room[v][key] for v in group.nodes if key in problem.room[v])
        for room in rooms:
            demand -= room - need + 1
            if demand < 0:
                break
            found += 1
    return min(found, len(group.nodes))
