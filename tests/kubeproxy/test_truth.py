"""Dumps from public reports: the shares that a reading of their rules by hand gave."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import Route, Source, View
from analyzer.model.cluster import Cluster
from tests.support.reading import read_ruleset

_DRAWN = re.compile(r"([0-9.]+|\[[0-9a-f:]+\]):(\d+)=([0-9.]+)")
#: What is said of a dump that is not whole.
_SAID_OF_PIECES = {"missing-chain", "fragment"}
_SAID = (" cluster IP", " loadbalancer IP", " external IP")


@cache
def view(path: Path) -> View:
    return Recogniser(read_ruleset(path.read_bytes(), path.name), Cluster()).view()


def rows(corpus: Path) -> Iterator[dict[str, str]]:
    with (corpus / "TRUTH.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            # A listing of `iptables -L` is refused; loopback is a way to the NodePort beside it.
            if "-save." in row["file"] and not row["frontend"].startswith("127."):
                yield row


def route(found: View, row: dict[str, str]) -> Route | None:
    """Return the route from outside that a row speaks of."""
    name = row["comment"]
    for says in _SAID:
        name = name.removesuffix(says)
    place, _, protocol = row["frontend"].rpartition("/")
    host, _, port = place.rpartition(":")
    address = None if host == "nodePort" else host.removesuffix("/32")
    those: list[Route] = []
    for service in found.services:
        for each in service.routes:
            frontend = each.frontend
            theirs = None if frontend.address is None else str(frontend.address)
            if (
                (service.name.text, service.protocol) == (name.removesuffix(":"), protocol)
                and theirs == address
                and (port == "*") == (frontend.port is None)
                and (port == "*" or frontend.port == int(port))
                and each.source is Source.EXTERNAL
            ):
                those.append(each)
    # Where sources are limited, a client that is let in was meant, if that makes a difference.
    limited = row["first chain"].startswith("KUBE-FW-")
    within = [each for each in those if each.network is not None] if limited else []
    return next(iter([*within, *those]), None)


def test_the_services_of_public_dumps_have_the_shares_that_were_read_by_hand(corpus: Path) -> None:
    broken, exact, bounded = [], 0, 0
    column = next(name for name in next(rows(corpus)) if name.startswith("endpoints"))
    for row in rows(corpus):
        place = f"{row['file']} {row['comment']} {row['frontend']}"
        (path,) = corpus.rglob(row["file"])
        found = view(path)
        mine = route(found, row)
        wanted = {(a, int(p)): float(share) for a, p, share in _DRAWN.findall(row[column])}
        if mine is None:
            broken.append(f"{place}: not found")
        elif "?" in row[column] or (not wanted and not mine.is_exact):
            # What follows in a fragment's chain, or is not there at all, nobody knows.
            bounded += 1
            if mine.is_exact or not _SAID_OF_PIECES & {d.code for d in found.diagnostics}:
                broken.append(f"{place}: no bounds, or no diagnostic")
        else:
            exact += 1
            got = {(str(s.endpoint.address), s.endpoint.port): s.share for s in mine.shares}
            shares = {key: float(share.lower) for key, share in got.items()}
            close = all(abs(shares.get(key, -1) - share) < 1e-8 for key, share in wanted.items())
            if shares.keys() != wanted.keys() or not close or not mine.is_exact:
                broken.append(f"{place}: {got} {mine.unresolved}")
    assert broken == []
    assert exact > 55
    assert bounded >= 2
