"""Which report is shown how. Each verb has its formats; a new one is a file and a row here."""

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


#: By verb and format: the module of this package whose `render` makes the report of an answer.
#: Named and not imported, since each run needs just one of them.
RENDERERS: Final[Mapping[str, Mapping[str, str]]] = {
    "services": {"text": "services_text", "json": "services_json", "tsv": "services_tsv"},
    "tree": {"text": "tree_text", "json": "tree_json", "dot": "tree_dot"},
    "trace": {"text": "trace_text", "json": "trace_json"},
    "loss": {"text": "loss_text", "json": "loss_json", "tsv": "loss_tsv"},
    "loss-nodes": {"text": "loss_nodes_text", "json": "loss_nodes_json", "tsv": "loss_nodes_tsv"},
    "loss-cluster": {
        "text": "loss_cluster_text",
        "json": "loss_cluster_json",
        "tsv": "loss_cluster_tsv",
    },
    "whatif": {
        "text": "whatif_text",
        "json": "whatif_json",
        "tsv": "whatif_tsv",
        "junit": "whatif_junit",
        "prometheus": "whatif_prometheus",
    },
    "timeline": {"text": "timeline_text", "json": "timeline_json"},
    "advise": {"text": "advise_text", "json": "advise_json", "tsv": "advise_tsv"},
    "client": {"text": "client_text", "json": "client_json"},
    "whatif --components": {"text": "components_text", "json": "components_json"},
    "diff": {"text": "diff_text", "json": "diff_json", "tsv": "diff_tsv"},
    "cluster build": {"text": "cluster_build_text", "json": "cluster_build_json"},
    "cluster drift": {
        "text": "cluster_drift_text",
        "json": "cluster_drift_json",
        "tsv": "cluster_drift_tsv",
    },
    "cluster sql": {
        "text": "cluster_sql_text",
        "json": "cluster_sql_json",
        "tsv": "cluster_sql_tsv",
    },
    "lab run": {"text": "lab_text", "json": "lab_json"},
    "lab judge": {"text": "lab_text", "json": "lab_json"},
    "lab verify": {"text": "lab_verify_text", "json": "lab_json", "junit": "lab_verify_junit"},
    "lab clients": {"text": "clients_text", "json": "clients_json"},
}


def renderer(verb: str, format_name: str) -> Renderer:
    """Return what makes the report of a verb's answer."""
    module = f"analyzer.reports.{RENDERERS[verb][format_name]}"
    __import__(module)  # importlib takes longer to load than some of them
    found: Renderer = sys.modules[module].render
    return found
