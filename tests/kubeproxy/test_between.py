"""What others do to a flow behind its DNAT, and what is then answered about its source."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.view import Source
from analyzer.model.cluster import Cluster
from analyzer.model.endings import EndKind
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers import iptables_save, nft_text
from tests.support.captures import FIXTURES
from tests.support.dumps import masquerade_from

NODE = ip_address("172.16.0.1")
DUMP = """\
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SVC-A - [0:0]
:KUBE-SEP-1 - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE
-A KUBE-SEP-1 -s 10.0.0.1/32 -m comment --comment "ns/a:http" -j KUBE-MARK-MASQ
-A KUBE-SEP-1 -p tcp -m comment --comment "ns/a:http" -m tcp -j DNAT --to-destination 10.0.0.1:80
-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "ns/a:http cluster IP" \
-m tcp --dport 80 -j KUBE-SVC-A
-A KUBE-SVC-A ! -s 10.0.0.0/8 -d 10.96.0.1/32 -p tcp -m comment --comment "ns/a:http cluster IP" \
-m tcp --dport 80 -j KUBE-MARK-MASQ
-A KUBE-SVC-A -m comment --comment "ns/a:http -> 10.0.0.1:80" -j KUBE-SEP-1
COMMIT
"""


def external(text: str, *beside: str, plainly: bool = True) -> set[bool | None]:
    """Return whether flows from outside are masqueraded."""
    view = Recogniser(
        iptables_save.parse(text, "dump"),
        Cluster(),
        node_addresses=(NODE,),
        plainly=plainly,
        others=[nft_text.parse(each, "beside") for each in beside],
    ).view()
    return masquerade_from(view, Source.EXTERNAL)


def chain(head: str, *rules: str) -> str:
    body = "".join(f"\t\t{rule}\n" for rule in rules)
    return f"table inet x {{\n\tchain c {{\n\t\ttype {head}; policy accept;\n{body}\t}}\n}}\n"


@pytest.mark.parametrize(
    ("beside", "masquerade"),
    [
        (chain("filter hook prerouting priority 0", "meta mark set 0"), False),
        (chain("filter hook prerouting priority 0", "meta mark set meta mark | 0x1"), True),
        (chain("filter hook forward priority 0", "jump gone"), None),
        (chain("filter hook input priority 0", "meta mark set 0"), True),
        (chain("filter hook postrouting priority 50", "meta mark set 0"), False),
    ],
)
def test_a_chain_behind_dnat_may_clear_the_mark(beside: str, masquerade: bool | None) -> None:
    assert external(DUMP, beside) == {masquerade}


def test_a_flow_mark_set_on_the_way_may_decide_about_masquerading() -> None:
    first = "-A POSTROUTING -m connmark --mark 0x1 -j ACCEPT\n-A POSTROUTING"
    text = DUMP.replace("-A POSTROUTING", first, 1)
    assert external(text) == {True}
    mangle = "*mangle\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j CONNMARK --set-xmark 0x1/0x1\nCOMMIT\n"
    assert external(text + mangle) == {False}


def test_a_source_written_on_the_way_may_decide_about_masquerading() -> None:
    first = "-A POSTROUTING -s 192.0.2.1/32 -j ACCEPT\n-A POSTROUTING"
    text = DUMP.replace("-A POSTROUTING", first, 1)
    writes = chain("filter hook forward priority 0", "ip saddr set 192.0.2.1")
    assert True in external(text)
    assert external(text, writes) == {False}


@pytest.mark.parametrize("plainly", [True, False])
@pytest.mark.parametrize(
    ("match", "masquerade"),
    [
        ("", {True}),
        ("-d 172.16.0.1/32 ", {True}),
        ("-d 172.16.0.2/32 ", {False}),
        ("-s 203.0.113.0/24 ", {True, False}),
    ],
)
def test_nat_in_input_gives_flows_to_the_node_itself_another_source(
    match: str, masquerade: set[bool], *, plainly: bool
) -> None:
    local = DUMP.replace("10.0.0.1", "172.16.0.1")
    assert external(local, plainly=plainly) == {False}
    rule = f"-A INPUT {match}-j SNAT --to-source 172.16.0.9\n"
    text = local.replace("-A OUTPUT", f"{rule}-A OUTPUT", 1)
    assert external(text, plainly=plainly) == masquerade
    elsewhere = DUMP.replace("-A OUTPUT", f"{rule}-A OUTPUT", 1)
    assert external(elsewhere, plainly=plainly) == {True}


@pytest.mark.parametrize("plainly", [True, False])
def test_nat_in_input_of_nft_is_asked_for_each_endpoint_of_the_node(*, plainly: bool) -> None:
    dump = FIXTURES / "1.36.2-nftables/two-node@worker1/nft-list-ruleset.txt"
    beside = chain("nat hook input priority 100", "tcp dport 6443 snat ip to 192.168.0.9")
    ruleset = nft_text.parse(dump.read_text() + beside, "dump")
    assert isinstance(ruleset, NftRuleset)
    alone = NftRecogniser(ruleset, Cluster(), node_addresses=(), plainly=plainly).view()
    ends = {s.endpoint for service in alone.services for r in service.routes for s in r.shares}
    own = tuple(sorted({end.address for end in ends}))
    view = NftRecogniser(ruleset, Cluster(), node_addresses=own, plainly=plainly).view()
    found = {
        (share.endpoint.port, share.masquerade)
        for service in view.services
        for route in service.routes
        if route.source is Source.EXTERNAL
        for share in route.shares
    }
    assert (6443, True) in found
    assert {masquerade for port, masquerade in found if port != 6443} == {False}
    assert (6443, False) not in found


@pytest.mark.parametrize("rule", ["ip daddr set 10.1.1.1", "tcp dport set 9999"])
def test_what_is_sent_elsewhere_behind_nat_does_not_reach_its_endpoint(rule: str) -> None:
    view = Recogniser(
        iptables_save.parse(DUMP, "dump"),
        Cluster(),
        node_addresses=(NODE,),
        others=[nft_text.parse(chain("filter hook forward priority 0", rule), "beside")],
    ).view()
    (service,) = view.services
    route = next(each for each in service.routes if each.source is Source.EXTERNAL)
    (share,) = route.shares
    ((ending, bounds),) = share.lost
    assert (ending.kind, float(bounds.lower), float(bounds.upper)) == (EndKind.UNKNOWN, 0, 1)
