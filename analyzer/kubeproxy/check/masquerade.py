"""Flows whose replies must pass through the node are marked, and marked flows are masqueraded.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``: KUBE-MARK-MASQ,
KUBE-POSTROUTING, KUBE-FORWARD; the rules for flows from outside the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.facts import DumpFacts, listed
from analyzer.kubeproxy.check.findings import Finding
from analyzer.kubeproxy.matched.chain_rule import ChainRule, FrontendKey
from analyzer.model.addresses import Network, network_to_text

_POSTROUTING = "KUBE-POSTROUTING"
_FORWARD = "KUBE-FORWARD"


def masquerade(facts: DumpFacts) -> Iterator[Finding]:
    """Find a mark that is not set, not masqueraded or not accepted, and flows without it."""
    if facts.settled or facts.callers.get(names.MARK_MASQUERADE):
        yield from _mark(facts)
        yield from _postrouting(facts)
        yield from _forward(facts)
    yield from _outside(facts)
    yield from _everything(facts)
    yield from _of_chains(facts)


def _mark(facts: DumpFacts) -> Iterator[Finding]:
    chain = names.MARK_MASQUERADE
    rows = facts.rows(chain)
    told = rows or facts.nat.complete
    if told and chain in facts.nat.chains and facts.masquerade_mark is None:
        yield Finding(
            code="masquerade-mark",
            message=(
                f"{chain} does not set exactly one bit of the mark: new flows from outside the "
                "cluster, to NodePorts, and from pods to themselves keep their source or lose "
                "other marks, and replies to them get lost"
            ),
            line=rows[0].line if rows else facts.callers[chain][0].line,
        )


def _postrouting(facts: DumpFacts) -> Iterator[Finding]:
    if _POSTROUTING not in facts.nat.chains:
        yield from ()
        return
    bit = facts.masquerade_mark
    spared: set[int] = set()
    masked = []
    rows = facts.rows(_POSTROUTING)
    for row in rows:
        if row.target == "RETURN" and row.is_unconditional:
            rows = [row]
            break
        if row.target == "RETURN" and row.mark is not None and row.mark_negated:
            spared.add(row.mark.mask)
        elif row.target == "MASQUERADE" and row.is_unconditional:
            masked.append(row)
            if not spared:
                yield Finding(
                    code="unconditional-masquerade",
                    message=(
                        "KUBE-POSTROUTING masquerades every new flow that leaves the node, "
                        "marked or not: endpoints and servers outside see the node as the "
                        "client, and its ports run out. An older iptables may have left out -m "
                        "mark in the dump"
                    ),
                    line=row.line,
                )
            elif bit is not None and bit not in spared:
                yield _other_bit(row, bit, spared)
        elif row.target == "MASQUERADE" and row.mark is not None and not row.mark_negated:
            masked.append(row)
            if bit is not None and row.mark.mask != bit:
                yield _other_bit(row, bit, {row.mark.mask})
        elif row.target == "MASQUERADE":
            masked.append(row)  # with some other match, for example of ipvs mode
    clears = any(row.sets_mark is not None for row in rows)
    if masked and spared and not clears:
        yield Finding(
            code="mark-not-cleared",
            message=(
                "KUBE-POSTROUTING does not clear the mark of what it masquerades: a new flow "
                "that passes again, out of a tunnel of the node, is masqueraded once more"
            ),
            line=masked[0].line,
        )
    yield from _order(rows)
    if not masked:
        yield Finding(
            code="no-masquerade",
            message=(
                "KUBE-POSTROUTING masquerades nothing: new flows from outside the cluster, to "
                "NodePorts on other nodes, and from pods to themselves keep their source, and "
                "replies to them bypass the node"
            ),
            line=rows[-1].line if rows else None,
        )


def _order(rows: Sequence[ChainRule]) -> Iterator[Finding]:
    """Find rules that undo each other: to clear the mark is to flip it, even if it is not set."""
    spares = [at for at, row in enumerate(rows) if row.target == "RETURN" and row.mark is not None]
    clears = [at for at, row in enumerate(rows) if row.sets_mark is not None]
    masks = [at for at, row in enumerate(rows) if row.target == "MASQUERADE"]
    early = [at for at in clears if spares and at < spares[0]]
    late = [at for at in clears if masks and at > masks[-1]]
    if early or len(clears) > 1:
        yield Finding(
            code="masquerade-order",
            message=(
                "KUBE-POSTROUTING flips the mark of flows before it returns those without it, or "
                "flips it twice: new flows that should keep their source are masqueraded, and "
                "those from outside the cluster are not"
            ),
            line=rows[(early or clears[1:])[0]].line,
        )
    elif late:
        yield Finding(
            code="masquerade-order",
            message=(
                "KUBE-POSTROUTING clears the mark after the rule that masquerades, which no flow "
                "reaches: a new flow that passes again, out of a tunnel of the node, is "
                "masqueraded once more"
            ),
            line=rows[late[0]].line,
        )


def _other_bit(row: ChainRule, bit: int, masks: set[int]) -> Finding:
    asked = ", ".join(hex(mask) for mask in sorted(masks))
    return Finding(
        code="masquerade-mark",
        message=f"KUBE-POSTROUTING matches mark {asked}, but KUBE-MARK-MASQ sets {bit:#x}: new "
        "flows from outside the cluster and to NodePorts are not masqueraded, and replies to "
        "them get lost",
        line=row.line,
    )


def _forward(facts: DumpFacts) -> Iterator[Finding]:
    rows = facts.rows(_FORWARD, "filter")
    accepts = [row for row in rows if row.target == "ACCEPT" and row.mark is not None]
    bit = facts.masquerade_mark
    for row in accepts:
        if bit is not None and row.mark is not None and row.mark.mask != bit:
            yield Finding(
                code="forward-mark",
                message=f"KUBE-FORWARD accepts mark {row.mark.mask:#x}, but KUBE-MARK-MASQ sets "
                f"{bit:#x}: if the policy of FORWARD is DROP, new flows from outside to "
                "NodePorts and ClusterIPs are dropped on this node",
                line=row.line,
            )
    open_to_all = any(row.target == "ACCEPT" and row.is_unconditional for row in rows)
    if rows and not accepts and not open_to_all:
        yield Finding(
            code="no-forward-accept",
            message=(
                "KUBE-FORWARD has no rule that accepts marked packets: if the policy of FORWARD "
                "is DROP, new flows from outside to NodePorts and ClusterIPs are dropped on this "
                "node"
            ),
            line=rows[-1].line,
        )


# --- which flows are marked ---


def _outside(facts: DumpFacts) -> Iterator[Finding]:
    """Find ClusterIPs whose flows from outside are not marked while those to others are."""
    marked: dict[FrontendKey, list[ChainRule]] = {}
    for row in facts.all_rows():
        if row.target == names.MARK_MASQUERADE and row.asks_port:
            marked.setdefault(row.frontend_key, []).append(row)
    lacking: list[ChainRule] = []
    networks: Counter[Network | None] = Counter()
    marks: list[tuple[ChainRule, ChainRule]] = []
    # If a chain is missing or empty, another finding reports that.
    frontends = [
        f for f in facts.frontends if f.port is not None and facts.has_rows(f.target or "")
    ]
    of_cluster = [f for f in frontends if f.kind == "ClusterIP"]
    for frontend in of_cluster:
        found = _mark_of(frontend, marked)
        if found is None:
            lacking.append(frontend)
        else:
            networks[found.source] += 1
            marks.append((frontend, found))
    if len(lacking) <= len(marks):
        for frontend in lacking:
            yield Finding(
                code="no-outside-mark",
                message=(
                    f"new flows from outside the cluster to {frontend} are not marked for "
                    "masquerading, while those to other ClusterIPs are: the endpoint's reply "
                    "bypasses the node, and the client does not recognise it"
                ),
                line=frontend.line,
            )
    usual = next(iter(networks.most_common(1)), (None, 0))
    others = None if usual[0] is None else network_to_text(usual[0])
    for frontend, row in marks:
        if row.source != usual[0] and networks[row.source] < usual[1]:
            yield Finding(
                code="outside-network",
                message=(
                    f"new flows to {frontend} count as the cluster's own if they come from "
                    f"{row.source_text}, those to other ClusterIPs if from {others}: which flows "
                    "are masqueraded differs by Service"
                ),
                line=row.line,
            )
    for frontend in frontends:
        # Up to 1.23, if the frontend leads straight to the endpoints of the whole cluster.
        straight = (frontend.target or "").startswith("KUBE-SVC-")
        if frontend.kind != "ClusterIP" and straight and _mark_of(frontend, marked) is None:
            yield Finding(
                code="no-outside-mark",
                message=(
                    f"new flows to {frontend} are not marked for masquerading: the reply of an "
                    "endpoint on another node bypasses this one, and the client does not "
                    "recognise it"
                ),
                line=frontend.line,
            )


def _mark_of(frontend: ChainRule, marked: dict[FrontendKey, list[ChainRule]]) -> ChainRule | None:
    """Return the rule that marks flows to a frontend before they are sent on."""
    for row in marked.get(frontend.frontend_key, []):
        if row.chain == frontend.target or (
            row.chain == frontend.chain and row.line < frontend.line
        ):
            return row
    return None


def _everything(facts: DumpFacts) -> Iterator[Finding]:
    for chain in (names.SERVICES, names.NODE_PORTS):
        for row in facts.rows(chain):
            if row.target == names.MARK_MASQUERADE and row.is_unconditional:
                yield Finding(
                    code="unconditional-mark",
                    message=(
                        f"{chain} marks every new flow for masquerading, even from pod to pod: "
                        "endpoints see the node as the client"
                    ),
                    line=row.line,
                )


def _of_chains(facts: DumpFacts) -> Iterator[Finding]:
    """Find external traffic sent to the whole cluster without a mark, or to this node with one."""
    for chain in facts.chains("KUBE-EXT-", "KUBE-FW-"):
        marked = False
        local = [row for row in facts.rows(chain) if (row.target or "").startswith("KUBE-SVL-")]
        marks = [
            row
            for row in facts.rows(chain)
            if row.target == names.MARK_MASQUERADE and row.is_unconditional
        ]
        if local and marks:
            places = facts.frontends_of(chain)
            to = listed(places) if places else chain
            yield Finding(
                code="unconditional-mark",
                message=(
                    f"new flows from outside to {to} are masqueraded, although the policy is "
                    "Local: endpoints see the node instead of the client"
                ),
                line=marks[0].line,
            )
        for row in facts.rows(chain):
            if row.target == names.MARK_MASQUERADE and row.is_unconditional:
                marked = True
            to_all = (row.target or "").startswith("KUBE-SVC-")
            if row.is_jump and to_all and row.is_unconditional and not marked:
                places = facts.frontends_of(chain)
                to = listed(places) if places else chain
                yield Finding(
                    code="no-outside-mark",
                    message=(
                        f"new flows from outside to {to} are not marked for masquerading: the "
                        "reply of an endpoint on another node bypasses this one, and the client "
                        "does not recognise it"
                    ),
                    line=row.line,
                )
