"""What is said of Services that are alike, some of which are walked; rules that tell them apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, ip_network

from hypothesis import strategies as st

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import View, each_network
from analyzer.model.cluster import Cluster
from analyzer.parsers.iptables_save import parse


def view(text: str, own: Sequence[IPv4Address] = (), *, plainly: bool) -> View:
    return Recogniser(
        parse(text, "dump"), Cluster(), node_addresses=tuple(own), plainly=plainly
    ).view()


def told(found: View) -> object:
    return [
        (
            s.name,
            s.protocol,
            s.affinity,
            sorted(map(str, s.frontends)),
            # Frontends that need no walk come first.
            sorted(
                (
                    *map(str, (r.frontend, r.source, r.network, tuple(r.shares))),
                    *map(str, (r.unresolved, r.astray)),
                )
                for r in each_network(s.routes)
            ),
        )
        for s in found.services
    ]


@st.composite
def _stranger(draw: st.DrawFn, text: str) -> str:
    """Draw a rule of somebody else that may tell Services apart."""
    found = re.findall(r"\b\d+\.\d+\.\d+\.\d+\b", text)
    addresses = sorted({each for each in found if not each.startswith("255.")})
    address = draw(st.sampled_from(addresses))
    network = ip_network(
        f"{address}/{draw(st.sampled_from((8, 12, 16, 21, 24, 32)))}", strict=False
    )
    ports = sorted(set(re.findall(r"--dport (\d+)", text)) | {"8080"})
    low = int(draw(st.sampled_from(ports)))
    asked = draw(
        st.sampled_from(
            (
                f"-d {network}",
                f"! -d {network}",
                f"-s {network}",
                f"-p tcp -m tcp --dport {low}",
                f"-p tcp -m tcp --dport {low}:{min(low + 900, 65535)}",
                f"-p tcp -m multiport --dports {low},9",
                f"-m iprange --dst-range {address}-{IPv4Address(address) + 2000}",
                "-m mark --mark 0x4000/0x4000",
                "-m set --match-set x src",
                f'-p tcp -m comment --comment "a --dport {low} b"',
            )
        )
    )
    service = draw(st.sampled_from(re.findall(r"(?m)^:(KUBE-S(?:VC|EP)-\w+) ", text) or ["ACCEPT"]))
    endpoint = draw(st.sampled_from(re.findall(r"--to-destination (\S+)", text) or ["10.9.9.9:9"]))
    chain, target = draw(
        st.sampled_from(
            (
                ("PREROUTING", service),
                ("KUBE-SERVICES", f"DNAT --to-destination {endpoint}"),
                ("PREROUTING", "ACCEPT"),
                ("OUTPUT", "DNAT --to-destination 10.9.9.9:99"),
                ("KUBE-SERVICES", "RETURN"),
                ("KUBE-SERVICES", "KUBE-MARK-MASQ"),
                ("POSTROUTING", "ACCEPT"),
                ("POSTROUTING", "MASQUERADE"),
                ("KUBE-POSTROUTING", "RETURN"),
            )
        )
    )
    protocol = "" if asked.startswith("-p") or "DNAT" not in target else "-p tcp "
    return f"-A {chain} {protocol}{asked} -j {target}"


@st.composite
def among_strangers(draw: st.DrawFn, text: str) -> str:
    """Draw a dump with up to two rules of somebody else between those of kube-proxy."""
    for _ in range(draw(st.integers(0, 2))):
        row = draw(_stranger(text))
        chain = re.escape(" ".join(row.split()[:2]))
        places = [at.start() for at in re.finditer(rf"^{chain} ", text, re.MULTILINE)]
        if places:
            # Most as the first rule of the chain: behind others they are seldom met.
            at = draw(st.sampled_from([places[0], *places]))
            text = f"{text[:at]}{row}\n{text[at:]}"
    return text
