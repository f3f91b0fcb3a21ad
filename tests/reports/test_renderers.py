from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from analyzer.failure.agreement import judge
from analyzer.model.iptables.targets import Drop
from analyzer.model.packet import Packet
from analyzer.model.probability import numgen_weights
from analyzer.model.value import replace
from analyzer.parsers.measurement import document_of, measurement_of
from analyzer.reports import lab_text, loss_cluster_json, tree_json, whatif_json
from analyzer.reports.answers import TreeAnswer
from analyzer.reports.cluster_answer import LossClusterAnswer
from analyzer.reports.lab_answers import LabAnswer
from analyzer.reports.renderers import RENDERERS
from analyzer.reports.unstyled import render_unstyled
from analyzer.semantics.tree import Chance, Leaf
from tests.support.answers import (
    ALIVE,
    BEFORE,
    BLOCKED,
    DEAD,
    ENDED,
    LOSSY,
    Answers,
    measured,
    whatif_answer,
)
from tests.support.cluster_answers import READ
from tests.support.documents import golden_files, renamed, schema, schema_name, schema_version
from tests.support.predicted_answers import whatif_of_every_node

_SUFFIXES = {
    "text": "txt",
    "json": "json",
    "tsv": "tsv",
    "dot": "dot",
    "junit": "xml",
    "sarif": "sarif",
    "prometheus": "prom",
    "svg": "svg",
    "html": "html",
    "markdown": "md",
}
verbs = pytest.mark.parametrize("verb", sorted(RENDERERS))


@pytest.mark.parametrize(
    ("verb", "suffix"),
    [
        (verb, _SUFFIXES[name])
        for verb, formats in RENDERERS.items()
        for name in formats
        if not verb.startswith("lab ")
    ],
)
def test_every_report_has_a_golden_file(verb: str, suffix: str) -> None:
    assert schema_name(verb) in {file.stem for file in golden_files(suffix)}


@verbs
def test_a_json_document_names_its_schema_first_and_follows_it(verb: str) -> None:
    name = schema_name(verb)
    document = json.loads(Answers().json(verb))
    assert next(iter(document.items())) == (
        "schema",
        f"kubeodds/{name}/{schema_version(name)}",
    )
    Draft202012Validator(schema(name)).validate(document)


def documents(verb: str) -> Iterator[Any]:
    """Give documents that hold every field between them: all known, and not all known."""
    for answers in (Answers(), Answers(BEFORE), Answers(LOSSY), Answers(BLOCKED)):
        yield json.loads(answers.json(verb), object_hook=_without_patches)
    if verb == "tree":
        yield json.loads("".join(tree_json.render(of_three())))
    if verb == "loss-cluster":
        answer = Answers().of(verb)
        assert isinstance(answer, LossClusterAnswer)
        yield json.loads("".join(loss_cluster_json.render(replace(answer, prediction=READ))))
    if verb == "whatif":
        read = replace(whatif_answer(BEFORE), prediction=READ)
        yield json.loads("".join(whatif_json.render(read)))
        everywhere = whatif_of_every_node(whatif_answer(BEFORE), BEFORE)
        yield json.loads("".join(whatif_json.render(everywhere)))


def _without_patches(read: dict[str, Any]) -> dict[str, Any]:
    """Empty a merge patch: what is in it has the fields of the API."""
    return read | {"merge": {}} if "merge" in read else read


def of_three() -> TreeAnswer:
    """Return a tree with a draw of three as nft makes it: no draws one after the other do."""
    answer = Answers().of("tree")
    assert isinstance(answer, TreeAnswer)
    service, route, _ = answer.trees[0]
    leaf = Leaf(Drop(), Packet())
    drawn = Chance(tuple((weight, leaf) for weight in numgen_weights(7)))
    return replace(answer, trees=((service, route, drawn),))


#: Fields that stand there only where objects are given, where flows are lost to rules of others, or
#: where sources in several networks have one route.
_OPTIONAL = {
    "services": {"services.api", "routes.lost", "routes.astray", "routes.networks", "networks"},
    "loss": {
        *(f"services.routes.{each}" for each in ("on_dead", "otherwise", "networks")),
        "services.worst_loss.more_networks",
        "networks",
    },
    "loss-cluster": {f"services.{each}worst_loss.more_networks" for each in ("", "at.")},
    "loss-nodes": {
        *(f"nodes.services.routes.{each}" for each in ("on_dead", "otherwise", "networks")),
        "nodes.services.worst_loss.more_networks",
        "networks",
    },
    "repair": {"services.routes.more_networks"},
    "timeline": {"services.route.more_networks"},
    "tree": {"trees.more_networks"},
    "whatif": {"services.worst_single.loss.more_networks", "failures.worst_loss.more_networks"},
}


@pytest.mark.alike
@verbs
def test_a_schema_notices_each_field_that_is_renamed(verb: str) -> None:
    validator = Draft202012Validator(schema(schema_name(verb)))
    once: dict[tuple[str, ...], Any] = {}
    for document in documents(verb):
        once |= dict(renamed(document))
    unnoticed = {".".join(where) for where, changed in once.items() if validator.is_valid(changed)}
    assert unnoticed == _OPTIONAL.get(verb, set())


def fields(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from fields(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from fields(item)


def properties(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from properties(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "properties":
                yield from item
            yield from properties(item)


@pytest.mark.alike
@verbs
def test_a_schema_knows_just_the_fields_that_are_written(verb: str) -> None:
    written = {field for document in documents(verb) for field in fields(document)}
    assert set(properties(schema(schema_name(verb)))) == written


@verbs
def test_a_json_document_is_ascii(verb: str) -> None:
    text = Answers(Answers().text.replace("ns/a", "ns/\x1b\x7f\N{RIGHT-TO-LEFT OVERRIDE}é\udcff"))
    assert set(text.json(verb)) <= {*map(chr, range(0x20, 0x7F)), "\n"}


def test_a_share_that_is_not_known_is_null_beside_its_bounds() -> None:
    first = json.loads(Answers().json("services"))["distributions"][0]
    assert first["values"] == [None, None]
    assert (first["lower"], first["upper"]) == ([0.0, 0.5], [0.5, 1.0])


def test_a_measurement_survives_being_written_and_read() -> None:
    found = document_of(Answers().json("lab run").encode(), "run.json")
    measurements = [measurement_of(each) for each in found["measurements"]]
    assert measurements == [measured(DEAD, ALIVE), ENDED]


# --- what text says ------------------------------------------------------------


def test_services_show_bounds_refusals_and_what_is_unknown() -> None:
    shown = Answers().plain("services")
    assert re.search(
        r"ClusterIP 10.96.0.1:80 affinity 10 min in part unknown  .*  0.0 to 50.0%\n", shown
    )
    assert "ClusterIP 10.96.0.9:53 no endpoints: reject" in shown
    assert "1 frontend with shares known only within bounds." in shown


def test_a_loss_begins_with_who_is_hurt_and_how_badly() -> None:
    shown = Answers().plain("loss").splitlines()
    assert shown[: shown.index("")] == [
        "Dead: endpoint 10.0.0.1 (1 endpoint address)",
        "2 ServicePorts: 1 partial loss, 1 without endpoints.",
        "Partial loss: ns/a:http.",
        "Without endpoints, whatever is dead: ns/empty:dns.",
        "Worst: ns/a:http loses 100.0% of new flows, from pod, pod-elsewhere, node, external to "
        "NodePort *:30080.",
        "Of new flows, by the worst route (pod, node, external to ClusterIP, NodePort).",
    ]


def test_where_nothing_is_dead_nothing_is_said_to_be_well() -> None:
    shown = Answers(dead=()).plain("loss").splitlines()
    assert shown[0] == "Nothing marked dead."
    assert shown[-1].startswith("Say what is dead to see what is lost: ")


def test_a_tree_tells_why_it_does_not_know() -> None:
    shown = Answers().plain("tree")
    assert "not known: dump.txt:" in shown
    assert "└─ case 2" in shown
    assert "=> 10.0.0.1:80 DEAD" in shown


@pytest.mark.parametrize("comment", ["a -j ACCEPT", r"a -j ACCEPT \"b\"", r"a -j ACCEPT \"b"])
def test_the_target_shown_is_the_rules_own_whatever_its_comment_says(comment: str) -> None:
    told = Answers(
        Answers().text.replace(
            "-A KUBE-EXT-A -j", f'-A KUBE-EXT-A -m comment --comment "{comment}" -j'
        )
    )
    assert "KUBE-EXT-A -j KUBE-SEP-1  line" in told.plain("tree")


def test_the_lab_puts_measured_beside_predicted() -> None:
    shown = Answers().plain("lab run")
    assert "On dead endpoints: predicted 50.0%, measured 50.21% (5,021 of 10,000)." in shown
    assert shown.splitlines()[-1].startswith("Verdict: agrees; 1 route not measured (")


def test_real_clients_are_told_with_their_waiting() -> None:
    shown = Answers().plain("lab clients")
    assert "50.0%   28 of 60  47%            5.1 s        5.0 s  agrees" in shown
    assert shown.splitlines()[-1] == (
        "Verdict: agrees; 1 target not predicted; 1 route not measured (exact binomial tests; "
        "false-alarm rate 1e-06 for the whole run)"
    )


def test_a_repair_is_told_with_the_rate_of_the_run() -> None:
    assert Answers().plain("lab repair").splitlines()[-1] == (
        "Verdict: DISAGREES; 1 route not measured (exact binomial tests, Holm-corrected; "
        "false-alarm rate 1e-06 for the whole run)"
    )


def test_a_disagreement_is_told_with_its_faults() -> None:
    wrong = measured(DEAD, ALIVE, duplicates=1)
    document = lab_text.render(LabAnswer(dead="nothing", verdicts=(judge(wrong),), rate=1e-6))
    assert render_unstyled(document).splitlines()[-2:] == [
        "kube-system/kube-dns:dns: 1 flows arrived twice",
        "Verdict: DISAGREES (exact binomial tests, Holm-corrected; "
        "false-alarm rate 1e-06 for the whole run)",
    ]
