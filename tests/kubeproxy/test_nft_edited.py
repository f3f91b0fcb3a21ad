"""What is read off plain rows is what walks find, of generated rulesets, edited ones included.

Somebody may have taken lines out of a dump, put some in twice, or added rules of another table:
whatever it is then, the short way must not say another thing than the long one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_address
from itertools import zip_longest
from typing import Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analyzer.errors import InputError
from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.kubeproxy.rows.plain_shares import PlainRoutes
from analyzer.kubeproxy.view import Source, View
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.probability import ALWAYS, NEVER
from analyzer.model.value import replace as changed
from tests.support.clusters import GeneratedCluster, clusters, one_service
from tests.support.defects import text_of
from tests.support.effort import examples
from tests.support.parsed_objects import parse_objects
from tests.support.reading import nft_ruleset

every_layout = pytest.mark.parametrize(
    "layout", [RulesLayout.V1_30, RulesLayout.V1_36], ids=lambda layout: layout.value
)
_RULE: Final = re.compile(r"^\t\t(?!elements|type|comment|size|flags|timeout)\S.*$", re.MULTILINE)
_ELEMENTS: Final = re.compile(r"elements = \{ ([^}]*) \}")
_DRAWN: Final = re.compile(r"numgen random mod (\d+) (v?map) \{ ([^}]*) \}")
_ADDRESS: Final = re.compile(
    r"(?<![\w:.])(?:\d+\.\d+\.\d+\.\d+|[\da-f]+:[\da-f:]*:[\da-f]*)(?![\w:.])"
)
_NUMBER: Final = re.compile(r"(?<= dport )\d+|(?<=:)\d+(?=\n)|(?<= \. )\d+(?= :)")
_GOTO: Final = re.compile(r"(?<=(?:goto|jump) )\S+?(?=[\s,])")
_PROTOCOL: Final = re.compile(r"\b(?:tcp|udp)\b")


def view(
    text: str, known: Cluster, own: tuple[Address, ...], *, node: str | None, plainly: bool
) -> View:
    return NftRecogniser(
        nft_ruleset(text), known, node=node, node_addresses=own, plainly=plainly
    ).view()


def assert_alike(quick: View, slow: View) -> int:
    """Check that two views say the same; return how many Services the first reads off rows."""
    plain = 0
    for mine, theirs in zip_longest(quick.services, slow.services):
        assert mine is not None, theirs.name
        assert theirs is not None, mine.name
        plain += isinstance(mine.routes, PlainRoutes)
        for route, other in zip_longest(mine.routes, theirs.routes):
            assert route == other, (mine.name, route, other)
            assert tuple(route.shares) == tuple(other.shares), (mine.name, route, other)
            assert [*map(list, route.columns())] == [*map(list, other.columns())]
        assert mine == theirs, mine.name
    # What is told of many flows at once may rest on fewer assumptions; all else is the same.
    more = {each for each in slow.diagnostics if each.code == "assumed"} - {*quick.diagnostics}
    assert quick == changed(slow, diagnostics=tuple(e for e in slow.diagnostics if e not in more))
    return plain


def check(text: str, cluster: GeneratedCluster, *, told: bool) -> int:
    own = tuple(
        ip_address(each["address"])
        for item in cluster.items
        if item["kind"] == "Node" and item["metadata"]["name"] == cluster.node
        for each in item["status"]["addresses"]
    )
    known, node = Cluster(), None
    if told:
        objects = json.dumps({"items": cluster.items}).encode()
        known, node = parse_objects([("objects.json", objects)]), cluster.node
    quick, slow = (view(text, known, own, node=node, plainly=p) for p in (True, False))
    return assert_alike(quick, slow)


@every_layout
@examples(5, 100)  # each takes long
@given(data=st.data(), told=st.booleans())
def test_plain_rows_say_what_walks_find(
    layout: RulesLayout, data: st.DataObject, *, told: bool
) -> None:
    cluster = data.draw(clusters(layout, plain=data.draw(st.booleans())))
    check(cluster.nft, cluster, told=told)


@every_layout
def test_plain_services_are_read_off_their_rows(layout: RulesLayout) -> None:
    cluster = one_service(layout, endpoints=5, plain=True)
    assert check(cluster.nft, cluster, told=True) == 1


@every_layout
@examples(5, 100)  # each takes long
@given(data=st.data(), told=st.booleans())
def test_plain_rows_of_edited_rulesets_say_what_walks_find(
    layout: RulesLayout, data: st.DataObject, *, told: bool
) -> None:
    cluster = data.draw(clusters(layout, plain=data.draw(st.integers(0, 3)) > 0))
    text = cluster.nft
    for _ in range(data.draw(st.integers(1, 3))):
        text = data.draw(edits(text))
    try:
        nft_ruleset(text)
    except InputError:
        assume(condition=False)
    check(text, cluster, told=told)


def test_a_chain_that_a_plain_map_leads_to_and_is_not_there_is_told_of() -> None:
    cluster = one_service(RulesLayout.V1_30, endpoints=2, plain=True)
    # The other family's map is plain, and named alike.
    text = cluster.nft.replace(" : goto service-", " : goto gone-")
    check(text, cluster, told=False)
    found = view(text, Cluster(), (), node=None, plainly=True).diagnostics
    assert "missing-chain" in {each.code for each in found}
    assert any("chain gone-" in each.message for each in found)


@every_layout
def test_a_network_that_is_written_with_an_address_in_it_is_read(layout: RulesLayout) -> None:
    cluster = one_service(layout, endpoints=2, plain=True)
    text = cluster.nft.replace("!= 10.244.0.0/16", "!= 10.244.3.4/16")
    assert text != cluster.nft
    check(text, cluster, told=False)


@every_layout
def test_an_endpoint_that_is_listed_twice_has_both_shares(layout: RulesLayout) -> None:
    cluster, other = (one_service(layout, endpoints=n, plain=True) for n in (2, 2))
    for item in other.items:
        if item["kind"] == "Service":
            # Behind one that is as plain and tells how its kind fares.
            item["metadata"] |= {"name": "b"}
            item["spec"] |= {"clusterIP": "10.96.0.2", "clusterIPs": ["10.96.0.2"]}
        elif item["kind"] == "EndpointSlice":
            item["metadata"]["labels"] = {"kubernetes.io/service-name": "b"}
    both = replace(cluster, items=cluster.items + other.items[-2:])
    last = _places(_DRAWN, both.nft)[-1]
    ends = [each.partition(" : ")[2] for each in last[3].split(", ")]
    text = _put(both.nft, last, last[0].replace(ends[1], ends[0]))
    check(text, both, told=False)
    services = view(text, Cluster(), (), node=None, plainly=True).services
    assert [len(list(each.routes[0].shares)) for each in services] == [2, 1]


@every_layout
def test_an_address_and_port_that_lead_to_two_chains_lead_to_either(layout: RulesLayout) -> None:
    """nft refuses such a map, so nothing says which of them it was."""
    cluster = one_service(layout, endpoints=2, plain=True)
    leads = re.compile(r"(10\.96\.\S+ \. tcp \. \d+) : goto (\S+)(?=,| })")
    text = leads.sub(r"\1 : goto \2, \1 : goto reject-chain", cluster.nft)
    assert text != cluster.nft
    check(text, cluster, told=False)
    for service in view(text, Cluster(), (), node=None, plainly=True).services:
        for route in service.routes:
            assert not route.is_exact, route
            assert {share.share.lower for share in route.shares} == {NEVER}


#: Edits that showed a difference once.
STORED: Final = ("kind-guessed.nft", "hairpin-behind-drop.nft", "accepted-input.nft")


@pytest.mark.parametrize("own", [(), (ip_address("192.168.0.10"),)], ids=["unknown", "known"])
@pytest.mark.parametrize("name", STORED)
def test_what_differed_once_is_alike(name: str, own: tuple[Address, ...]) -> None:
    quick, slow = (
        view(text_of(name), Cluster(), own, node=None, plainly=plainly) for plainly in (True, False)
    )
    assert_alike(quick, slow)


@pytest.mark.parametrize("does", ["drop", "meta mark set 0x4000"])
def test_an_endpoint_in_the_network_of_two_nodes_may_be_on_either(does: str) -> None:
    cluster = one_service(RulesLayout.V1_36, endpoints=1, plain=True)
    for item in cluster.items:
        if item["kind"] == "Node":
            item["spec"] = {"podCIDRs": ["10.244.0.0/16"]}
        elif item["kind"] == "EndpointSlice":
            del item["endpoints"][0]["nodeName"]
    last = 'comment "Reject traffic to invalid ports of ClusterIPs"\n'
    text = cluster.nft.replace(last, f'{last}\t\tiifname "eth0" {does}\n', 1)
    assert check(text, cluster, told=True) == 1
    objects = json.dumps({"items": cluster.items}).encode()
    known = parse_objects([("objects.json", objects)])
    (service,) = view(text, known, (), node=cluster.node, plainly=False).services
    # Its own flows come by its own device, or from outside by the one that the rule names.
    (route,) = service.routes_from(Source.HAIRPIN)
    if does == "drop":
        ((_, share),) = route.losses()[0]
        assert (share.lower, share.upper) == (NEVER, ALWAYS)
    else:
        assert route.masquerades() == (None,)


@every_layout
@pytest.mark.parametrize("at_device", [False, True])
def test_answers_to_a_client_that_leave_by_a_device_are_lost(
    layout: RulesLayout, *, at_device: bool
) -> None:
    cluster, address = one_service(layout, endpoints=2, plain=True), "198.51.100.7"
    family, head, rule = "ip", "postrouting priority 300", f'oifname "eth0" ip daddr {address} drop'
    if at_device:
        family, head = "netdev", 'egress device "eth0" priority 0'
        rule = f"ip daddr {address} drop"
    lines = (f"table {family} other {{", "chain c {", f"type filter hook {head};", rule, "}", "}")
    text = "\n".join((cluster.nft.rstrip(), *lines, ""))
    check(text, cluster, told=True)
    known = parse_objects([("o", json.dumps({"items": cluster.items}).encode())])
    (service,) = view(text, known, (), node=cluster.node, plainly=True).services
    lost = [route.network for route in service.routes if any(each.lost for each in route.shares)]
    assert any(each is not None and str(each[0]) == address for each in lost)


# --- edits ---------------------------------------------------------------------


@st.composite
def edits(draw: st.DrawFn, text: str) -> str:
    """Draw another ruleset, which differs in one place."""
    kinds = (_rule, _element, _drawn, _other_table, _at_devices, _own_rule, _word, _word)
    return draw(draw(st.sampled_from(kinds))(text))


def _places(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    return list(pattern.finditer(text))


def _put(text: str, place: re.Match[str], what: str) -> str:
    return text[: place.start()] + what + text[place.end() :]


@st.composite
def _rule(draw: st.DrawFn, text: str) -> str:
    """Take a rule out, put it in twice, or move it."""
    place = draw(st.sampled_from(_places(_RULE, text)))
    how = draw(st.sampled_from(("out", "twice", "after")))
    if how == "after":
        other = draw(st.sampled_from(_places(_RULE, text)))
        return _put(text, other, f"{other[0]}\n{place[0]}")
    return _put(text, place, f"{place[0]}\n{place[0]}" if how == "twice" else "")


@st.composite
def _element(draw: st.DrawFn, text: str) -> str:
    """Take an element out, or give one the place of another."""
    place = draw(st.sampled_from(_places(_ELEMENTS, text)))
    elements = [each.strip() for each in place[1].split(",")]
    at = draw(st.integers(0, len(elements) - 1))
    other = draw(st.sampled_from([*elements, ""]))
    elements[at] = other
    listed = ", ".join(each for each in elements if each)
    return _put(text, place, f"elements = {{ {listed} }}" if listed else "")


@st.composite
def _drawn(draw: st.DrawFn, text: str) -> str:
    """Draw an endpoint twice, or never, or with other numbers."""
    places = _places(_DRAWN, text)
    if not places:
        return text
    place = draw(st.sampled_from(places))
    number, kind, inner = place.groups()
    ends = [each.partition(" : ")[2] for each in inner.split(", ")]
    keys = list(range(len(ends)))
    how = draw(st.sampled_from(("twice", "more", "fewer", "modulus", "keys")))
    at = draw(st.integers(0, len(ends) - 1))
    if how == "twice":
        ends[at] = ends[draw(st.integers(0, len(ends) - 1))]
    elif how == "more":
        ends.append(ends[at])
        keys.append(len(keys))
        number = str(len(ends))
    elif how == "fewer" and len(ends) > 1:
        del ends[at], keys[at]
    elif how == "modulus":
        number = str(draw(st.integers(1, len(ends) + 1)))
    else:
        keys = draw(st.permutations(keys))
    made = ", ".join(f"{key} : {end}" for key, end in zip(keys, ends, strict=True))
    return _put(text, place, f"numgen random mod {number} {kind} {{ {made} }}")


@st.composite
def _word(draw: st.DrawFn, text: str) -> str:
    """Put an address, a port, a protocol or a chain in the place of another."""
    pattern = draw(st.sampled_from((_ADDRESS, _NUMBER, _GOTO, _PROTOCOL)))
    places = _places(pattern, text)
    if not places:
        return text
    place, other = (draw(st.sampled_from(places)) for _ in range(2))
    return _put(text, place, other[0])


def _asks(draw: st.DrawFn, text: str) -> str:
    """Draw what a rule asks of a flow."""
    addresses = sorted({place[0] for place in _places(_ADDRESS, text)})
    found = draw(st.sampled_from(addresses))
    version = ip_address(found).version
    ip, lengths = ("ip", (8, 24, 32)) if version == 4 else ("ip6", (32, 64, 128))
    side = draw(st.sampled_from(("saddr", "daddr")))
    operator = draw(st.sampled_from(("", "!= ")))
    length = draw(st.sampled_from(lengths))
    one = st.just(f"{ip} {side} {operator}{found}")
    network = st.just(f"{ip} {side} {operator}{_network(found, length)}")
    port = st.just(f"{draw(st.sampled_from(('tcp', 'udp')))} dport 80")
    more = st.sampled_from(
        (
            *("", "meta l4proto tcp", "fib daddr type local", "ct state new"),
            *('iifname "eth0"', 'oifname "eth0"', 'oifname "eth0" ct state established'),
        )
    )
    asked: str = draw(st.one_of(one, network, port, more))
    return asked


def _network(text: str, length: int) -> str:
    from ipaddress import ip_network

    return str(ip_network((text, length), strict=False))


def _acts(draw: st.DrawFn, text: str, *, nat: bool) -> str:
    some = draw(st.sampled_from([place[0] for place in _places(_ADDRESS, text)]))
    to = f"dnat to {some}" if "." in some else f"dnat to [{some}]:80"
    acts = ("accept", "drop", "return", "counter", "meta mark set 0x00004000", "notrack")
    more = (to, "masquerade", "redirect", "meta mark set meta mark | 0x00004000") if nat else ()
    act: str = draw(st.sampled_from((*acts, *more)))
    return act


@st.composite
def _other_table(draw: st.DrawFn, text: str) -> str:
    """Put a table before or behind kube-proxy's, which has something to say of some flows."""
    family = draw(st.sampled_from(("ip", "ip6", "inet")))
    kind, hook = draw(
        st.sampled_from(
            (
                ("filter", "prerouting"),
                ("filter", "output"),
                ("filter", "postrouting"),
                ("filter", "forward"),
                ("nat", "prerouting"),
                ("nat", "output"),
                ("nat", "postrouting"),
            )
        )
    )
    priority = draw(
        st.sampled_from(("-300", "-150", "-101", "-100", "-99", "0", "90", "100", "110"))
    )
    rules = [
        f"\t\t{_asks(draw, text)} {_acts(draw, text, nat=kind == 'nat')}\n"
        for _ in range(draw(st.integers(1, 2)))
    ]
    made = (
        f"table {family} other{draw(st.integers(0, 9))} {{\n\tchain c {{\n"
        f"\t\ttype {kind} hook {hook} priority {priority}; policy accept;\n"
        f"{''.join(rules)}\t}}\n}}\n"
    )
    return made + text if draw(st.booleans()) else text + made


@st.composite
def _at_devices(draw: st.DrawFn, text: str) -> str:
    """Put a table with a chain at devices behind kube-proxy's."""
    family, hook = draw(
        st.sampled_from(("netdev ingress", "netdev egress", "inet ingress"))
    ).split()
    devices = draw(st.sampled_from(("eth0", "cali1", "veth1", "lo")))
    policy = draw(st.sampled_from(("accept", "accept", "accept", "drop")))
    return (
        f"{text}table {family} at {{\n\tchain c {{\n"
        f'\t\ttype filter hook {hook} device "{devices}" priority 0; policy {policy};\n'
        f"\t\t{_asks(draw, text)} {_acts(draw, text, nat=False)}\n\t}}\n}}\n"
    )


@st.composite
def _own_rule(draw: st.DrawFn, text: str) -> str:
    """Put a rule into a chain of kube-proxy's, before or behind one."""
    place = draw(st.sampled_from(_places(_RULE, text)))
    made = f"\t\t{_asks(draw, text)} {_acts(draw, text, nat=True)}"
    both: Sequence[str] = (made, place[0])
    return _put(text, place, "\n".join(both if draw(st.booleans()) else both[::-1]))
