"""Answers of every verb, of a dump that has a bit of everything.

They stand in one file, however long: a renderer is tested with an answer of each verb.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from ipaddress import IPv4Address, IPv4Network, ip_network
from typing import Any, Final

from analyzer.clients.callers import callers
from analyzer.clients.connectors import CONNECTORS
from analyzer.clients.operations import Connection, LookUp, Operation, predicted_operation
from analyzer.clients.resolvers import RESOLVERS
from analyzer.clients.responses import FlowResponse as ClientFate
from analyzer.clients.world import EntryNode, World
from analyzer.failure.agreement import judge
from analyzer.failure.loss import losses, service_loss
from analyzer.failure.loss_at_nodes import worst_of
from analyzer.failure.models import Dead, dead
from analyzer.failure.reaching import lost_now
from analyzer.failure.thresholds import breaches
from analyzer.failure.whatif import WhatIfOptions, what_if
from analyzer.kubeproxy.absent import Absent
from analyzer.kubeproxy.diff.difference import difference
from analyzer.kubeproxy.diff.dumps import Dump
from analyzer.kubeproxy.diff.side import DumpSide
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.kubeproxy.view import Source, View
from analyzer.model.addresses import address_from_text
from analyzer.model.cluster import Cluster, Placement
from analyzer.model.flow_trace import FlowTrace
from analyzer.model.measurement import ClientExit, ClientTrial, EndpointCount, Measurement
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, Bounds, Dyadic
from analyzer.model.resolv_conf import ResolvConf
from analyzer.model.services import ApiEndpoint, ApiServicePort
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.model.workloads import Workloads
from analyzer.outage.api_servers import ApiProcess
from analyzer.outage.components import COMPONENTS
from analyzer.outage.control_plane import ControlPlaneTopology, Etcd, LoadBalancer
from analyzer.outage.scenario import OutageOptions as ScenarioAsked
from analyzer.outage.scenario import scenario
from analyzer.outage.timeline import play
from analyzer.parsers.iptables_save import parse
from analyzer.reports.answers import (
    LossAnswer,
    LossNode,
    LossNodesAnswer,
    ServicesAnswer,
    TimelineAnswer,
    TraceAnswer,
    TreeAnswer,
    WhatIfAnswer,
)
from analyzer.reports.client_answer import ClientAnswer
from analyzer.reports.cluster_sql_answer import SqlAnswer
from analyzer.reports.diff_answer import DiffAnswer
from analyzer.reports.document import Document
from analyzer.reports.lab_answers import (
    ClientsAnswer,
    LabAnswer,
    LabRepairAnswer,
    LeftOut,
    RepairCheck,
    RepairedRoute,
)
from analyzer.reports.renderers import renderer
from analyzer.reports.unstyled import render_unstyled
from tests.support.cluster_answers import build_answer, course_answer, drift_answer
from tests.support.dumps import chance, cluster_ip, dump, endpoint
from tests.support.flows import flows_answer
from tests.support.gate_answers import gate_answer
from tests.support.pcap_answer import PCAP
from tests.support.phases_answer import PHASES
from tests.support.predicted_answers import advise_answer, loss_cluster_answer
from tests.support.repairs import repair_answer

#: A match nobody reads, session affinity, a NodePort of its own, and a refusal.
RICH = dump(
    cluster_ip("ns/a:http"),
    "-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS",
    '-A KUBE-NODEPORTS -p tcp -m comment --comment "ns/a:http" -m tcp --dport 30080 -j KUBE-EXT-A',
    "-A KUBE-EXT-A -j KUBE-SEP-1",
    "-A KUBE-SVC-A -m recent --rcheck --seconds 600 --reap --name KUBE-SEP-1 "
    "--mask 255.255.255.255 --rsource -j KUBE-SEP-1",
    chance("0.50000000000", "KUBE-SEP-1", match="-m nonesuch --of src"),
    "-A KUBE-SVC-A -j KUBE-SEP-2",
    endpoint("KUBE-SEP-1", "10.0.0.1:80"),
    endpoint("KUBE-SEP-2", "10.0.0.2:80"),
    "-A POSTROUTING -j KUBE-POSTROUTING",
    "-A KUBE-POSTROUTING -j MASQUERADE",
)
RICH += """\
*filter
:KUBE-SERVICES - [0:0]
-A KUBE-SERVICES -d 10.96.0.9/32 -p udp -m comment --comment "ns/empty:dns has no endpoints" \
-m udp --dport 53 -j REJECT
COMMIT
"""

#: The same where others drop and keep from nat what is sent there.
LOSSY: Final = (
    RICH.replace("*filter\n", "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -d 10.0.0.2/32 -j DROP\n")
    + """\
*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -d 10.96.0.1/32 -m statistic --mode random --probability 0.5 -j NOTRACK
COMMIT
"""
)

#: Flows from several networks that no rule distinguishes: to one endpoint alone, or dropped.
BLOCKED: Final = (
    dump(
        cluster_ip("ns/a:http"),
        "-A KUBE-SVC-A ! -s 10.0.0.0/8 -d 10.96.0.1/32 -p tcp "
        '-m comment --comment "ns/a:http cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ',
        "-A KUBE-SVC-A -m iprange --src-range 198.51.100.1-198.51.100.126 -j KUBE-SEP-1",
        chance("0.50000000000", "KUBE-SEP-1"),
        "-A KUBE-SVC-A -j KUBE-SEP-2",
        "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
        "-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE",
        endpoint("KUBE-SEP-1", "10.0.0.1:80"),
        endpoint("KUBE-SEP-2", "10.0.0.2:80"),
    )
    + """\
*filter
:FORWARD ACCEPT [0:0]
-A FORWARD -m iprange --src-range 203.0.113.1-203.0.113.126 -j DROP
COMMIT
"""
)

#: What a reader knows all of, and what became of it: of everything something has changed.
BEFORE = dump(
    cluster_ip("ns/a:http"),
    cluster_ip("ns/gone:http", "10.96.0.5", chain="KUBE-SVC-G"),
    "-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS",
    '-A KUBE-NODEPORTS -p tcp -m comment --comment "ns/a:http" -m tcp --dport 30080 -j KUBE-EXT-A',
    "-A KUBE-EXT-A -s 10.0.0.0/8 -j KUBE-SVC-A",
    "-A KUBE-EXT-A -j KUBE-SEP-1",
    chance("0.50000000000", "KUBE-SEP-1"),
    "-A KUBE-SVC-A -j KUBE-SEP-2",
    "-A KUBE-SVC-G -j KUBE-SEP-1",
    endpoint("KUBE-SEP-1", "10.0.0.1:80"),
    endpoint("KUBE-SEP-2", "10.0.0.2:80"),
    *(f"-A POSTROUTING -s 10.0.0.{at}/32 -d 10.0.0.{at}/32 -j MASQUERADE" for at in (1, 2)),
)
AFTER = dump(
    cluster_ip("ns/a:http"),
    cluster_ip("ns/a:http", "10.96.0.6", chain="KUBE-SVC-A").replace("cluster IP", "external IP"),
    "-A KUBE-SERVICES ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS",
    '-A KUBE-NODEPORTS -p tcp -m comment --comment "ns/a:http" -m tcp --dport 30080 -j KUBE-EXT-A',
    "-A KUBE-EXT-A -j KUBE-MARK-MASQ",
    "-A KUBE-EXT-A -s 198.51.100.0/24 -j KUBE-SVC-A",
    "-A KUBE-EXT-A -s 10.0.0.0/8 -j KUBE-SEP-1",
    "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
    "-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE",
    "-A KUBE-SVC-A -m recent --rcheck --seconds 600 --reap --name KUBE-SEP-1 "
    "--mask 255.255.255.255 --rsource -j KUBE-SEP-1",
    chance("0.25000000000", "KUBE-SEP-1"),
    chance("0.50000000000", "KUBE-SEP-3", match="-m nonesuch --of src"),
    "-A KUBE-SVC-A -j KUBE-SEP-2",
    endpoint("KUBE-SEP-1", "10.0.0.1:80"),
    endpoint("KUBE-SEP-2", "10.0.0.2:80"),
    endpoint("KUBE-SEP-3", "10.0.0.3:80"),
)

#: Where the endpoints of these dumps are.
PLACED = Cluster(
    placements={
        IPv4Address(f"10.0.0.{number}"): Placement(node, zone)
        for number, node, zone in ((1, "n1", "a"), (2, "n2", "b"), (3, "n2", "b"))
    },
)
#: A control plane on a node of them, with a word for each thing that may be said of it.
STACKED = ControlPlaneTopology(
    api=("n1",),
    etcd=Etcd.NODES,
    members=("n1",),
    controllers=("n1",),
    schedulers=("n1",),
    load_balancer=LoadBalancer.NODES,
    balancers=("n2",),
    assumed=("nothing",),
)
HALF = Bounds(Dyadic.of(1, 1), Dyadic.of(1, 1))


#: What the API says of the Service that the dump has.
SPEC = ApiServicePort(
    name="ns/a:http",
    protocol="tcp",
    frontends=(("ClusterIP", IPv4Address("10.96.0.1"), 80),),
    endpoints=(
        ApiEndpoint(
            address=IPv4Address("10.0.0.1"),
            port=80,
            spellings=("10.0.0.1",),
            node="n1",
            zones=frozenset({"a"}),
        ),
    ),
    external_local=True,
)


@cache
def _recognised(text: str) -> tuple[Recogniser, View]:
    """Return what is recognised in one of the few dumps: nothing changes a view."""
    recogniser = Recogniser(parse(text, "dump.txt"), Cluster())
    return recogniser, recogniser.view()


@dataclass(frozen=True)
class Answers:
    """Of all verbs, for one dump."""

    text: str = RICH
    dead: Collection[str] = ("10.0.0.1",)

    def of(self, verb: str) -> object:
        recogniser, view = _recognised(self.text)
        died = dead(view, Cluster(), endpoints=self.dead)
        match verb:
            case "services":
                return ServicesAnswer(
                    ruleset=parse(self.text, "dump.txt"),
                    cluster=Cluster(),
                    view=view,
                    services=view.services,
                    diagnostics=view.diagnostics,
                    specs={SPEC.key: SPEC},
                )
            case "tree":
                return TreeAnswer(
                    cluster=Cluster(),
                    view=view,
                    dead=died,
                    trees=tuple(
                        (service, route, recogniser.tree(service, route))
                        for service in view.services
                        for route in service.routes
                        if route.source is not Source.HAIRPIN
                    ),
                    diagnostics=view.diagnostics,
                )
            case "trace":
                packet = Packet(
                    protocol="tcp",
                    source=address_from_text("10.0.0.1"),
                    destination=address_from_text("10.96.0.1"),
                    destination_port=80,
                )
                found = trace([parse(self.text, "dump.txt")], Question(packet=packet), "ip")
                return TraceAnswer(
                    cluster=Cluster(),
                    node=None,
                    packet=packet,
                    state="NEW",
                    tree=found.tree,
                    ends=found.ends,
                    assumptions=found.assumptions,
                    diagnostics=view.diagnostics,
                )
            case "loss":
                return LossAnswer(
                    cluster=Cluster(),
                    view=view,
                    dead=died,
                    losses=losses(view.services, died),
                    absent=Absent(),
                    diagnostics=view.diagnostics,
                )
            case "loss-nodes":
                return loss_nodes_answer(self.text, self.dead)
            case "loss-cluster":
                return loss_cluster_answer(self.text, self.dead)
            case "whatif":
                return whatif_answer(self.text)
            case "timeline":
                return timeline_answer(self.text)
            case "advise":
                return advise_answer(self.text)
            case "gate":
                return gate_answer(self.text)
            case "client":
                return client_answer(self.text)
            case "suspects" | "pinned":
                return flows_answer(verb, view, died)
            case "repair":
                return repair_answer(parse(self.text, "dump.txt"), view, died)
            case "cluster build":
                return build_answer(self.text)
            case "cluster drift":
                return drift_answer(self.text)
            case "cluster timeline":
                return course_answer(self.text)
            case "cluster sql":
                return SqlAnswer(("name", "share"), (("ns/a", 0.5), (self.text[:40], None)))
            case "whatif --components":
                return COMPONENTS
            case "diff":
                return diff_answer(BEFORE, self.text if self.text != RICH else AFTER)
            case "lab run" | "lab judge" | "lab verify":
                return replace(LAB, diagnostics=view.diagnostics)
            case "lab run --for":
                return replace(PHASES, diagnostics=view.diagnostics)
            case "lab run --pcap":
                return replace(PCAP, diagnostics=view.diagnostics)
            case "lab repair":
                return replace(LAB_REPAIR, diagnostics=view.diagnostics)
            case "lab clients":
                return ClientsAnswer(
                    dead="node master",
                    node="worker1",
                    trials=(TRIAL, replace(TRIAL, succeeds=None)),
                    left_out=LAB.left_out,
                    rate=1e-6,
                    diagnostics=view.diagnostics,
                )
            case _:
                raise AssertionError(verb)

    def json(self, verb: str) -> str:
        rendered = renderer(verb, "json")(self.of(verb))
        assert isinstance(rendered, Iterator)
        return "".join(rendered)

    def plain(self, verb: str) -> str:
        rendered = renderer(verb, "text")(self.of(verb))
        assert isinstance(rendered, Document)
        return render_unstyled(rendered)


def loss_nodes_answer(text: str, died: Collection[str]) -> LossNodesAnswer:
    """Return an answer of four nodes: one is unlike, one is dead, one shows no Services."""
    texts = {"n1": text, "n2": text.replace("0.50000000000", "0.25000000000"), "n3": text}
    views = {name: Recogniser(parse(text, name), Cluster()).view() for name, text in texts.items()}
    dying = dead(views["n1"], Cluster(), endpoints=died)
    answers = {
        name: LossAnswer(
            cluster=Cluster(),
            view=view,
            dead=dying,
            losses=losses(view.services[: 1 if name == "n2" else None], dying),
            absent=Absent(),
            diagnostics=view.diagnostics,
            place=name,
        )
        for name, view in views.items()
    }
    nodes = [
        LossNode(name=name, node=name, files=(f"{name}.txt",), is_dead=name == "n3", answer=answer)
        for name, answer in answers.items()
    ]
    unjudged = LossNode(
        name="x", node=None, files=("x.txt",), is_dead=False, answer=None, why="no Service to judge"
    )
    return LossNodesAnswer(
        nodes=(*nodes, unjudged),
        worst=worst_of({name: answers[name].losses for name in ("n1", "n2")}),
        dead=dying,
        cluster=Cluster(),
        diagnostics=views["n1"].diagnostics,
    )


def whatif_answer(
    text: str, cluster: Cluster = PLACED, asked: WhatIfOptions | None = None, **more: Any
) -> WhatIfAnswer:
    """Return what failures cost, of a dump whose endpoints are on n1 and n2."""
    view = Recogniser(parse(text, "dump.txt"), cluster).view()
    found = what_if(
        view.services, cluster, asked or WhatIfOptions(node="n1", control_plane=("n1",))
    )
    thresholds = {"max_loss": Fraction(1, 4), "min_survives": 1} | more
    first = view.services[0]
    died = Dead(endpoints=frozenset(first.endpoints[:1]))
    return WhatIfAnswer(
        topology=STACKED,
        api_processes=tuple(
            ApiProcess(each, "n1", service_loss(first, died)) for each in died.endpoints
        ),
        cluster=cluster,
        view=view,
        found=found,
        absent=Absent(),
        diagnostics=view.diagnostics,
        breaches=tuple(
            breaches(
                found,
                max_loss=thresholds["max_loss"],
                min_survives=thresholds["min_survives"],
            )
        ),
        lost_now={
            at: lost
            for at, service in enumerate(view.services)
            if (lost := lost_now([service])) is not Ternary.FALSE
        },
        **thresholds,
    )


def timeline_answer(text: str, cluster: Cluster = PLACED) -> TimelineAnswer:
    """Return an outage of n1, which has the control plane, of a dump with endpoints on n1 and n2.

    The API is back after a quarter of an hour.
    """
    view = Recogniser(parse(text, "dump.txt"), cluster).view()
    died = dead(view, cluster, nodes=("n1",), zones=("a",))
    asked = ScenarioAsked(said={}, api_back=Fraction(900))
    found = scenario(asked, died, view.services, cluster, STACKED, Workloads())
    return TimelineAnswer(
        cluster=cluster,
        view=view,
        scenario=found,
        played=play(view.services, found.died, found.causes.fates, {}, Fraction(3600)),
        services=view.services,
        absent=Absent(),
        diagnostics=view.diagnostics,
        until=Fraction(3600),
        rate=Fraction(200),
        slo=Fraction(999, 1000),
        slo_window=Fraction(30 * 86400),
    )


def tree_answer(text: str, *died: str) -> TreeAnswer:
    """Return the tree from a pod to the ClusterIP of a dump's one Service.

    10.0.0.1 is on worker1.
    """
    cluster = Cluster().with_networks([(ip_network("10.0.0.1/32"), "worker1")])
    recogniser = Recogniser(parse(text, "dump.txt"), cluster)
    view = recogniser.view()
    (service,) = view.services
    (route,) = [r for r in service.routes if r.source is Source.POD]
    return TreeAnswer(
        cluster=cluster,
        view=view,
        dead=dead(view, cluster, endpoints=died),
        trees=((service, route, recogniser.tree(service, route)),),
        diagnostics=(),
    )


def diff_answer(a: str, b: str, *, every: bool = False) -> DiffAnswer:
    """Return what differs between two dumps of one node."""
    own = (IPv4Address("192.0.2.1"), IPv4Address("192.0.2.2"))
    rulesets = parse(a, "a.txt"), parse(b, "b.txt")
    sides, dumps = [], []
    for ruleset in rulesets:
        recogniser = Recogniser(ruleset, Cluster(), node_addresses=own)
        view = recogniser.view()
        sides.append(
            DumpSide(
                (ruleset,), view, Cluster(), version=4, sources=recogniser.source_address, own=own
            )
        )
        dumps.append(Dump(ruleset.file, view, (4,)))
    return DiffAnswer(
        a=dumps[0],
        b=dumps[1],
        rulesets=rulesets,
        versions=(4,),
        cluster=Cluster(),
        difference=difference({4: (sides[0], sides[1])}),
        diagnostics=(*dumps[0].view.diagnostics, *dumps[1].view.diagnostics),
        every=every,
    )


def counted(
    address: str,
    landed: int,
    *,
    dead: bool = False,
    predicted: Bounds = HALF,
    counter: int | None = -1,
    answered: int = -1,
) -> EndpointCount:
    """Return an endpoint's count; the counter and the answers fit unless they are given."""
    fitting = 0 if dead else landed
    return EndpointCount(
        address=address,
        port=53,
        node="master" if dead else "worker1",
        dead=dead,
        predicted=predicted,
        landed=landed,
        counted=landed if counter == -1 else counter,
        answered=fitting if answered == -1 else answered,
        refused=0,
    )


def measured(
    *endpoints: EndpointCount, passed: int = 0, duplicates: int = 0, dropped: int = 0
) -> Measurement:
    """Return a measurement of 10,000 flows."""
    return Measurement(
        service="kube-system/kube-dns:dns",
        protocol="udp",
        frontend="10.2.3.4:53",
        source="pod",
        node="worker1",
        flows=10_000,
        endpoints=endpoints,
        passed=passed,
        duplicates=duplicates,
        dropped_by_capture=dropped,
        seconds=1.5,
        kernel="6.18",
        backend="legacy",
    )


#: Of a right measurement.
DEAD, ALIVE = counted("10.1.0.1", 5_021, dead=True), counted("10.1.0.2", 4_979)
#: Of a frontend all of whose flows a rule drops.
ENDED = replace(
    measured(), ended=Bounds(ALWAYS, ALWAYS), ended_by=((10_000, "-A KUBE-FIREWALL -j DROP"),)
)
ONE = Bounds(ALWAYS, ALWAYS)
LAB = LabAnswer(
    dead="node master",
    verdicts=(judge(measured(DEAD, ALIVE)), judge(ENDED)),
    routes=2,
    traces=(
        FlowTrace(
            service="kube-system/kube-dns:dns",
            source="pod",
            flow="10.244.1.254:1024 to 10.2.3.4:53",
            matched=("nat: -A PREROUTING -j KUBE-SERVICES",),
            differs=None,
        ),
    ),
    left_out=(
        LeftOut(
            service="default/sctp",
            protocol="sctp",
            frontend="10.2.3.5:9",
            source="pod",
            reason="the lab builds no packets of sctp",
        ),
    ),
    resolution=0.05,
    rate=1e-6,
)
#: One whose undo left something behind.
LAB_REPAIR = LabRepairAnswer(
    dead="node master",
    node="worker1",
    routes=(
        RepairedRoute(
            before=judge(replace(measured(DEAD, ALIVE), ended_by=ENDED.ended_by)),
            after=judge(measured(replace(ALIVE, predicted=ONE, landed=10_000, counted=10_000))),
            synced=judge(measured(replace(ALIVE, landed=9_999), passed=1)),
        ),
    ),
    checks=(RepairCheck("the undo leaves the rules byte for byte as they were", False),),
    left_out=LAB.left_out,
    rate=1e-6,
)
TRIAL = ClientTrial(
    command="dig +tries=1",
    target="10.2.3.4:53",
    family="ip",
    runs=60,
    succeeded=28,
    succeeds=HALF,
    failure_seconds=(5.0, 5.1),
    failure_takes=(5.0, 5.0),
    exits=(
        ClientExit(status=0, runs=28, says="10.1.0.1", seconds=(0.01, 0.02, 0.5)),
        ClientExit(status=9, runs=32, says="", seconds=(5.0, 5.0, 5.1)),
    ),
)


def client_answer(text: str, cluster: Cluster = PLACED) -> ClientAnswer:
    """Return what clients see where n1 is dead, of a dump with endpoints on n1 and n2."""
    view = Recogniser(parse(text, "dump.txt"), cluster).view()
    died = dead(view, cluster, nodes=("n1",))
    world = World(
        entries=(EntryNode(node="n2", chance=Fraction(1), view=view),),
        dead=died,
        fate_of=lambda _: ClientFate.SILENT,
        source=Source.POD,
    )
    conf = ResolvConf(
        nameservers=(IPv4Address("192.0.2.53"),), search=("a.example",), others=("x",)
    )
    operations: list[Operation] = [
        Connection(connector=CONNECTORS["tcp"], service=each, frontend=world.route(each).frontend)
        for each in world.services()
    ]
    operations.append(
        LookUp(resolver=RESOLVERS["glibc"], conf=conf, name="a", exists=lambda name: name == "a")
    )
    return ClientAnswer(
        view=view,
        cluster=cluster,
        dead=died,
        fates=(("n1", "silent"),),
        source=Source.POD,
        balanced=(("n2", Fraction(1)),),
        found=tuple(predicted_operation(each, world) for each in operations),
        callers=callers({"ns/a": "n1", "ns/b": "n2", "ns/c": None}, died, cluster),
        assumed=("nothing else",),
        absent=Absent(),
        diagnostics=view.diagnostics,
        max_failure=Fraction(1, 2),
        every=True,
        client=IPv4Address("10.244.1.77"),
        singled_out=(("ns/a:http", (IPv4Network("10.244.1.0/24"), IPv4Network("10.0.0.1/32"))),),
    )
