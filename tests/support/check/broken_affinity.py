"""Broken dumps: session affinity that does not hold.

A number names the issue whose complaint such a dump would explain, of kubernetes/kubernetes unless
another project is named; it is not a dump of theirs.
"""

from __future__ import annotations

from tests.support.check.editing import (
    DUAL,
    Kinds,
    behind,
    changed,
    only,
    without,
)

KINDS = Kinds()
kind = KINDS.kind

_AFFINITY = "KUBE-SVC-ZSATQLYJBXCZD65D"


@kind(
    "#110302: clients are sent to the endpoint of another list",
    DUAL,
    ("affinity-name", "--rcheck"),
    names=("KUBE-SEP-AAAAAAAAAAAAAAAA", "10.244.0.31:8080", "10.96.7.1:80/tcp (ds/affinity)"),
)
def affinity_of_another_list(text: str) -> str:
    return changed(
        text,
        ("--rcheck", "-> 10.244.0.31"),
        "--name KUBE-SEP-ZHOC477GL5G7NY5U",
        "--name KUBE-SEP-AAAAAAAAAAAAAAAA",
    )


@kind(
    "#24648: the endpoint no longer notes its clients",
    DUAL,
    ("affinity-not-set", "--rcheck"),
    names=("10.244.0.31:8080 does not record its clients", "10.96.7.1:80/tcp (ds/affinity)"),
)
def affinity_not_noted(text: str) -> str:
    return changed(
        text,
        ("-A KUBE-SEP-ZHOC477GL5G7NY5U", "--set"),
        " -m recent --set --name KUBE-SEP-ZHOC477GL5G7NY5U --mask 255.255.255.255 --rsource",
        "",
    )


@kind(
    "#24648: the rule that returns clients is lost",
    DUAL,
    ("affinity-not-checked", "0.50000000000"),
    names=("no rule returns clients to endpoint 10.244.0.31:8080", "ds/affinity"),
)
def affinity_not_checked(text: str) -> str:
    return without(text, "--rcheck", "-> 10.244.0.31")


@kind(
    "#110302: a client is drawn anew before its endpoint is looked up",
    DUAL,
    ("affinity-order", "--rcheck"),
    names=("comes after draws", "10.244.0.31:8080", "ds/affinity"),
)
def affinity_behind_draws(text: str) -> str:
    line = only(text, "--rcheck", "-> 10.244.0.31")
    text = without(text, line)
    return behind(text, (f"-A {_AFFINITY}", "-> 10.244.0.31", "--probability"), line)


@kind(
    "#110302: two timeouts within one Service",
    DUAL,
    ("affinity-seconds", "--seconds 60"),
    names=("10800, 60 s", "10.96.7.1:80/tcp (ds/affinity)"),
)
def affinity_of_two_timeouts(text: str) -> str:
    return changed(text, ("--rcheck", "-> 10.244.2.25"), "10800", "60")
