"""How much work an answer takes: steps are counted, not seconds."""

from __future__ import annotations

import cProfile
from collections.abc import Callable

from analyzer.failure.loss import losses
from analyzer.failure.models import Dead
from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.kubeproxy.view import View
from analyzer.model.addresses import address_from_text
from analyzer.model.packet import Packet
from analyzer.parsers.formats import read_ruleset
from tests.support.reading import recogniser
from tests.support.shapes import CLUSTER_IP


def view(text: str) -> View:
    """Return the Services of a dump of either mode."""
    return recogniser(read_ruleset(text.encode(), "dump")).view()


def steps(work: Callable[[], object]) -> int:
    """Count the calls of functions, and how often generators go on."""
    profile = cProfile.Profile(subcalls=False, builtins=False)
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


def services(text: str) -> None:
    """Ask for the Services, and what they lose with one of their endpoints."""
    found = view(text)
    assert losses(found.services, Dead(endpoints=frozenset(found.endpoints[:1])))


def traced(text: str) -> None:
    """Ask where a pod's flow to the Service of `tests.support.shapes` ends."""
    packet = Packet(
        protocol="tcp",
        source=address_from_text("10.244.9.9"),
        source_port=40_000,
        destination=address_from_text(CLUSTER_IP),
        destination_port=80,
    )
    found = trace([read_ruleset(text.encode(), "dump")], Question(packet=packet), "ip")
    assert found.ends
