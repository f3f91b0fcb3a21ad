"""Where rules carry no comment, the objects name what they are for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analyzer.kubeproxy.dispatch.object_names import ObjectNames
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster
from analyzer.parsers.api_objects import decode
from analyzer.parsers.services import parse_services
from tests.support.captures import FIXTURES, Capture, captures_in
from tests.support.reading import read_ruleset

EVERY = captures_in(FIXTURES, "seed-dns", "two-node")
_COMMENT = re.compile(r' -m comment --comment (?:"[^"]*"|\S+)')


def view(capture: Capture, *, comments: bool, objects: bool) -> View:
    data = capture.dump.read_bytes()
    ruleset = read_ruleset(data, "dump")
    if not comments:
        text = _COMMENT.sub("", capture.text)
        assert "--comment" not in text
        ruleset = read_ruleset(text.encode(), "dump")
    files = [(capture.objects.name, capture.objects.read_bytes())]
    version = 4 if ruleset.family == "ip" else 6
    known = ObjectNames(lambda: parse_services(decode(files), version)) if objects else None
    return Recogniser(ruleset, Cluster(), object_names=known).view()


def told(found: View) -> list[tuple[str, str, list[tuple[str, str]], list[tuple[str, str]]]]:
    return sorted(
        (
            s.name.text,
            s.protocol,
            sorted((f.kind.value, str(f)) for f in s.frontends),
            sorted((str(f), how) for f, how in s.refusals),
        )
        for s in found.services
    )


@pytest.mark.alike
@pytest.mark.parametrize("capture", EVERY, ids=str)
def test_objects_name_services_as_comments_do(capture: Capture) -> None:
    named = view(capture, comments=True, objects=True)
    assert told(view(capture, comments=False, objects=True)) == told(named)


@pytest.mark.parametrize("capture", EVERY, ids=str)
def test_without_objects_the_frontend_stands_in_for_the_name(capture: Capture) -> None:
    found = view(capture, comments=False, objects=False)
    assert found.services
    for service in found.services:
        (frontend,) = service.frontends
        assert service.name.text == str(frontend)


def test_objects_name_services_of_all_kinds_as_comments_do(captures: Path) -> None:
    some = captures_in(captures, "features*", "dual-stack")
    assert len(some) > 10
    for capture in some:
        named = view(capture, comments=True, objects=True)
        assert told(view(capture, comments=False, objects=True)) == told(named), capture
