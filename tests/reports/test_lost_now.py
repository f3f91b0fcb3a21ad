"""The first line of an answer: what is lost with nothing dead."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from analyzer.kubeproxy.fastpath.masquerade import MANY
from analyzer.kubeproxy.generate import iptables_save, services
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.model.cluster import Cluster
from analyzer.parsers.iptables_save import parse
from analyzer.reports import lost_now
from analyzer.reports.lost_now import sentences
from analyzer.semantics.assumed import DEFAULTS
from tests.support.captures import ROOT
from tests.support.commands import Command

NOISE = ROOT / "fixtures" / "noise"
NEW = "-m conntrack --ctstate NEW"
KNOWN = "--objects", str(NOISE / "objects.json"), "--node", "worker1"
DNS = r"kube-system/kube-dns:dns: 100.0% of new flows from pod, pod-elsewhere, external bypass "


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "ufw",
            r"default/app and 4 more: 100.0% of new flows from pod, pod-elsewhere are dropped now "
            r"\(table filter, \S+/ufw.txt:4: policy DROP of FORWARD\)\.",
        ),
        (
            "kube-router",
            r"default/app: 50.0% of new flows from pod, pod-elsewhere, external, hairpin "
            r"are rejected now "
            r"\(kube-router, table filter, \S+/kube-router.txt:\d+: -A KUBE-POD-FW-ABC .*\)\.",
        ),
        (
            "nodelocaldns",
            DNS + r"conntrack and nat now \(NodeLocal DNSCache, table raw, \S+: -A PREROUTING ",
        ),
    ],
)
@pytest.mark.parametrize("verb", ["services", "loss"])
def test_what_is_lost_now_is_said_first(command: Command, verb: str, name: str, says: str) -> None:
    done = command(verb, str(NOISE / f"{name}.txt"), *KNOWN)
    assert done.status == 0
    assert re.match(says, done.out.splitlines()[0])


@pytest.mark.parametrize("name", ["base", "docker-first", "portmap", "flannel", "aws-vpc-cni"])
def test_where_nothing_is_lost_nothing_is_said(command: Command, name: str) -> None:
    for verb in ("services", "loss"):
        out = command(verb, str(NOISE / f"{name}.txt"), *KNOWN).out
        assert " now (" not in out
        assert "new flows from" not in out


def test_what_only_may_be_lost_is_said_so(command: Command) -> None:
    out = command("loss", str(NOISE / "docker.txt"), *KNOWN, "--assume-nothing").out
    assert re.search(r": up to 100.0% of new flows from .* may be dropped now \(", out)


def test_a_wide_loss_is_said_beside_a_narrow_one(command: Command) -> None:
    """Of one pod all flows are dropped, and of all others' the answers of that pod."""
    rule = "-A FORWARD -s 10.244.1.9/32 -j DROP\n-A FORWARD"
    text = (NOISE / "base.txt").read_text().replace("-A FORWARD", rule, 1)
    given = command.file("dump.txt", text), *KNOWN, "--service", "default/app"
    for verb in ("services", "loss"):
        narrow, wide = command(verb, *given).out.splitlines()[:2]
        one = r"default/app: 100.0% of new flows from pod 10.244.1.9/32, hairpin are dropped now \("
        assert re.match(one, narrow)
        all_others = "from pod, pod-elsewhere, external get no answer now"
        assert wide.startswith(f"default/app: 50.0% of new flows {all_others} (table filter, ")


def test_all_sources_of_a_loss_are_named_where_some_lose_more_in_other_ways(
    command: Command,
) -> None:
    """The pod to which all flows are dropped gets no answers from others either."""
    rule = "-A FORWARD -d 10.244.1.9/32 -j DROP\n-A FORWARD"
    text = (NOISE / "base.txt").read_text().replace("-A FORWARD", rule, 1)
    out = command("loss", command.file("dump.txt", text), *KNOWN, "--service", "default/app").out
    everywhere = "default/app: 50.0% of new flows from pod, pod-elsewhere, external, hairpin are"
    assert out.startswith(f"{everywhere} dropped now (")
    assert "; with other losses, 50.0 to 100.0% in all.\n" in out
    assert "from pod 10.244.1.9/32, hairpin get no answer now" in out


def test_more_that_may_be_lost_is_said_beside_what_is(command: Command) -> None:
    """Of the node's flows half are lost; of what others send, nobody knows how much."""
    text = (NOISE / "base.txt").read_text()
    lost = re.findall(r"default/app -> ([\d.]+):", text)[0]
    rules = f"-A OUTPUT -d {lost} -j DROP\n-A FORWARD -m made-up -j DROP\n"
    text = re.sub(r"(?m)^(:FORWARD )(.*\n(?::.*\n)*)", rf"\1\2{rules}", text, count=1)
    done = command("services", command.file("dump.txt", text), *KNOWN, "--service", "default/app")
    certain, perhaps = done.out.splitlines()[:2]
    assert re.match(r"default/app: 50.0% of new flows from node are dropped now \(", certain)
    most = (
        r"default/app: up to 100.0% of new flows from pod, pod-elsewhere, external, hairpin may "
        r"be dropped "
    )
    assert re.match(most + r"now \(.*: -A FORWARD -m made-up -j DROP\)\.", perhaps)


def test_the_sum_is_said_where_flows_are_lost_in_more_than_one_way(command: Command) -> None:
    """Half is dropped at one endpoint, and half of the other half is rejected at the other."""
    text = (NOISE / "base.txt").read_text()
    first, second = re.findall(r"default/app -> ([\d.]+):", text)[:2]
    rules = (
        f"-A FORWARD -d {first} {NEW} -j DROP\n"
        f"-A FORWARD -d {second} {NEW} -m statistic --mode random --probability 0.5 -j REJECT\n"
    )
    text = re.sub(r"(?m)^(:FORWARD )(.*\n(?::.*\n)*)", rf"\1\2{rules}", text, count=1)
    done = command("services", command.file("dump.txt", text), *KNOWN, "--service", "default/app")
    said = (
        r"default/app: 50.0% of new flows from .* are dropped now \(table filter, .*: -A FORWARD "
        r"-d [\d.]+ .* -j DROP\); with other losses, 75.0% in all\."
    )
    assert re.match(said, done.out.splitlines()[0])


def test_a_threshold_counts_what_is_dropped_and_may_leave_it_out(command: Command) -> None:
    asked = str(NOISE / "ufw.txt"), *KNOWN, "--dead", "10.244.0.3", "--service", "app"
    assert command("loss", *asked, "--max-loss", "99%").status == 1
    assert command("loss", *asked, "--max-loss", "99%", "--count", "dead").status == 0
    untouched = str(NOISE / "base.txt"), *asked[1:]
    assert command("loss", *untouched, "--max-loss", "0").status == 0


def test_what_one_rule_takes_before_and_behind_the_dnat_is_counted_together(
    command: Command,
) -> None:
    """Three of four flows are taken by no draw; the rule drops these and the fourth."""
    text = (NOISE / "base.txt").read_text()
    draws = re.findall(r'(?m)^-A KUBE-SVC-\w+ .*"default/app -> .*\n', text)
    assert len(draws) == 2
    text = text.replace(draws[1], "").replace("--probability 0.50000000000", "--probability 0.25")
    text = re.sub(r"(?m)^(:FORWARD )(.*\n(?::.*\n)*)", r"\1\2-A FORWARD -j DROP\n", text, count=1)
    done = command("services", command.file("dump.txt", text), *KNOWN, "--service", "default/app")
    said = (
        r"100.0% of new flows from pod, pod-elsewhere, external.* are dropped now \(table filter, "
    )
    assert re.search(said + r"\S+: -A FORWARD -j DROP\)", done.out.splitlines()[0])


#: What the filter table does to all endpoints alike, or to some: of one Service, or of its mark.
FILTERED = (
    "-A FORWARD -j DROP\n",
    "-A FORWARD -m mark --mark 0x4000/0x4000 -j DROP\n",
    "-A FORWARD -i cali+ -j DROP\n",
    "-A FORWARD -s 10.0.0.0/9 -j DROP\n",
    "-A FORWARD -d 10.0.3.0/24 -j REJECT\n",
    "-A FORWARD -s 10.0.3.0/24 -d 10.0.4.0/24 -j REJECT\n",
    "-A FORWARD -p tcp -m tcp --dport 8080 -m limit --limit 5/sec -j DROP\n",
    "",
)


@pytest.mark.parametrize("rows", FILTERED)
@pytest.mark.parametrize("assumed", [DEFAULTS, {}], ids=["assumed", "nothing"])
def test_what_is_told_of_alike_services_once_is_what_each_loses(
    monkeypatch: pytest.MonkeyPatch, rows: str, assumed: Mapping[str, str]
) -> None:
    """Of so many endpoints that what becomes of all is judged at once."""
    text = iptables_save(list(services(16, endpoints=(10, 10, 10, 3))))
    assert text.count(":KUBE-SEP") > MANY
    text = text.replace("COMMIT\n", f"{rows}COMMIT\n", 1)  # of the filter table
    view = Recogniser(parse(text, "dump"), Cluster(), assumed=assumed).view()
    classes = [lost_now.class_of(each) for each in view.services]
    if rows in FILTERED[:3]:
        assert len({each for each in classes if each is not None}) < len(classes) - 4
    told = list(sentences(view.services))
    monkeypatch.setattr(lost_now, "class_of", lambda _: None)
    assert told == list(sentences(view.services))
    assert bool(told) is bool(rows)
