from __future__ import annotations

import re
from ipaddress import ip_address

from analyzer.failure.loss import service_loss
from analyzer.failure.models import Dead
from analyzer.failure.reaching import reaching
from analyzer.failure.route_loss import Count
from analyzer.kubeproxy.names import service_name
from analyzer.kubeproxy.view import (
    Endpoint,
    Frontend,
    FrontendKind,
    Route,
    ServicePort,
    Share,
    Source,
)
from analyzer.model.endings import Ending, EndKind
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from tests.support.captures import ROOT
from tests.support.commands import Command

HALF = Dyadic.of(1, 1)
DROP = Ending(kind=EndKind.DROPPED)
ONE, TWO = (Endpoint(ip_address(f"10.0.0.{at}"), 80) for at in (1, 2))
FRONTEND = Frontend(FrontendKind.CLUSTER_IP, ip_address("10.96.0.1"), 80)
NOISE = ROOT / "fixtures" / "noise"
KNOWN = "--objects", str(NOISE / "objects.json"), "--node", "worker1"


def service(*lost: Bounds) -> ServicePort:
    """Return a ServicePort of endpoints that get half each, of which so much is lost."""
    shares = tuple(
        Share(end, Bounds(HALF, HALF), None, ((DROP, gone),) if gone.upper else ())
        for end, gone in zip((ONE, TWO), lost, strict=True)
    )
    routes = (Route(FRONTEND, Source.POD, shares, NEVER),)
    return ServicePort(
        name=service_name("ns/a"), protocol="tcp", frontends=(FRONTEND,), routes=routes
    )


def exactly(share: Dyadic) -> Bounds:
    return Bounds(share, share)


def test_what_is_lost_already_no_failure_takes() -> None:
    whole = service(exactly(HALF), exactly(ALWAYS))
    (left,) = reaching([whole])
    (route,) = left.routes
    assert [(s.endpoint, s.share, s.lost) for s in route.shares] == [
        (ONE, exactly(Dyadic.of(1, 2)), ())
    ]
    dead = Dead(endpoints=frozenset({ONE}))
    # The failure of what is left costs what both say together.
    together = service_loss(whole, dead).worst
    before = service_loss(whole, Dead(endpoints=frozenset())).worst
    assert together == exactly(ALWAYS)
    assert before == exactly(Dyadic.of(3, 2))
    assert service_loss(left, dead, Count.DEAD).worst == exactly(Dyadic.of(1, 2))


def test_what_may_be_lost_gives_bounds() -> None:
    (left,) = reaching([service(Bounds(NEVER, ALWAYS), exactly(NEVER))])
    assert [s.share for s in left.routes[0].shares] == [Bounds(NEVER, HALF), exactly(HALF)]


def test_where_nothing_is_lost_nothing_changes() -> None:
    whole = service(exactly(NEVER), exactly(NEVER))
    assert reaching([whole])[0] is whole


def test_whatif_says_first_what_is_lost_now_and_judges_the_rest(command: Command) -> None:
    lines = command("whatif", str(NOISE / "kube-router.txt"), *KNOWN).out.splitlines()
    assert lines[0].startswith("default/app: 50.0% of new flows from pod, pod-elsewhere, external")
    base = command("whatif", str(NOISE / "base.txt"), *KNOWN).out
    assert not re.search("are rejected now", base)
    # One of two pods is refused already: with the other's node all is lost, for pods.
    asked = (
        str(NOISE / "kube-router.txt"),
        *KNOWN,
        "--service",
        "app",
        "--only",
        "node",
        "--max-loss",
        "60%",
    )
    assert command("whatif", *asked).status == 1
    assert command("whatif", str(NOISE / "base.txt"), *asked[1:]).status == 0


def test_where_nothing_gets_through_a_threshold_is_broken_whatever_fails(command: Command) -> None:
    text = (NOISE / "ufw.txt").read_text().replace(":OUTPUT ACCEPT", ":OUTPUT DROP")
    text = text.replace("-m mark --mark 0x4000/0x4000 -j ACCEPT", "-j DROP")
    file = command.file("silent.txt", text)
    asked = "whatif", file, *KNOWN, "--service", "app"
    done = command(*asked, "--max-loss", "10%")
    assert done.status == 1
    assert "Lost already, whatever fails: default/app." in done.out
    assert "--max-loss is already broken: more may be lost with nothing dead." in done.out
    assert command(*asked).status == 0
    played = command("timeline", file, *KNOWN, "--service", "app", "--dead-node", "master").out
    assert "No ServicePort loses a new flow that reaches an endpoint today." in played


def test_what_an_endpoint_loses_on_its_way_to_itself_counts(command: Command) -> None:
    row = "-A FORWARD -s 10.244.1.9/32 -d 10.244.1.9/32 -j DROP\n-A FORWARD"
    text = (NOISE / "base.txt").read_text().replace("-A FORWARD", row, 1)
    asked = command.file("itself.txt", text), *KNOWN, "--service", "app"
    out = command("loss", *asked).out
    assert out.startswith("default/app: 50.0% of new flows from hairpin are dropped")
    dead = *asked, "--dead", "192.168.0.10", "--max-loss", "10%"
    assert command("loss", *dead).status == 1
    assert command("loss", *dead, "--count", "dead").status == 0
