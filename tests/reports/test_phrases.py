from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.kubeproxy.names import service_name
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import Frontend, FrontendKind, Route, ServicePort, Share, Source, View
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.reports.document import spans
from analyzer.reports.phrases import SOURCES, at_node, count, state_of_frontend
from tests.support.dumps import at

FRONTEND = Frontend(FrontendKind.CLUSTER_IP, ip_address("10.96.0.1"), 80)
SENT = (Share(at("10.0.0.1"), Bounds(ALWAYS, ALWAYS), masquerade=False),)
UNREAD = (Share(at("10.0.0.1"), Bounds(NEVER, ALWAYS), masquerade=False),)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 rules"), (1, "1 rule"), (2, "2 rules"), (1_001, "1,001 rules")]
)
def test_things_are_counted(number: int, text: str) -> None:
    assert count(number, "rule") == text


def test_a_plural_may_be_irregular() -> None:
    assert count(2, "more branch", "more branches") == "2 more branches"
    assert count(1, "more branch", "more branches") == "1 more branch"


def test_every_source_has_words() -> None:
    assert set(SOURCES) == set(Source)
    assert len(set(SOURCES.values())) == len(SOURCES)


@pytest.mark.parametrize(("node", "text"), [("worker1", " at node worker1"), (None, "")])
def test_the_node_is_named_where_it_is_known(node: str | None, text: str) -> None:
    assert at_node(View(services=(), mode=ProxyMode.IPTABLES, node=node)) == text


@pytest.mark.parametrize(
    ("shares", "refusal", "words"),
    [
        (SENT, None, ""),
        ((), None, "no endpoints"),
        (UNREAD, None, "unknown"),
        ((), "reject", "no endpoints: reject"),
        # Flows from the cluster have endpoints, others are dropped.
        (SENT, "drop", "else drop"),
    ],
)
def test_a_frontend_that_does_not_simply_lead_to_endpoints_says_so(
    shares: tuple[Share, ...], refusal: str | None, words: str
) -> None:
    service = ServicePort(
        name=service_name("ns/a:http"),
        protocol="tcp",
        frontends=(FRONTEND,),
        routes=(Route(FRONTEND, Source.POD, shares, NEVER),),
        refusals=() if refusal is None else ((FRONTEND, refusal),),
    )
    told = "".join(
        span.text for span in spans(state_of_frontend(service, FRONTEND, service.state(FRONTEND)))
    )
    assert words in told
    assert bool(told) is bool(words)
