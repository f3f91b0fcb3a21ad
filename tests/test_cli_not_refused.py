"""Flows that end in kube-proxy's own chains although their Services have endpoints are lost.

kube-proxy refuses flows to Services without endpoints, which counts as no loss. Where rules that
lead to a Service are missing, as another program may have flushed a chain, what its other rules
then refuse is one.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.captures import FIXTURES
from tests.support.commands import DUMP, Command

NFT = FIXTURES / "1.36.2-nftables" / "two-node@worker1" / "nft-list-ruleset.txt"
TEXT = NFT.read_text(encoding="utf-8")
#: In the table of IPv4, which comes first.
PREROUTING = "priority dstnat; policy accept;\n\t\tjump services\n"
REJECT = (
    '\t\tip daddr @cluster-ips reject comment "Reject traffic to invalid ports of ClusterIPs"\n'
)


def lost(command: Command, text: str, name: str) -> str:
    """Return what `loss` says first with nothing dead; services and whatif name it too."""
    file = command.file("dump.txt", text)
    says = command("loss", file, "--service", name).out.split("\n")[0]
    assert says in command("services", file, "--service", name).out
    done = command("loss", file, "--service", name, "--dead", "10.244.0.0/24", "--max-loss", "60%")
    assert done.status == 1
    return says


def test_nothing_leads_to_any_service_in_nftables_mode(command: Command) -> None:
    text = TEXT.replace(PREROUTING, PREROUTING.replace("\t\tjump services\n", ""), 1)
    says = lost(command, text, "default/app")
    assert says.startswith("default/app: 100.0% of new flows from pod, pod-elsewhere, external are")
    assert "rejected now (kube-proxy, table ip kube-proxy, dump.txt:" in says


def test_a_rule_of_kube_proxy_stands_where_it_never_writes_it(command: Command) -> None:
    head = "priority dstnat; policy accept;\n"
    text = TEXT.replace(REJECT, "", 1).replace(PREROUTING, head + REJECT, 1)
    says = lost(command, text, "default/app")
    assert "100.0% of new flows from pod, pod-elsewhere, external are rejected now" in says


def test_what_the_chain_of_a_service_rejects_is_lost(command: Command) -> None:
    """kube-proxy rejects nothing there."""
    start = re.search(r"chain service-\w+-default/app/.*\n", TEXT)
    assert start is not None
    text = f"{TEXT[: start.end()]}\t\treject\n{TEXT[start.end() :]}"
    assert "are rejected now (kube-proxy, table ip" in lost(command, text, "default/app")


def test_what_kube_forward_drops_is_lost(command: Command) -> None:
    """It drops what conntrack finds INVALID, and refuses nothing."""
    text = Path(DUMP).read_text(encoding="utf-8")
    accept = "-A PREROUTING -d 10.96.18.52/32 -j ACCEPT\n"
    text = text.replace("-A PREROUTING -m comment", f"{accept}-A PREROUTING -m comment", 1)
    first = "-A KUBE-FORWARD -m conntrack --ctstate INVALID"
    says = lost(command, text.replace(first, f"-A KUBE-FORWARD -j DROP\n{first}", 1), "default/app")
    assert "100.0% of new flows from pod, pod-elsewhere, external are dropped now" in says
