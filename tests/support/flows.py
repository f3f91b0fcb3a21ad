"""Entries of conntrack, made of draws, and answers about them."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from ipaddress import ip_address

from analyzer.failure.models import Dead
from analyzer.failure.pinned import pinned
from analyzer.failure.reached import Connectivity
from analyzer.failure.suspects import suspects
from analyzer.failure.tracked import FlowServices
from analyzer.kubeproxy.view import Endpoint, View
from analyzer.model.cluster import Cluster
from analyzer.model.conntrack import Tracked
from analyzer.reports.flow_answers import PinnedAnswer, SuspectsAnswer


def entry(
    number: int,
    to: Endpoint,
    *,
    replied: bool,
    vip: str = "10.96.0.1",
    port: int = 80,
    state: str | None = None,
    source: str = "10.0.9.9",
) -> Tracked:
    """Return a flow of TCP to a Service, which DNAT has sent to an endpoint."""
    assert to.port is not None
    return Tracked(
        protocol="tcp",
        seconds=119,
        state=state or ("SYN_RECV" if replied else "SYN_SENT"),
        source=ip_address(source),
        source_port=1024 + number,
        destination=ip_address(vip),
        destination_port=port,
        reply_source=to.address,
        reply_source_port=to.port,
        replied=replied,
    )


def drawn(
    chance: random.Random,
    flows: int,
    shares: Mapping[Endpoint, float],
    dead: Collection[Endpoint],
    answering: float = 1.0,
) -> list[Tracked]:
    """Return so many flows as the rules draw them; the living answer this often."""
    ends = chance.choices([*shares], [*shares.values()], k=flows)
    return [
        entry(number, end, replied=end not in dead and chance.random() < answering)
        for number, end in enumerate(ends)
    ]


def flows_answer(verb: str, view: View, dead: Dead) -> SuspectsAnswer | PinnedAnswer:
    """Return an answer with a row of each kind, of a dump with endpoints 10.0.0.1 and 10.0.0.2."""
    one, two = (Endpoint(ip_address(f"10.0.0.{at}"), 80) for at in (1, 2))
    gone = Endpoint(ip_address("10.0.0.77"), 80)
    flows = [entry(at, one, replied=False, source=f"10.0.9.{at + 1}") for at in range(40)]
    flows += [entry(50 + at, two, replied=True, source=f"10.0.8.{at + 1}") for at in range(40)]
    flows += [entry(99, gone, replied=False)]
    owned = tuple(FlowServices(view.services, ()).owned(flows))
    if verb == "pinned":
        return PinnedAnswer(
            cluster=Cluster(),
            view=view,
            dead=dead,
            flows=len(flows),
            owned=len(owned),
            pinned=pinned(owned, dead.endpoints, {two: "other/pod"}),
            foreign={two: "other/pod"},
            diagnostics=view.diagnostics,
        )
    return SuspectsAnswer(
        cluster=Cluster(),
        view=view,
        flows=len(flows),
        owned=len(owned),
        suspects=suspects(owned, 0.001, Connectivity({one.address}), {("tcp", one): 40}),
        rate=0.001,
        proposal="kubeodds loss dump.txt --dead 10.0.0.1:80",
        diagnostics=view.diagnostics,
    )
