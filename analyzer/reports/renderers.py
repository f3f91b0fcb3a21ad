"""Which report is shown how. Each verb has its formats; a new one is a file and a row here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from analyzer.reports import (
    clients_json,
    clients_text,
    lab_json,
    lab_text,
    loss_json,
    loss_text,
    services_json,
    services_text,
    tree_json,
    tree_text,
)
from analyzer.reports.document import Document

#: Text is a Document, since how it looks depends on where it is shown; the others are final.
Renderer = Callable[[Any], Document | str]

RENDERERS: Final[Mapping[str, Mapping[str, Renderer]]] = {
    "services": {"text": services_text.render, "json": services_json.render},
    "tree": {"text": tree_text.render, "json": tree_json.render},
    "loss": {"text": loss_text.render, "json": loss_json.render},
    "lab run": {"text": lab_text.render, "json": lab_json.render},
    "lab verify": {"text": lab_text.render, "json": lab_json.render},
    "lab clients": {"text": clients_text.render, "json": clients_json.render},
}
