"""Rules of the node end flows to pods themselves, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.arguments.command_line import parse
from analyzer.clients.responses import Ended, FlowResponse
from analyzer.inputs.recognised import read_input
from analyzer.kubeproxy.select import select
from analyzer.kubeproxy.view import Source
from analyzer.model.addresses import Address, address_from_text
from analyzer.questions.direct import DirectFlows
from tests.support.commands import DUMP, OBJECTS, Command

LOST, REFUSED = (Ended(FlowResponse[each], is_sure=True) for each in ("SILENT", "REFUSED"))
MAYBE = Ended(FlowResponse.SILENT, is_sure=False)
#: Endpoints of default/app: on another node, and on this one.
ENDS = ("10.244.0.7", "10.244.1.9")


def edited(command: Command, rule: str) -> str:
    chain = rule.split()[1]
    text = Path(DUMP).read_text().replace(f"-A {chain} ", f"{rule}\n-A {chain} ", 1)
    return command.file("edited.txt", text)


@pytest.mark.parametrize(
    ("rule", "source", "client", "ends"),
    [
        ("-A FORWARD -s 10.244.1.77/32 -j DROP", Source.POD, "10.244.1.77", (LOST, LOST)),
        ("-A FORWARD -s 10.244.1.77/32 -j DROP", Source.POD, "10.244.1.78", (None, None)),
        ("-A FORWARD -d 10.244.0.7/32 -j REJECT", Source.POD, None, (REFUSED, None)),
        # Those of other nodes' pods pass this node only on their way to its own.
        ("-A FORWARD -d 10.244.0.0/16 -j DROP", Source.POD_ELSEWHERE, None, (None, LOST)),
        ("-A FORWARD -j DROP", Source.NODE, None, (None, None)),
        ("-A OUTPUT -p tcp -m tcp --dport 8080 -j DROP", Source.NODE, None, (LOST, LOST)),
        # Answers, and flows that no DNAT sends there.
        ("-A FORWARD -s 10.244.0.7/32 -j DROP", Source.POD, None, (LOST, None)),
        ("-A FORWARD -m conntrack ! --ctstate DNAT -j DROP", Source.POD, None, (LOST, LOST)),
        ("-A FORWARD -m conntrack --ctstate DNAT -j DROP", Source.POD, None, (None, None)),
        ("-A FORWARD -m set --match-set unknown src -j DROP", Source.POD, None, (MAYBE, MAYBE)),
        # What it sends to itself never leaves it, but the other's answers come back.
        ("-A FORWARD -d 10.244.1.9/32 -j DROP", Source.POD, "10.244.1.9", (LOST, None)),
    ],
)
def test_flows_to_pods_end_where_rules_end_them(
    command: Command,
    rule: str,
    source: Source,
    client: str | None,
    ends: tuple[Ended | None, Ended | None],
) -> None:
    words = ["services", edited(command, rule), *OBJECTS, "--node", "worker1"]
    given = read_input(parse(words))
    (service,) = select(given.view, "default/app")
    of: Address | None = None if client is None else address_from_text(client)
    direct = DirectFlows(given, source, of)
    by_address = {str(each.address): direct(service, each) for each in service.endpoints}
    assert tuple(by_address[each] for each in ENDS) == ends


def test_clients_that_choose_pods_themselves_are_stopped_too(command: Command) -> None:
    asked = (edited(command, "-A FORWARD -s 10.244.1.77/32 -j DROP"), *OBJECTS, "--node", "worker1")
    asked += ("--service", "default/app", "--client", "headless,proxy-by-pod-ip")
    done = command("client", *asked, "--from", "10.244.1.77", "--max-failure", "99%")
    assert done.status == 1
    assert "headless         reach default/app  100.0%" in done.out
    assert command("client", *asked, "--from", "10.244.1.78", "--max-failure", "0%").status == 0
