"""The inventory (SBOM) of a package, in CycloneDX's JSON: what it holds, and what it may use.

The program needs no package. What the extras of pyproject.toml bring is listed as optional, in the
versions that requirements-extras.lock pins; the lock has their hashes.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT: Final = Path(__file__).parents[1]
#: Below the root of the project; pyproject.toml puts it into the wheel.
FILE: Final = Path("release", "kubeodds.cdx.json")
#: Below the root of the project.
LOCK: Final = Path("requirements-extras.lock")
_PINNED: Final = re.compile(
    r"^([a-z0-9][a-z0-9-]*)==([^ ;]+)(.*?)(?=^[a-z0-9]|\Z)", re.MULTILINE | re.DOTALL
)
_VIA: Final = re.compile(r"#(?: via)? +([a-z][a-z0-9-]*)(?= |$)", re.MULTILINE)


def pinned() -> Iterator[tuple[str, str, frozenset[str]]]:
    """Give each package of the lock: its name, its version, and what asks for it."""
    for name, version, rest in _PINNED.findall((ROOT / LOCK).read_text(encoding="utf-8")):
        yield name, version, frozenset(_VIA.findall(rest))


def inventory() -> tuple[Path, str]:
    """Return where the inventory is kept, below the root of the project, and its text."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = _component(
        project["name"], project["version"], ComponentType.APPLICATION, ComponentScope.REQUIRED
    )
    own.description = project["description"]
    own.licenses = [LicenseFactory().make_from_string(project["license"])]
    bom = Bom()
    bom.metadata.component = own
    packages = [*pinned()]
    found = {
        name: _component(name, version, ComponentType.LIBRARY, ComponentScope.OPTIONAL)
        for name, version, _ in packages
    }
    bom.components = found.values()
    for parent, component in {own.name: own, **found}.items():
        bom.register_dependency(
            component, [found[name] for name, _, via in packages if parent in via]
        )
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    # Neither a time nor a random number: the same sources give the same bytes.
    del document["serialNumber"], document["metadata"]["timestamp"]
    return FILE, json.dumps(document, indent=1, sort_keys=True) + "\n"


def _component(name: str, version: str, kind: ComponentType, scope: ComponentScope) -> Component:
    url = PackageURL("pypi", None, name, version)
    return Component(
        name=name, version=version, type=kind, scope=scope, purl=url, bom_ref=url.to_string()
    )
