from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Final

import pytest

from analyzer.errors import UsageError
from analyzer.kubeproxy.routes.trace import Question, trace, way
from analyzer.model.packet import UNKNOWN_MARK, Mark, Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.value import replace
from analyzer.parsers import nft_text
from analyzer.parsers.iptables_save import parse
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.fate import PacketEnd
from analyzer.semantics.tree import Leaf
from tests.support.dumps import at, cluster_ip, dump, endpoint, two_endpoints

CLIENT, SERVICE = ip_address("203.0.113.7"), ip_address("10.96.0.1")
HALF = Bounds(Dyadic.of(1, 1), Dyadic.of(1, 1))
TO_SERVICE: Final = Packet(
    protocol="tcp", source=CLIENT, destination=SERVICE, destination_port=80, in_interface="eth0"
)
DUMP: Final = parse(dump(*two_endpoints()), "dump")
RECENT = (
    "-m recent --rcheck --seconds 600 --reap --name {0} --mask 255.255.255.255 --rsource -j {0}"
)
STICKY: Final = parse(
    dump(
        cluster_ip(),
        f"-A KUBE-SVC-A {RECENT.format('KUBE-SEP-1')}",
        "-A KUBE-SVC-A -j KUBE-SEP-2",
        endpoint("KUBE-SEP-1", "10.0.0.1:80"),
        endpoint("KUBE-SEP-2", "10.0.0.2:80"),
    ),
    "dump",
)


def nft(*clients: str) -> Rules:
    elements = f"\t\telements = {{ {', '.join(clients)} }}\n" if clients else ""
    return nft_text.parse(
        "table ip kube-proxy {\n"
        f"\tset affinity-1 {{\n\t\ttype ipv4_addr\n\t\tflags dynamic,timeout\n{elements}\t}}\n"
        "\tchain endpoint-1 {\n\t\tupdate @affinity-1 { ip saddr }\n"
        "\t\tmeta l4proto tcp dnat to 10.0.0.1:80\n\t}\n"
        "\tchain services {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n"
        "\t\tip saddr @affinity-1 goto endpoint-1\n"
        "\t\tmeta l4proto tcp dnat to 10.0.0.2:80\n\t}\n}\n",
        "dump",
    )


def ends(*rulesets: Rules, packet: Packet = TO_SERVICE, **asked: Any) -> tuple[PacketEnd, ...]:
    return trace(rulesets, Question(packet=packet, **asked), "ip").ends


def shares(*rulesets: Rules, **asked: Any) -> dict[str, Bounds]:
    return {str(end.fate.address): end.probability for end in ends(*rulesets, **asked)}


def test_a_packet_to_a_service_ends_at_each_endpoint_with_its_share() -> None:
    assert shares(DUMP) == {"10.0.0.1": HALF, "10.0.0.2": HALF}
    assert {end.fate.kind for end in ends(DUMP)} == {"endpoint"}


def test_the_chains_that_it_comes_to_are_told_by_ruleset_and_table() -> None:
    found = trace([DUMP, nft()], Question(packet=TO_SERVICE), "ip")
    assert "KUBE-SVC-A" in found.visited[0]["nat"]
    assert len(found.visited) == 2
    assert found.tree == way([DUMP, nft()], Question(packet=TO_SERVICE), "ip")
    assert any("NEW to conntrack" in each for each in found.assumptions)


def test_session_affinity_of_iptables_holds_the_endpoint_that_is_said() -> None:
    always = Bounds(ALWAYS, ALWAYS)
    assert shares(STICKY) == {"10.0.0.2": always}
    assert shares(STICKY, affinity=at("10.0.0.1")) == {"10.0.0.1": always}


def test_session_affinity_of_nft_is_that_of_the_dump_unless_it_is_said() -> None:
    always = Bounds(ALWAYS, ALWAYS)
    assert shares(nft()) == {"10.0.0.2": always}
    assert shares(nft("198.51.100.1")) == {"10.0.0.2": always}
    assert shares(nft(str(CLIENT))) == {"10.0.0.1": always}
    assert shares(nft(), affinity=at("10.0.0.1")) == {"10.0.0.1": always}


def test_affinity_to_an_endpoint_of_no_service_is_refused() -> None:
    for ruleset in (STICKY, nft()):
        for nobody in (at("10.0.0.9"), at("10.0.0.1", 81)):
            with pytest.raises(UsageError, match=f"--affinity {nobody}"):
                ends(ruleset, affinity=nobody)


@pytest.mark.parametrize(
    ("packet", "why"),
    [
        (replace(TO_SERVICE, destination=ip_address("fd00::1")), "not an IPv4 address"),
        (replace(TO_SERVICE, source=ip_address("fd00::1")), "not an IPv4 address"),
        (replace(TO_SERVICE, destination=ip_address("127.0.0.1")), "--from-node"),
        (replace(TO_SERVICE, destination=ip_address("224.0.0.1")), "is not a unicast address"),
        (replace(TO_SERVICE, destination=ip_address("255.255.255.255")), "not a unicast"),
        (replace(TO_SERVICE, destination=ip_address("0.0.0.0")), "not a unicast"),  # noqa: S104  # no socket
    ],
)
def test_a_packet_that_no_rule_is_for_is_refused(packet: Packet, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        ends(DUMP, packet=packet)


def test_what_the_node_sends_to_loopback_is_followed() -> None:
    made_here = replace(TO_SERVICE, destination=ip_address("127.0.0.1"), in_interface="")
    assert [end.fate.kind for end in ends(DUMP, packet=made_here)] == ["local"]


def test_where_a_later_packet_ends_that_its_flow_translates_is_not_known() -> None:
    (end,) = ends(DUMP, state="ESTABLISHED")
    assert end.fate.kind == "unresolved"
    assert end.probability == Bounds(NEVER, ALWAYS)


def test_what_earlier_packets_left_on_the_flow_is_not_known() -> None:
    def flow_mark(state: str) -> Mark:
        text = "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j DROP\nCOMMIT\n"
        tree = way([parse(text, "dump")], Question(packet=TO_SERVICE, state=state), "ip")
        assert isinstance(tree, Leaf)
        return tree.packet.flow_mark

    assert flow_mark("NEW") == Mark()
    assert flow_mark("ESTABLISHED") == UNKNOWN_MARK
