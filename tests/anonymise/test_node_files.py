"""What a node's programs print: the words that they print stay, and names and addresses go."""

from __future__ import annotations

import json

import pytest

from analyzer.anonymise import node_files
from analyzer.anonymise.naming import Naming
from analyzer.errors import AnalyzerError
from analyzer.parsers.bundled import last_sync
from analyzer.parsers.iproute import parse_addresses, parse_routes
from analyzer.parsers.ipset_save import parse_ipsets

SALT = b"s" * 16

ADDRESSES = b"""[{"ifindex":2,"ifname":"eth0","flags":["UP","LOWER_UP","ACME"],"mtu":1500,
"address":"00:1b:44:11:3a:b7","ifalias":"acme uplink","addr_info":[{"family":"inet",
"local":"192.168.3.4","prefixlen":24,"broadcast":"192.168.3.255","scope":"global",
"label":"eth0:acme"},{"family":"inet6","local":"fe80::21b:44ff:fe11:3ab7","prefixlen":64,
"scope":"link"}]}]"""


def test_addresses() -> None:
    naming = Naming(SALT)
    made = node_files.addresses(naming, ADDRESSES)
    for gone in ("acme", "192.168.3", "44:11", "ff:fe11", "ACME"):
        assert gone not in made
    assert parse_addresses(made.encode(), "made") == tuple(
        map(naming.names.address, parse_addresses(ADDRESSES, "made"))
    )
    assert json.loads(made)[0]["flags"] == ["UP", "LOWER_UP"]


def test_routes_of_both_versions_one_behind_the_other() -> None:
    routes = (
        b'[{"dst":"default","gateway":"192.0.2.1","dev":"eth0","protocol":"acme","flags":[]},'
        b'{"type":"blackhole","dst":"10.1.2.0/24","protocol":"bird","metric":5,"flags":[]}]'
        b'[{"dst":"fd00::/64","dev":"acme0","flags":["linkdown"]}]'
    )
    naming = Naming(SALT)
    made = node_files.routes(naming, routes)
    assert "acme" not in made
    assert "192.0.2.1" not in made
    old, new = parse_routes(routes, "old"), parse_routes(made.encode(), "new")
    assert [(each.network.prefixlen, each.metric) for each in old.routes] == [
        (each.network.prefixlen, each.metric) for each in new.routes
    ]
    assert new.routes[0].device == "eth0"
    assert new.routes[1].network == naming.names.network(old.routes[1].network)


def test_neighbours() -> None:
    given = (
        b'[{"dst":"10.1.2.3","dev":"cali123","lladdr":"ee:ee:ee:ee:ee:ee","state":["FAILED"]},'
        b'{"dst":"10.1.2.4","dev":"eth0","state":["ACME"],"acme":"acme"}]'
    )
    found = json.loads(node_files.neighbours(Naming(SALT), given))
    assert found[0]["state"] == ["FAILED"]
    assert found[1].keys() == {"dst", "dev", "state"}
    assert found[1]["state"] == []
    assert "10.1.2" not in json.dumps(found)


@pytest.mark.parametrize("data", [b"{}", b"[", b"acme", b'"[]"'])
def test_what_ip_does_not_print_is_refused(data: bytes) -> None:
    with pytest.raises(AnalyzerError, match="expected a list"):
        node_files.routes(Naming(SALT), data)


FLOWS = (
    b"ipv4     2 udp      17 29 src=10.1.2.3 dst=10.96.0.10 sport=40000 dport=53 [UNREPLIED] "
    b"src=10.1.2.9 dst=10.1.2.3 sport=53 dport=40000 mark=0 use=1\n"
    b"tcp      6 431999 ESTABLISHED src=fd00::3 dst=fd00::9 sport=1 dport=2 "
    b"src=fd00::9 dst=fd00::3 sport=2 dport=1 [ASSURED] mark=16384 secctx=acme_u:acme use=1\n"
    b"conntrack v1.4.7 (acme): 2 flow entries have been shown.\n"
)


def test_flows() -> None:
    naming = Naming(SALT)
    one, other = node_files.flows(naming, FLOWS).splitlines()
    for gone in ("acme", "10.1.2", "fd00::3"):
        assert gone not in one + other
    assert one.split()[:5] == ["ipv4", "2", "udp", "17", "29"]
    assert "[UNREPLIED]" in one
    assert "ESTABLISHED" in other
    assert "mark=16384" in other
    assert other.count("src=") == 2


IPSETS = b"""\
create acme-net hash:net family inet hashsize 1024 maxelem 65536 comment
add acme-net 10.1.2.0/24 comment "acme office"
add acme-net 10.1.3.7 nomatch
create acme-port hash:ip,port family inet6 hashsize 1024 maxelem 65536 timeout 300
add acme-port fd00::7,tcp:80 timeout 20
create acme-map bitmap:ip range 10.0.0.0-10.0.0.255
add acme-map 10.0.0.4
add acme-map 10.0.0.5
create acme-all list:set size 8
add acme-all acme-net
create acme-odd hash:acme acme 1
add acme-odd acme
"""


def test_ipsets() -> None:
    naming = Naming(SALT)
    made = node_files.ipsets(naming, IPSETS, "made")
    assert "acme" not in made
    old, new = parse_ipsets(IPSETS, "old"), parse_ipsets(made.encode(), "new")
    assert [(each.kinds, each.version) for each in old.values() if each.understood] == [
        (each.kinds, each.version) for each in new.values() if each.understood
    ]
    assert [each.understood for each in old.values()] == [each.understood for each in new.values()]
    names = {name: naming.names.name("set", name) for name in old}
    assert list(new) == list(names.values())
    net = new[names["acme-net"]]
    assert [each.nomatch for each in net.entries] == [False, True]
    sizes = [
        sum(
            part[1] - part[0] for each in held.entries for part in each.parts if type(part) is tuple
        )
        for held in (old["acme-map"], new[names["acme-map"]])
    ]
    assert sizes[0] == sizes[1]
    assert new[names["acme-all"]].entries[0].parts == (names["acme-net"],)


def test_a_line_that_ipset_does_not_print_is_refused() -> None:
    with pytest.raises(AnalyzerError, match="expected create or add"):
        node_files.ipsets(Naming(SALT), b"destroy acme\n", "made")


def test_of_metrics_the_last_sync_is_kept() -> None:
    name = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"
    given = f"# HELP acme acme\nacme 1\n{name} 1.7e+09\n".encode()
    made = node_files.metrics(Naming(SALT), given)
    assert "acme" not in made
    assert last_sync(made.encode()) == last_sync(given)
    assert node_files.metrics(Naming(SALT), b"acme 1\n") == ""
