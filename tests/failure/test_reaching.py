from __future__ import annotations

import json
import re
from ipaddress import ip_address
from typing import Final

import pytest

from analyzer.failure.loss import service_loss
from analyzer.failure.models import Dead
from analyzer.failure.reaching import lost_now, reaching
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
from analyzer.model.ternary import Ternary
from analyzer.reports.renderers import RENDERERS
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


TAKEN: Final = {
    "DROP": ("-d 10.96.18.52/32 -j DROP", "Lost already, whatever fails"),
    "policy": ("", "Lost already, whatever fails"),
    "NOTRACK": (
        "-d 10.96.18.52/32 -p tcp -m tcp --dport 80 -j NOTRACK",
        "May be lost already, whatever fails",
    ),
}


@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("hooks", [("PREROUTING", "OUTPUT"), ("PREROUTING",)])
def test_what_no_flow_reaches_before_nat_is_not_without_endpoints(
    command: Command, taken: str, hooks: tuple[str, ...]
) -> None:
    rule, says = TAKEN[taken]
    policy = "ACCEPT" if rule else "DROP"
    heads = [f":{h} {policy if h in hooks else 'ACCEPT'} [0:0]" for h in ("PREROUTING", "OUTPUT")]
    rules = [f"-A {hook} {rule}" for hook in hooks if rule]
    text = "\n".join([*(NOISE / "base.txt").read_text().splitlines(), "*raw", *heads, *rules])
    file = command.file("taken.txt", f"{text}\nCOMMIT\n")
    asked = "whatif", file, *KNOWN, "--service", "app", "--depth", "1"
    for form in RENDERERS["whatif"]:
        assert command(*asked, "-o", form).status == 0
        for limit in (("--min-survives", "1"), ("--max-loss", "99%")):
            assert command(*asked, *limit, "-o", form).status == 1, (form, limit)
    done = command(*asked, "--min-survives", "1")
    told = "--min-survives is already broken: with nothing dead, all new flows on a route may be"
    assert f"{told} lost: default/app." in done.out
    document = json.loads(command(*asked, "-o", "json").out)
    assert document["no_endpoints"] == []
    (entry,) = document["lost_now"]
    assert (entry["name"], entry["certain"]) == ("default/app", taken != "NOTRACK")
    # Without PREROUTING the node's own flows get no answer, whatever their way out.
    is_whole = len(hooks) > 1 or taken == "policy"
    assert (f"{says}: default/app." in done.out) is is_whole
    assert "Without endpoints" not in done.out
    if is_whole:
        played = command("timeline", file, *KNOWN, "--service", "app", "--dead-node", "master").out
        assert "0 may lose new flows that reach an endpoint today." in played


def test_what_one_route_loses_whole_is_lost_on_it() -> None:
    every = exactly(ALWAYS)
    assert lost_now([service(exactly(HALF), every)]) is Ternary.FALSE
    assert lost_now([service(every, every)]) is Ternary.TRUE
    assert lost_now([service(every, Bounds(HALF, ALWAYS))]) is Ternary.UNKNOWN
    nothing = exactly(NEVER)
    assert lost_now([service(nothing, nothing), service(every, every)]) is Ternary.TRUE


def test_what_an_endpoint_loses_on_its_way_to_itself_counts(command: Command) -> None:
    row = "-A FORWARD -s 10.244.1.9/32 -d 10.244.1.9/32 -j DROP\n-A FORWARD"
    text = (NOISE / "base.txt").read_text().replace("-A FORWARD", row, 1)
    asked = command.file("itself.txt", text), *KNOWN, "--service", "app"
    out = command("loss", *asked).out
    assert out.startswith("default/app: 50.0% of new flows from hairpin are dropped")
    dead = *asked, "--dead", "192.168.0.10", "--max-loss", "10%"
    assert command("loss", *dead).status == 1
    assert command("loss", *dead, "--count", "dead").status == 0
