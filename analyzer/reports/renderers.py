"""The formats of each verb: a new one is one file and one row here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from analyzer.reports.document import Document

    #: Text is a Document, since how it looks depends on where it is shown; the others are final,
    #: whole or in pieces.
    Renderer = Callable[[Any], Document | str | Iterator[str]]


#: By verb and format: the module of this package whose `render` makes the report of an answer,
#: and for some what makes another form of its Document.
#: Named and not imported, since each run needs just one of them.
RENDERERS: Final[Mapping[str, Mapping[str, str]]] = {
    "services": {
        "text": "services_text",
        "json": "services_json",
        "tsv": "services_tsv",
        "markdown": "services_text as markdown",
    },
    "tree": {
        "text": "tree_text",
        "json": "tree_json",
        "dot": "tree_dot",
        "svg": "tree_svg",
        "html": "pages.tree",
        "markdown": "tree_text as markdown",
    },
    "trace": {
        "text": "trace_text",
        "json": "trace_json",
        "html": "pages.trace",
        "markdown": "trace_text as markdown",
    },
    "loss": {
        "text": "loss_text",
        "json": "loss_json",
        "tsv": "loss_tsv",
        "html": "pages.loss",
        "markdown": "loss_text as markdown",
    },
    "loss-nodes": {
        "text": "loss_nodes_text",
        "json": "loss_nodes_json",
        "tsv": "loss_nodes_tsv",
        "html": "pages.loss_nodes",
        "markdown": "loss_nodes_text as markdown",
    },
    "loss-cluster": {
        "text": "loss_cluster_text",
        "json": "loss_cluster_json",
        "tsv": "loss_cluster_tsv",
        "html": "pages.loss_cluster",
        "markdown": "loss_cluster_text as markdown",
    },
    "whatif": {
        "text": "whatif_text",
        "json": "whatif_json",
        "tsv": "whatif_tsv",
        "junit": "whatif_junit",
        "prometheus": "whatif_prometheus",
        "svg": "whatif_svg",
        "html": "pages.whatif",
        "markdown": "whatif_text as markdown",
    },
    "timeline": {
        "text": "timeline_text",
        "json": "timeline_json",
        "svg": "timeline_svg",
        "html": "pages.timeline",
        "markdown": "timeline_text as markdown",
    },
    "advise": {
        "text": "advise_text",
        "json": "advise_json",
        "tsv": "advise_tsv",
        "markdown": "advise_text as markdown",
    },
    "gate": {
        "text": "gate_text",
        "json": "gate_json",
        "tsv": "gate_tsv",
        "junit": "gate_junit",
        "sarif": "gate_sarif",
        "markdown": "gate_text as markdown",
    },
    "client": {
        "text": "client_text",
        "json": "client_json",
        "markdown": "client_text as markdown",
    },
    "repair": {"text": "repair_text", "json": "repair_json"},
    "suspects": {
        "text": "suspects_text",
        "json": "suspects_json",
        "markdown": "suspects_text as markdown",
    },
    "pinned": {
        "text": "pinned_text",
        "json": "pinned_json",
        "markdown": "pinned_text as markdown",
    },
    "whatif --components": {"text": "components_text", "json": "components_json"},
    "diff": {
        "text": "diff_text",
        "json": "diff_json",
        "tsv": "diff_tsv",
        "html": "pages.diff",
        "markdown": "diff_text as markdown",
    },
    "lab run": {
        "text": "lab_text",
        "json": "lab_json",
        "html": "pages.lab",
        "markdown": "lab_text as markdown",
    },
    "lab run --for": {
        "text": "lab_phases_text",
        "json": "lab_phases_json",
        "markdown": "lab_phases_text as markdown",
    },
    "lab run --pcap": {
        "text": "lab_pcap_text",
        "json": "lab_pcap_json",
        "markdown": "lab_pcap_text as markdown",
    },
    "lab judge": {
        "text": "lab_text",
        "json": "lab_json",
        "html": "pages.lab",
        "markdown": "lab_text as markdown",
    },
    "lab verify": {
        "text": "lab_verify_text",
        "json": "lab_json",
        "junit": "lab_verify_junit",
        "html": "pages.lab_verify",
        "markdown": "lab_verify_text as markdown",
    },
    "lab repair": {
        "text": "lab_repair_text",
        "json": "lab_repair_json",
        "markdown": "lab_repair_text as markdown",
    },
    "cluster build": {
        "text": "cluster_build_text",
        "json": "cluster_build_json",
        "markdown": "cluster_build_text as markdown",
    },
    "cluster drift": {
        "text": "cluster_drift_text",
        "json": "cluster_drift_json",
        "tsv": "cluster_drift_tsv",
        "html": "pages.cluster_drift",
        "markdown": "cluster_drift_text as markdown",
    },
    "cluster timeline": {
        "text": "cluster_timeline_text",
        "json": "cluster_timeline_json",
        "tsv": "cluster_timeline_tsv",
        "markdown": "cluster_timeline_text as markdown",
    },
    "cluster sql": {
        "text": "cluster_sql_text",
        "json": "cluster_sql_json",
        "tsv": "cluster_sql_tsv",
        "markdown": "cluster_sql_text as markdown",
    },
    "lab clients": {"text": "clients_text", "json": "clients_json"},
}


def renderer(verb: str, format_name: str) -> Renderer:
    """Return the function that renders a verb's answer."""
    name, _, form = RENDERERS[verb][format_name].partition(" as ")
    found: Renderer = _loaded(name).render
    if form != "markdown":
        return found
    as_markdown = _loaded(form).render_markdown
    return lambda answer: as_markdown(found(answer))


def _loaded(name: str) -> Any:
    module = f"analyzer.reports.{name}"
    __import__(module)  # importlib takes longer to load than some of them
    return sys.modules[module]
