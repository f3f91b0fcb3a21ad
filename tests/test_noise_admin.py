"""Rules that people write by hand around kube-proxy's: what they decide, and what they do not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.commands import Command
from tests.support.json_reader import fraction, read
from tests.support.noise import KNOWN, NOISE, shares, told

#: The base chains of the tables that the dump may lack.
_BASES = {"raw": "PREROUTING OUTPUT", "mangle": "PREROUTING INPUT FORWARD OUTPUT POSTROUTING"}


def with_rows(table: str, *rows: str) -> str:
    """Return kube-proxy's dump with rows before its own in a table."""
    text = (NOISE / "base.txt").read_text()
    if f"*{table}\n" not in text:
        bases = "".join(f":{each} ACCEPT [0:0]\n" for each in _BASES[table].split())
        text += f"*{table}\n{bases}COMMIT\n"
    at = text.index(f"*{table}\n")
    first = min(each for each in (text.find("\n-A", at), text.find("\nCOMMIT", at)) if each > 0) + 1
    return text[:first] + "".join(f"{row}\n" for row in rows) + text[first:]


def answered(command: Command, table: str, *rows: str, options: tuple[str, ...] = ()) -> Any:
    file = command.file("admin.txt", with_rows(table, *rows))
    done = command("services", file, *KNOWN, *options, "--format", "json")
    assert done.status == 0, done.err
    return read(done.out)


def lost(found: Any) -> list[Any]:
    """Return what is lost of the flows to default/app, by route."""
    return [
        (route["source"], ending["lower"]["value"], ending["upper"]["value"])
        for service in found["services"]
        if service["name"] == "default/app"
        for route in service["routes"]
        for share in route.get("lost") or ()
        for ending in share or ()
    ]


@pytest.mark.parametrize(
    "target",
    [
        "DSCP --set-dscp 0x0a",
        "TOS --set-tos 0x10/0x3f",
        "CLASSIFY --set-class 0001:0010",
        "TTL --ttl-set 64",
        "TTL --ttl-dec 1",
        "ECN --ecn-tcp-remove",
        "TCPOPTSTRIP --strip-options 8",
        "TEE --gateway 192.168.0.77",
        "TCPMSS --clamp-mss-to-pmtu",
    ],
)
def test_what_writes_to_a_packet_beside_its_addresses_changes_no_share(
    command: Command, target: str
) -> None:
    match = "-p tcp -m tcp --tcp-flags SYN,RST SYN " if "TCPMSS" in target else "-p tcp "
    found = answered(command, "mangle", f"-A PREROUTING {match}-j {target}")
    assert shares(found) == shares(told(command, "services", "base", *KNOWN))
    assert not lost(found)
    assert [each for each in found["diagnostics"] if each["severity"] != "info"] == []


@pytest.mark.parametrize("hops", ["--ttl-set 1", "--ttl-set 2", "--ttl-dec 60"])
def test_a_packet_without_hops_may_not_be_forwarded(command: Command, hops: str) -> None:
    found = answered(command, "mangle", f"-A PREROUTING -p tcp -j TTL {hops}")
    app = next(each for each in found["services"] if each["name"] == "default/app")
    unknown = {route["source"] for route in app["routes"] if route["unresolved"]}
    assert unknown >= {"pod", "external"}
    assert "node" not in unknown


RECENT = "-m conntrack --ctstate NEW -m recent --name scan --{} --mask 255.255.255.255 --rsource"


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        ((), None),
        (("--assume", "limits=over"), (1, 1)),
        (("--assume", "limits=unknown"), (0, 1)),
    ],
)
def test_a_client_sends_no_more_than_a_list_lets_it(
    command: Command, options: tuple[str, ...], bounds: tuple[int, int] | None
) -> None:
    rows = (
        f"-A FORWARD -p tcp {RECENT.format('set')}",
        f"-A FORWARD -p tcp {RECENT.format('update --seconds 60 --hitcount 20')} -j DROP",
    )
    found = answered(command, "filter", *rows, options=options)
    of_pods = {(low, high) for source, low, high in lost(found) if source == "pod"}
    assert of_pods == ({bounds} if bounds else set())


def test_a_list_that_is_asked_without_a_number_is_not_known(command: Command) -> None:
    row = f"-A FORWARD -p tcp {RECENT.format('rcheck --seconds 600')} -j DROP"
    found = answered(command, "filter", row)
    assert {(low, high) for source, low, high in lost(found) if source == "pod"} == {(0, 1)}


#: What CSF, ufw with `default deny outgoing` and many admins begin the rules for OUTPUT with.
ONLY_LOOPBACK = "-A OUTPUT -o lo -j ACCEPT", "-A OUTPUT ! -o lo -j DROP"
TO_SERVICES = (
    ("10.96.18.52:80", "drop"),
    ("203.0.113.50:80", "drop"),
    ("192.168.0.11:30080", "endpoint"),
)


def with_frontends(text: str) -> str:
    """Return kube-proxy's dump with an external IP and a NodePort of default/app."""
    chain = "KUBE-SVC-NZGXMBVUFMQ6OBBQ"
    tail = f'-m comment --comment "default/app" -m tcp --dport {{}} -j {chain}\n-A KUBE-SEP-222Y'
    rows = f"-A KUBE-SERVICES -d 203.0.113.50/32 -p tcp {tail.format(80)}"
    text = text.replace("-A KUBE-SEP-222Y", rows, 1)
    return text.replace("-A KUBE-SEP-222Y", f"-A KUBE-NODEPORTS -p tcp {tail.format(30080)}", 1)


def test_only_what_the_node_sends_to_itself_leaves_by_loopback(command: Command) -> None:
    """OUTPUT sees the device of the first route: DNAT moves a NodePort's flows off the node."""
    file = command.file("lo.txt", with_frontends(with_rows("filter", *ONLY_LOOPBACK)))
    found = read(command("services", file, *KNOWN, "--format", "json").out)
    (app,) = (each for each in found["services"] if each["name"] == "default/app")
    told = {
        f"{r['frontend']['address'] or '192.168.0.11'}:{r['frontend']['port']}": {
            (each["kind"], each["lower"]["value"]) for ways in r["lost"] for each in ways
        }
        if "lost" in r
        else {"endpoint"}
        for r in app["routes"]
        if r["source"] == "node"
    }
    for to, outcome in TO_SERVICES:
        assert told.pop(to) == ({("dropped", 1)} if outcome == "drop" else {"endpoint"})
        done = command("trace", file, *KNOWN, "--from-node", "--to", to, "--format", "json")
        assert {each["outcome"] for each in read(done.out)["outcomes"]} == {outcome}
    assert not told


def test_without_assumptions_what_the_node_sends_may_leave_by_loopback(command: Command) -> None:
    found = answered(command, "filter", *ONLY_LOOPBACK, options=("--assume-nothing",))
    assert {low_high[1:] for low_high in lost(found) if low_high[0] == "node"} == {(0, 1)}


def test_a_policy_for_what_the_node_sends_decides_its_flows(command: Command) -> None:
    """CSF lets out a list of ports: those of Services count as they are after DNAT."""
    told_by_name = {
        service["name"]: {
            (route["source"], each["kind"], each["chain"], each["lower"]["value"])
            for route in service["routes"]
            for ways in route.get("lost") or ()
            for each in ways or ()
        }
        for service in told(command, "services", "csf", *KNOWN)["services"]
    }
    rejected = {("node", "rejected", "LOGDROPOUT", 1)}
    assert told_by_name == {
        "default/app": rejected,  # at 80, which is let out, but its endpoints are at 8080
        "default/kubernetes:https": set(),
        "kube-system/kube-dns:dns": set(),
        "kube-system/kube-dns:dns-tcp": rejected,
        "kube-system/kube-dns:metrics": rejected,
    }


ROUTES = """[
 {"dst": "default", "gateway": "192.168.0.1", "dev": "eth0", "flags": []},
 {"dst": "192.168.0.0/24", "dev": "eth0", "scope": "link", "flags": []},
 {"dst": "10.244.0.0/24", "gateway": "10.244.0.0", "dev": "flannel.1", "flags": ["onlink"]},
 {"dst": "10.244.1.0/24", "dev": "cni0", "scope": "link", "flags": []}
]"""
#: Rules for the devices by which flows leave, as people and Tailscale write them.
BY_DEVICE = (
    ("FORWARD", "-i cni0 -o eth0 -j DROP"),
    ("FORWARD", "-o flannel.1 -j DROP"),
    ("FORWARD", "-o tailscale0 -m conntrack ! --ctstate RELATED,ESTABLISHED -j DROP"),
    ("FORWARD", "! -o eth0 -d 10.244.0.0/16 -j REJECT"),
    ("OUTPUT", "! -o eth0 -j DROP"),
    ("OUTPUT", "-o flannel.1 -j DROP"),
)


def agree(command: Command, dump: str, *known: str) -> None:
    """Hold what Services lose against what one packet meets: both certain, and the same."""
    services = read(command("services", dump, *known, "--format", "json").out)["services"]
    for service in services:
        to = f"{service['frontends'][0]['address']}:{service['frontends'][0]['port']}"
        for way, source in ((("--from", "10.244.1.254"), "pod"), (("--from-node",), "node")):
            given = (*way, "--to", to, "--protocol", service["protocol"])
            ends = read(command("trace", dump, *known, *given, "--format", "json").out)["outcomes"]
            met = {
                each["address"]: each["probability"]
                for each in ends
                if each["outcome"] == "endpoint"
            }
            (route,) = (r for r in service["routes"] if r["source"] == source and not r["network"])
            ways = route.get("lost") or [None for _ in route["endpoints"]]
            assert all(each["lower"] == each["upper"] for way in ways for each in way or ())
            passed = [1 - sum(fraction(each["upper"]) for each in way or ()) for way in ways]
            assert met == {
                each["address"]: (each["share"][0] * share, each["share"][1] * share)
                for each, share in zip(route["endpoints"], passed, strict=True)
                if share
            }


@pytest.mark.parametrize(("chain", "rule"), BY_DEVICE)
def test_routes_say_by_which_device_flows_leave(command: Command, chain: str, rule: str) -> None:
    dump = command.file("dump.txt", with_rows("filter", f"-A {chain} {rule}"))
    agree(command, dump, *KNOWN, "--routes", command.file("routes.json", ROUTES))


#: What flows were first sent to, as Docker's documentation matches on it in DOCKER-USER.
BY_ORIGINAL = (
    "FORWARD -p tcp -m conntrack --ctorigdst 10.96.18.52 --ctorigdstport 80 -j DROP",
    "FORWARD -m conntrack ! --ctorigdst 10.96.0.0/28 -j REJECT",
    "FORWARD -m conntrack --ctorigdstport 53:80 -m statistic --mode random --probability 0.5 "
    "-j DROP",
    "FORWARD -m conntrack --ctorigdst 198.51.100.2 --ctorigdstport 80 -j DROP",
    "OUTPUT -m conntrack --ctorigdst 10.96.0.10 -j DROP",
)


@pytest.mark.parametrize("rule", BY_ORIGINAL)
def test_what_flows_were_first_sent_to_counts_after_dnat(command: Command, rule: str) -> None:
    """The shares of Services know it as `trace` does, Service by Service."""
    agree(command, command.file("dump.txt", with_rows("filter", f"-A {rule}")), *KNOWN)


@pytest.mark.parametrize(
    ("match", "forwarded"), [("--uid-owner 0", None), ("! --socket-exists", (1, 1))]
)
def test_a_flow_that_the_node_forwards_has_no_owner(
    command: Command, match: str, forwarded: tuple[int, int] | None
) -> None:
    found = answered(command, "mangle", f"-A POSTROUTING -m owner {match} -j DROP")
    told_by_source = {source: bounds for source, *bounds in lost(found)}
    for source in ("pod", "pod-elsewhere", "external"):
        assert told_by_source.get(source) == (None if forwarded is None else [*forwarded])
    assert told_by_source["node"] == [0, 1]


@pytest.mark.parametrize(
    ("name", "ended"),
    [
        ("docker", {"pod": {("drop", 1)}, "pod-elsewhere": {("drop", 1)}}),
        ("csf", {"node": {("reject", 1)}}),
        (
            "kube-router",
            {
                **{of: {("reject", 0.5)} for of in ("pod", "pod-elsewhere", "external")},
                # Of one endpoint all, of the other none.
                "hairpin": {("reject", 0)},
            },
        ),
    ],
)
def test_what_rules_end_after_dnat_is_a_change_between_dumps(
    command: Command, name: str, ended: dict[str, set[tuple[str, float]]]
) -> None:
    """The same flows as `loss` says are dropped or rejected now, and no others."""
    dumps = [str(NOISE / f"{each}.txt") for each in ("base", name)]
    found = read(command("diff", *dumps, *KNOWN, "--format", "json").out)
    (app,) = (each for each in found["services"] if each["name"] == "default/app")
    assert app["change"] == "changed"
    told_by_source = {
        way["source"]: {
            (end["outcome"], end["probability"]["lower"]["value"]) for end in each["otherwise"]["b"]
        }
        for each in app["routes"]
        if each["otherwise"]
        for way in each["routes"]
    }
    assert told_by_source == ended
    again = command("diff", dumps[1], dumps[1], *KNOWN)
    assert again.status == 0
