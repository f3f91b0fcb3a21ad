"""Flows that rules behind nat do not tell apart by their ends share one answer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

import pytest

from analyzer.kubeproxy.asked_behind_nat import BehindNat
from analyzer.model.addresses import address_from_text
from analyzer.model.packet import Mark, Packet
from analyzer.model.ternary import Ternary
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.situation import Situation
from tests.support.shapes import CLUSTER_IP, dump, endpoint, service
from tests.support.steps import view

OWN = address_from_text("192.168.0.1")
ADDRESSES = ("10.244.0.7", "10.244.1.9", "203.0.113.9", "192.168.0.1", "127.0.0.1", "224.0.0.1")


def iptables(*rows: str, table: str = "nat") -> Rules:
    return read_ruleset(dump(rows, table).encode(), "dump")


def nft(*rules: str, hook: str = "postrouting", sets: str = "") -> Rules:
    text = "\n".join(rules)
    return read_ruleset(
        f"table ip nat {{\n{sets}\nchain c {{ return; }}\nchain post {{\ntype nat hook {hook} "
        f"priority srcnat; policy accept;\n{text}\n}}\n}}\n".encode(),
        "dump",
    )


def situations() -> tuple[Situation, Situation]:
    assert OWN is not None
    return Situation(), Situation(local_addresses=frozenset({OWN}))


def packets() -> list[Packet]:
    """Return flows to each of some places from each of some, and with each of some marks."""
    ends = [
        (address_from_text(source), address_from_text(to), port, mark)
        for source, to in [*product(ADDRESSES[:1], ADDRESSES), *product(ADDRESSES, ADDRESSES[:2])]
        for port in (80, 8080)
        for mark in (Mark(), Mark(0x4000), Mark(0, 0x4000))
    ]
    return [
        Packet(
            protocol="tcp",
            source=source,
            destination=to,
            destination_port=port,
            mark=mark,
            translated=True,
        )
        for source, to, port, mark in dict.fromkeys(ends)
    ]


def iptables_service(endpoints: int) -> str:
    """A piece of a dump with an unknown rule, so that it is walked."""
    return service(endpoints, before=["-A PREROUTING -m set --match-set s src -j ACCEPT"])


def nft_service(endpoints: int) -> str:
    """A piece of what kube-proxy writes in nftables mode."""
    ends = [endpoint(at) for at in range(endpoints)]
    numbers = ", ".join(f"{at} : {end} . 8080" for at, end in enumerate(ends))
    back = ", ".join(f"{end} . {end} . tcp . 8080" for end in ends)
    key = "ipv4_addr . ipv4_addr . inet_proto . inet_service"
    return f"""table ip kube-proxy {{
    set hairpin-connections {{
        type {key}
        elements = {{ {back} }}
    }}
    map service-ips {{
        type ipv4_addr . inet_proto . inet_service : verdict
        elements = {{ {CLUSTER_IP} . tcp . 80 : goto service-1 }}
    }}
    chain nat-prerouting {{
        type nat hook prerouting priority dstnat; policy accept;
        ip daddr . meta l4proto . th dport vmap @service-ips
    }}
    chain nat-postrouting {{
        type nat hook postrouting priority srcnat; policy accept;
        meta mark & 0x4000 != 0 masquerade
        ct status dnat ip saddr . ip daddr . meta l4proto . th dport @hairpin-connections masquerade
    }}
    chain service-1 {{
        meta l4proto tcp dnat ip to numgen random mod {endpoints} map {{ {numbers} }}
    }}
    chain last {{
"""


POST = "-A POSTROUTING"
MASQUERADE = "-j MASQUERADE"
RULES = {
    "kube-proxy's": iptables(
        f"{POST} -j KUBE-POSTROUTING",
        "-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
        f"-A KUBE-POSTROUTING {MASQUERADE}",
    ),
    "a network": iptables(f"{POST} -s 10.244.0.0/16 ! -d 10.244.0.0/16 {MASQUERADE}"),
    "a network in mangle": iptables(f"{POST} -d 10.244.1.0/24 -j DROP", table="mangle"),
    "a port": iptables(f"{POST} -p tcp -m tcp --dport 80 {MASQUERADE}"),
    "ports": iptables(f"{POST} -p tcp -m multiport --dports 80,443 {MASQUERADE}"),
    "a range": iptables(f"{POST} -m iprange --dst-range 10.244.0.0-10.244.0.9 {MASQUERADE}"),
    "a type": iptables(f"{POST} -m addrtype --dst-type MULTICAST {MASQUERADE}"),
    "of the node": iptables(f"{POST} -m addrtype ! --dst-type LOCAL {MASQUERADE}"),
    "sources": iptables(
        f"{POST} -s 10.244.1.9/32 -j RETURN",
        f"{POST} -m addrtype --src-type LOCAL -j RETURN",
        f"{POST} {MASQUERADE}",
    ),
    "a range of sources": iptables(
        f"{POST} -m iprange --src-range 10.244.0.0-10.244.0.9 {MASQUERADE}"
    ),
    "types of sources": iptables(f"{POST} -m addrtype --src-type MULTICAST,LOCAL {MASQUERADE}"),
    "a set": iptables(f"{POST} -m set --match-set s dst {MASQUERADE}"),
    "what is read by nobody": iptables(f"{POST} -m wild --card 1 {MASQUERADE}"),
    "a reply's source": iptables(f"{POST} -m conntrack --ctreplsrc 10.244.1.9 {MASQUERADE}"),
    "another DNAT": iptables(f"{POST} -j C", "-A C -j DNAT --to-destination 10.244.0.7:80"),
    "what stays": iptables(
        f"-A INPUT -d 192.168.0.1/32 {MASQUERADE}".replace("MASQUERADE", "SNAT")
        + " --to-source 10.0.0.1"
    ),
    "nft: kube-proxy's": nft("meta mark & 0x4000 == 0 return", "masquerade"),
    "nft: a network": nft("ip saddr 10.244.0.0/16 ip daddr != 10.244.0.0/16 masquerade"),
    "nft: some": nft("ip daddr { 10.244.0.7, 203.0.113.0/24 } masquerade"),
    "nft: a set": nft(
        "ip daddr @s masquerade",
        sets="set s { type ipv4_addr; flags interval; elements = { 10.244.0.0-10.244.0.9 } }",
    ),
    "nft: a set that fills": nft(
        "ip daddr @s masquerade", sets="set s { type ipv4_addr; flags dynamic; }"
    ),
    "nft: a set that is not there": nft("ip daddr @s masquerade"),
    "nft: a port": nft("tcp dport 80 masquerade"),
    "nft: address and port": nft("ip daddr . tcp dport { 10.244.0.7 . 80 } masquerade"),
    "nft: sources": nft(
        "ip saddr { 10.244.0.7, 203.0.113.0/24 } return",
        "fib saddr type local return",
        "masquerade",
    ),
    "nft: some bits of sources": nft("ip saddr & 0.0.0.1 == 0.0.0.1 masquerade"),
    "nft: a mark made of sources": nft(
        "meta mark set ip saddr & 0x4000", "meta mark 0x4000 masquerade"
    ),
    "nft: endpoints that come back": nft(
        "ip saddr . ip daddr @s masquerade",
        "ip saddr . ip daddr . th dport @t return",
        "masquerade",
        sets="set s { type ipv4_addr . ipv4_addr; elements = { 10.244.0.7 . 10.244.0.7 } }"
        "\nset t { type ipv4_addr . ipv4_addr . inet_service;"
        " elements = { 10.244.0.7 . 10.244.1.9 . 80 } }",
    ),
    "nft: marked addresses": nft(
        "meta mark set meta mark ^ 0x4000",
        "meta mark . ip daddr { 0x4000 . 10.244.0.7 } masquerade",
    ),
    "nft: where it leaves": nft('oifname "lo" ip daddr 127.0.0.1 masquerade'),
    "nft: some bits": nft("ip daddr & 0.0.0.1 == 0.0.0.1 masquerade"),
    "nft: some bytes": nft("@nh,128,32 0x0af40007 masquerade"),
    "nft: of the node": nft("fib daddr type local masquerade"),
    "nft: a map": nft("ip daddr vmap { 10.244.0.7 : accept, 10.244.1.9 : goto c }", "masquerade"),
    "nft: a mark made of it": nft("meta mark set ip daddr & 0x4000", "meta mark 0x4000 masquerade"),
    "nft: an address of a map": nft("snat to ip daddr map { 10.244.0.7 : 10.0.0.1 }"),
    "nft: what nft does not print": nft('xt match "set" masquerade', "masquerade"),
    "nft: what stays": nft("ip daddr 192.168.0.1 snat to 10.0.0.1", hook="input"),
    "nft: a cut one": read_ruleset(b"table ip nat {\nchain post {\ntype nat hook postro", "dump"),
}
#: How many kinds of flows these tell apart that go from 10.244.0.7 to itself and to 10.244.1.9, and
#: from there to both, marks aside.
KINDS = {
    "kube-proxy's": 1,
    "a network": 1,
    "a network in mangle": 2,
    "sources": 2,
    "a set": 1,
    "what is read by nobody": 1,
    "nft: kube-proxy's": 1,
    "nft: a network": 1,
    "nft: some": 2,
    "nft: sources": 2,
    "nft: what nft does not print": 1,
    "nft: a cut one": 1,
}


@pytest.mark.parametrize("name", RULES)
def test_alike_is_what_is_masqueraded_alike(name: str) -> None:
    rules = RULES[name]
    for situation in situations():
        hooks = Hooks([rules], "ip", situation)
        behind = BehindNat([rules], "ip", situation)
        found = [(behind.alike(each), hooks.masquerades(each)) for each in packets()]
        for (one, this), (other, that) in combinations(found, 2):
            assert one != other or this is that


@pytest.mark.parametrize("name", KINDS)
def test_flows_are_told_apart_by_what_is_asked_for_only(name: str) -> None:
    behind = BehindNat([RULES[name]], "ip", Situation())
    given = [p for p in packets() if {str(p.source), str(p.destination)} <= set(ADDRESSES[:2])]
    classes = {behind.alike(each) for each in given}
    assert len(classes) == KINDS[name] * len({each.mark for each in given})


def test_all_rulesets_of_a_node_are_asked() -> None:
    given = packets()[0]
    elsewhere = [address_from_text(text) for text in ("10.244.0.7", "10.244.1.9")]
    rules = [RULES["kube-proxy's"], RULES["nft: some"]]
    behind = BehindNat(rules, "ip", Situation())
    one, other = (behind.alike(Packet(source=given.source, destination=to)) for to in elsewhere)
    assert one != other


@pytest.mark.parametrize("shape", [iptables_service, nft_service])
def test_more_endpoints_are_not_walked_to_their_masquerade(
    shape: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    walked = []
    real = Hooks.masquerades

    def masquerades(hooks: Hooks, packet: Packet) -> Ternary:
        walked.append(packet)
        return real(hooks, packet)

    monkeypatch.setattr(Hooks, "masquerades", masquerades)
    assert len(view(shape(5)).services) == 1
    few, walked[:] = len(walked), []
    assert len(view(shape(20)).services) == 1
    assert len(walked) == few > 0
