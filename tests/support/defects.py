"""Inputs that were once answered wrongly, ``fixtures/defects``; most are of two-node@worker1."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import Route, ServicePort, View, each_network
from analyzer.model.cluster import Cluster
from analyzer.model.iptables.rules import Ruleset
from analyzer.parsers.formats import read_ruleset
from analyzer.semantics.base_chains import Rules
from tests.support.captures import ROOT
from tests.support.parsed_objects import parse_objects

DEFECTS = ROOT / "fixtures" / "defects"
NODE = "worker1"


def path(name: str) -> str:
    """Return the path of a file."""
    return str(DEFECTS / name)


@cache
def cluster() -> Cluster:
    """Return the cluster of which the dumps are."""
    file = DEFECTS / "objects.json"
    return parse_objects([(str(file), file.read_bytes())])


def rules(text: str, name: str = "dump.txt") -> Rules:
    """Return the rules of a text."""
    return read_ruleset(text.encode(), name)


def text_of(name: str) -> str:
    """Return what a file holds."""
    return (DEFECTS / name).read_text(encoding="utf-8")


def view_of(text: str, *others: str, plainly: bool = True) -> View:
    """Return the Services of a dump of iptables at its node, `others` being rules beside it."""
    ruleset = rules(text)
    assert isinstance(ruleset, Ruleset)
    own = cluster().nodes[NODE].addresses
    return Recogniser(
        ruleset,
        cluster(),
        node=NODE,
        node_addresses=own,
        others=[rules(other) for other in others],
        plainly=plainly,
    ).view()


def app(view: View) -> ServicePort:
    """Return default/app, whose endpoints are 10.244.0.7:8080 and 10.244.1.9:8080."""
    return next(service for service in view.services if service.name.text == "default/app")


def told(service: ServicePort) -> dict[tuple[str, str | None], Route]:
    """Return the routes to the only frontend, by source and network."""
    return {
        (r.source.value, None if r.network is None else str(r.network)): r
        for r in each_network(service.routes)
    }


def names_of(files: list[Path]) -> list[str]:
    """Return the names of files."""
    return [file.name for file in files]
