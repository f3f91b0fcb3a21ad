"""Comparison of one flow of a route, as the kernel traced it, with the predicted tree.

The tree of a packet leaves out what has no effect: chains that only accept, jumps that return. So
each rule on one of its paths must be among those that the kernel matched, in order, and no other
rule that the kernel matched may end or translate a flow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.kubeproxy.view import Route, ServicePort, Source
from analyzer.model.addresses import IPV4, VERSIONS, Address
from analyzer.model.flow_trace import FlowTrace
from analyzer.model.packet import Packet
from analyzer.semantics.tree import AnyRule, BySource, Chance, Either, Leaf, Tree
from netns_lab.arriving import seen_from
from netns_lab.ending import OneFlow
from netns_lab.experiment import Lab
from netns_lab.listening import LeftOut, Matched, listeners, not_loaded, rule_at
from netns_lab.topology import OUTSIDE


def why_not_traced(lab: Lab, service: ServicePort, route: Route) -> str | None:
    """Return why no flow of a route is traced; None if one is.

    On a hairpin route, flows are traced at the lab's own node.
    """
    reasons = [lab.behind.why_not_to_here(service, route, each.endpoint) for each in route.shares]
    if route.source is not Source.HAIRPIN or not reasons or None in reasons:
        return None
    why = "; ".join(dict.fromkeys(filter(None, reasons)))
    return f"no flow of an endpoint to {service.name.text}, its own Service, is traced: {why}"


def traced(lab: Lab, given: Input, service: ServicePort, route: Route) -> FlowTrace:
    """Send one flow of a route, of a hairpin route from the first endpoint that sends any.

    Raises:
        LabError: the kernel gives no trace, or part of it got lost.
    """
    sender = None
    if route.source is Source.HAIRPIN:
        share = next(
            each
            for each in route.shares
            if lab.behind.why_not_to_here(service, route, each.endpoint) is None
        )
        sender, route = share.endpoint.address, seen_from(service, route, share)
    flow = OneFlow(lab, service, route, 1, sender)
    (source, port), (address, to_port) = flow.source(), flow.destination()
    listener = listeners(lab, service.protocol, (source, port))[0]
    with flow.undisturbed():
        lab.forget_flows()
        if service.affinity is not None:
            lab.backend.forget_clients()
        try:
            listener.begin()
            flow.once()
            met = listener.met()
        finally:
            listener.end()
    ruleset, left_out = lab.question.ruleset, not_loaded(lab)
    matched = [found for where in met if (found := rule_at(ruleset, where, left_out)) is not None]
    packet = Packet(
        protocol=service.protocol,
        source=source,
        source_port=port,
        destination=address,
        destination_port=to_port,
        in_interface=_device(lab, route.source, sender),
    )
    rulesets = (ruleset, *lab.question.others)
    question = Question(
        packet=packet,
        assumed=given.assumed,
        addresses=lab.topology.plan.node_addresses,
    )
    family = next(name for name, version in VERSIONS.items() if version == address.version)
    tree = trace(rulesets, question, family).tree
    differs = (
        first_difference(tree, matched, ruleset.file, left_out)
        if matched
        else ("the kernel reported no rule")
    )
    return FlowTrace(
        service=service.name.text,
        source=route.source.value,
        flow=f"{_ends(source, port)} to {_ends(address, to_port)}",
        matched=tuple(text for text, _, _ in matched),
        differs=differs,
    )


def _ends(address: Address, port: int) -> str:
    return f"{address}:{port}" if address.version == IPV4 else f"[{address}]:{port}"


def _device(lab: Lab, source: Source, sender: Address | None) -> str:
    if sender is not None:
        source = Source.POD_ELSEWHERE
        if lab.place_of(sender)[0] is lab.topology.own_pods:
            return lab.topology.plan.bridge or lab.topology.plan.pods_device
    match source:
        case Source.NODE:
            return ""
        case Source.EXTERNAL:
            return OUTSIDE
        case Source.POD_ELSEWHERE:
            return "eth0"
        case _:
            plan = lab.topology.plan
            return plan.bridge or plan.client_device


# --- beside what was predicted --------------------------------------------------------


def first_difference(
    tree: Tree, matched: Sequence[Matched], file: str, left_out: LeftOut = frozenset()
) -> str | None:
    """Return where the kernel's path left the tree; None if it is one of the tree's.

    Only rules of `file` are compared, without those that were `left_out` when it was loaded; the
    node's other dumps are not traced here.
    """
    places = [_place(each) for _, each, _ in matched]
    texts = [text for text, _, _ in matched]
    decides = [each for _, _, each in matched]
    furthest, expected = 0, ""

    def onwards(node: Tree, at: int) -> bool:
        nonlocal furthest, expected
        for rule in node.rules:
            place, begun = _place(rule), at
            if rule.location.file != file or place in left_out:
                continue
            while at < len(places) and places[at] != place and not decides[at]:
                at += 1
            if at >= len(places) or places[at] != place:
                # If nothing else decides, it is missing right after the rule before it.
                wrong = begun if at >= len(places) else at
                if wrong >= furthest:
                    furthest, expected = wrong, str(rule.location)
                return False
            at += 1
        match node:
            case Leaf(rules=(*_, last)) if _place(last) in left_out:
                return True  # the kernel goes on where the tree does not
            case Leaf():
                rest = next((n for n in range(at, len(texts)) if decides[n]), None)
                if rest is not None and rest >= furthest:
                    furthest, expected = rest, "no such rule"
                return rest is None
            case Chance() | Either() | BySource():
                return any(onwards(child, at) for child in _children(node))

    if onwards(tree, 0):
        return None
    there = texts[furthest] if furthest < len(texts) else "nothing more"
    return f"rule {furthest + 1}: the kernel matched {there}; expected {expected}"


def _place(rule: AnyRule) -> tuple[str, int | None]:
    return rule.location.file, rule.location.line


def _children(node: Chance | Either | BySource) -> Iterator[Tree]:
    for each in node.branches:
        yield each[1] if isinstance(each, tuple) else each
