"""What happens during a run of the lab: as words, in order, and held to what can be."""

from __future__ import annotations

import re
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import AnalyzerError, UsageError
from analyzer.failure.binomial import interval
from analyzer.inputs.recognised import Input, read_input
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.lab_phases import OpenConnection, RunEvent
from netns_lab.arguments import parser
from netns_lab.asked import other_nodes
from netns_lab.connections import KeptConnection
from netns_lab.deaths import (
    FATES,
    SILENT,
    Death,
    DeathKind,
    deaths_of,
    kind_from_text,
    parted,
    without_flapping,
)
from netns_lab.expecting import connection_of
from netns_lab.schedule import Planned, Schedule, is_asked, schedule
from tests.support.captures import ROOT

EXAMPLE = [str(ROOT / "examples/dump.txt"), "--objects", str(ROOT / "examples/objects.json")]


def asked(*words: str) -> tuple[SimpleNamespace, Input]:
    line = ["run", *EXAMPLE, "--node", "worker1", *words]
    options: Any = parser().parse_args(line, SimpleNamespace())
    return options, read_input(options)


def planned(*words: str) -> Schedule:
    options, found = asked(*words)
    assert is_asked(options)
    return schedule(options, found, [])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--kill", "master@1s"], "--kill: add --for, for example --for 30s"),
        (["--for", "5s", "--kill", "nobody@1s"], "--kill nobody@1s: expected an address"),
        (["--for", "5s", "--revive", "nobody@1s"], "--revive nobody@1s: expected an address"),
        (
            ["--for", "5s", "--kill", "master:gone@1s"],
            "--kill master:gone@1s: 'gone' is not one of",
        ),
        (
            ["--for", "5s", "--dead", "master:gone"],
            "--dead master:gone: 'gone' is not one of silent",
        ),
        (["--for", "5s", "--kill", "master@9s"], "the run lasts 5s (--for)"),
        (["--for", "5s", "--kill", "master@0s"], "the run lasts 5s (--for)"),
        (["--for", "5s", "--kill", "master"], "expected when, for example"),
        (["--for", "5s", "--kill", "@2s"], "expected when, for example WHAT@10s"),
        (["--for", "5s", "--resync", "2s"], "expected when, for example @10s"),
        (["--for", "5s", "--revive", "master@2s"], "nothing of that name is dead by then"),
        (["--for", "5s", "--dead", "master", "--kill", "10.244.0.7@1s"], "master is silent by"),
        (["--for", "5s", "--kill", "master:flap=1s/1s@1s"], "use --dead"),
        (["--for", "5s", "--dead", "10.244.0.7:slow=fast"], "milliseconds from 1 to 10,000"),
        (["--for", "5s", "--dead", "10.244.0.7:slow"], "milliseconds from 1 to 10,000"),
        (["--for", "5s", "--dead", "10.244.0.7:flap=5s"], "how long it is up and how long down"),
        (["--for", "5s", "--dead", "10.244.0.7:drop=1"], "drop takes no value"),
        (["--for", "5s", "--dead", ":drop"], "nothing is named before :drop; expected WHAT:KIND"),
        (["--for", "5s", "--dead", "10.244.0.3:53:arp"], "a neighbour entry is for an address"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], says: str) -> None:
    with pytest.raises(AnalyzerError, match=re.escape(says)):
        planned(*words)


def test_what_flaps_takes_time() -> None:
    options, found = asked("--dead", "10.244.0.7:flap=1s/1s")
    _, deaths = deaths_of(options, found)
    with pytest.raises(AnalyzerError, match="add --for"):
        without_flapping(deaths)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ("master", "expected NODE=DUMP, for example worker2=dump2.txt"),
        ("worker1=x.txt", "worker1 is the node that DUMP is from"),
        ("node7=x.txt", "no such node is known"),
    ],
)
def test_rules_of_no_other_node_are_refused(rules: str, says: str) -> None:
    options, found = asked("--rules", rules)
    dead, _ = deaths_of(options, found)
    with pytest.raises(AnalyzerError, match=re.escape(says)):
        other_nodes(options, found, dead)


@pytest.mark.parametrize("option", ["--dead", "--dead-node"])
def test_what_is_wrong_about_a_death_is_said_of_the_option_that_it_was_given_with(
    option: str,
) -> None:
    for kind, says in (("flap=1s/1s", "flapping"), ("slow=fast", "'slow=fast'"), ("gone", "")):
        options, found = asked(option, f"master:{kind}")
        with pytest.raises(AnalyzerError) as raised:
            without_flapping(deaths_of(options, found)[1])
        assert str(raised.value).startswith(f"{option} master:{kind}: {says}")
    options, found = asked("--dead", "10.244.0.7:drop", option, "master:reject")
    with pytest.raises(AnalyzerError) as raised:
        deaths_of(options, found)
    assert str(raised.value).startswith(f"{option} master:reject: 10.244.0.7:")


def test_nothing_dies_in_two_ways() -> None:
    options, found = asked("--dead", "master:drop,10.244.0.7:reject")
    with pytest.raises(AnalyzerError, match=r"10\.244\.0\.7.* is already drop, by master"):
        deaths_of(options, found)


def test_what_is_slow_is_not_dead() -> None:
    options, found = asked("--dead", "10.244.0.7:slow=20,10.244.1.9:reject")
    dead, deaths = deaths_of(options, found)
    assert {str(each.address) for each in dead.endpoints} == {"10.244.1.9"}
    assert [str(each.kind) for each in deaths] == ["slow=20", "reject"]


def test_events_are_in_the_order_of_time_and_what_revives_is_what_died() -> None:
    found = planned(
        "--for", "9s", "--revive", "10.244.0.7@4s", "--kill", "10.244.0.7:reject@2s",
        "--resync", "@3s,@1s", "--dead", "10.244.1.9:flap=2.5s/4s",
    )  # fmt: skip
    assert [(each.at, each.says) for each in found.events] == [
        (1, "resync"),
        (2, "kill 10.244.0.7 (reject)"),
        (2.5, "kill 10.244.1.9 (silent)"),
        (3, "resync"),
        (4, "revive 10.244.0.7"),
        (6.5, "revive 10.244.1.9"),
    ]
    revived = found.events[4].death
    assert revived is not None
    assert revived.kind == DeathKind(name="reject")


def test_of_a_single_port_the_process_dies_and_of_a_pod_all() -> None:
    found = planned("--for", "9s", "--dead", "10.244.0.3:53", "--kill", "10.244.1.9@1s")
    assert [str(each.kind) for each in found.first] == ["process"]
    died = found.events[0].death
    assert died is not None
    assert str(died.kind) == "silent"


@pytest.mark.parametrize(
    ("word", "what", "kind"),
    [
        ("10.1.0.1", "10.1.0.1", None),
        ("10.1.0.1:53", "10.1.0.1:53", None),
        ("10.1.0.1:53:drop", "10.1.0.1:53", "drop"),
        ("fd00::1", "fd00::1", None),
        ("[fd00::1]:80:slow=20", "[fd00::1]:80", "slow=20"),
        ("fd00::1:arp", "fd00::1", "arp"),
        ("ns/pod-0:reject", "ns/pod-0", "reject"),
        ("10.0.0.0/8:unreachable", "10.0.0.0/8", "unreachable"),
        ("master:flap=500ms/2", "master", "flap=0.5s/2s"),
    ],
)
def test_a_kind_stands_behind_the_last_colon(word: str, what: str, kind: str | None) -> None:
    named, found = parted(word)
    assert (named, None if found is None else str(found)) == (what, kind)


@pytest.mark.parametrize(
    "word",
    [
        *("10.1.0.1:oops", "10.1.0.1:53:oops", "[fd00::1]:80:oops", "ns/pod-0:oops"),
        *("fd00::1:oops", "10.0.0.0/8:oops", "fd00::/64:oops", "master:oops"),
    ],
)
def test_what_is_no_kind_is_refused_with_all_kinds(word: str) -> None:
    with pytest.raises(UsageError) as caught:
        parted(word, ["master"])
    kinds = ", ".join([*list(FATES)[:-2], "slow=MS or flap=UP/DOWN"])
    says = f"--dead {word}: 'oops' is not one of {kinds}"
    assert str(caught.value) == says + ("" if word == "master:oops" else ", nor a port")


@pytest.mark.parametrize(
    "word", ["10.1.0.1:53", "fd00::1:abcd", "fd00::/64", "[fd00::1]:80", "[fd00::1]", "10.0.0.0/8"]
)
def test_an_address_needs_no_kind(word: str) -> None:
    assert parted(word) == (word, None)


@pytest.mark.parametrize("name", list(FATES))
def test_what_a_kind_is_written_as_is_read_as_it(name: str) -> None:
    text = {"slow": "slow=250", "flap": "flap=5s/2s"}.get(name, name)
    assert str(kind_from_text(text)) == text


@settings(max_examples=10)
@given(st.integers(1, 300), st.data())
def test_an_interval_holds_each_share_that_explains_the_count(trials: int, data: Any) -> None:
    """Naive: a share is in it where neither tail of its own binomial is below half a percent."""
    from scipy.stats import binom

    hits = data.draw(st.integers(0, trials))
    low, high = interval(hits, trials)
    assert 0 <= low <= hits / trials <= high <= 1
    for share in (low - 1e-3, low + 1e-3, high - 1e-3, high + 1e-3):
        if 0 < share < 1:
            tails = binom.cdf(hits, trials, share), binom.sf(hits - 1, trials, share)
            assert (low <= share <= high) == (min(tails) > 0.005)


# --- connections -------------------------------------------------------------------

END = Endpoint(ip_address("10.244.0.7"), 8080)
OTHER = Endpoint(ip_address("10.244.1.9"), 8080)
RUN = 30.0


def happened(*, kill: float, revive: float | None, kind: DeathKind = SILENT) -> list[Any]:
    death = Death(what="it", kind=kind, endpoints=frozenset({END}))
    events = [(kill, "kill"), *([] if revive is None else [(revive, "revive")])]
    return [
        (
            Planned(at=at, verb="kill" if verb == "kill" else "revive", death=death),
            RunEvent(at=at, begun=at, ended=at + 0.03, says=verb),
        )
        for at, verb in events
    ]


def followed(
    endpoint: Endpoint, answers: list[float], events: list[Any], **more: Any
) -> OpenConnection:
    kept = KeptConnection(0, None, endpoint, answers, **more)  # type: ignore[arg-type]  # it is not asked
    return connection_of(kept, events, RUN, [], is_told=True)


def resent(kill: float, revive: float) -> float:
    """Naive: when a kernel that doubles its time-outs is answered again."""
    at, wait = kill + 0.05, 0.2
    while at < revive:
        at, wait = at + wait, 2 * wait
    return at


def every(begins: float, ends: float) -> list[float]:
    return [begins + 0.05 * at for at in range(int((ends - begins) / 0.05))]


@settings(max_examples=30)
@given(st.floats(1, 10), st.floats(0.1, 8))
def test_a_connection_that_goes_on_as_tcp_does_agrees(kill: float, lasts: float) -> None:
    revive = kill + lasts
    back = resent(kill, revive)
    answers = [*every(0, kill), *every(back, RUN)]
    found = followed(END, answers, happened(kill=kill, revive=revive))
    assert found.agrees is True
    assert found.fate == ("hung" if back - answers[len(every(0, kill)) - 1] > 0.5 else "survived")
    # Of an endpoint that lives the same is wrong, as far as it is to be seen.
    wrong = followed(OTHER, answers, happened(kill=kill, revive=revive))
    assert wrong.agrees is (found.fate == "survived")


@settings(max_examples=20)
@given(st.floats(1, 8), st.floats(1.5, 4), st.sampled_from(["goes on", "never back", "reset"]))
def test_a_connection_that_does_not_do_as_it_should_disagrees(
    kill: float, lasts: float, how: str
) -> None:
    events = happened(kill=kill, revive=kill + lasts)
    answers = every(0, RUN) if how == "goes on" else every(0, kill)
    more = {"ended": kill + 0.1} if how == "reset" else {}
    assert followed(END, answers, events, **more).agrees is False


def test_a_process_that_is_gone_resets() -> None:
    events = happened(kill=2, revive=None, kind=DeathKind(name="process"))
    assert followed(END, every(0, 2), events, ended=2.1).agrees is True
    assert followed(END, every(0, 2), events).agrees is False
    assert followed(OTHER, every(0, RUN), events).fate == "survived"
