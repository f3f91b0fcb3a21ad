"""The plugin ``kubectl odds`` as krew installs it: an archive and the manifest that names it.

``python -m release.krew FOLDER`` writes both. The manifest names the archive by where it will be
published (``--uri``), or, without that, where it lies: krew then takes it with ``--archive``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from analyzer import __version__
from release import zipapp

ARCHIVE: Final = "kubectl-odds.zip"
MANIFEST: Final = "odds.yaml"
_DESCRIPTION: Final = """\
Computes, from the rules that kube-proxy left on a node, which share of new connections to each
Service lands on dead endpoints, exactly, and what to do about it: no API server is needed.

  iptables-save | kubectl odds loss - --objects objects.json --dead-node master

Without a dump at hand: kubectl odds collect | ssh node1 'sudo sh -s -- -' > node1.tar.gz
"""
_CAVEATS: Final = "It needs Python 3.11 or newer as python3 in PATH, and nothing else.\n"
#: krew's names of what Python and the program run on.
_PLATFORMS: Final = ("linux",)


def manifest(uri: str, sha256: str) -> dict[str, Any]:
    """Return the manifest, as krew's index has it."""
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "odds"},
        "spec": {
            "version": f"v{__version__}",
            "shortDescription": "What share of new connections kube-proxy's rules lose",
            "description": _DESCRIPTION,
            "caveats": _CAVEATS,
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": system}},
                    "uri": uri,
                    "sha256": sha256,
                    "bin": "kubectl-odds",
                    "files": [{"from": name, "to": "."} for name in ("kubectl-odds", "LICENSE")],
                }
                for system in _PLATFORMS
            ],
        },
    }


def write(folder: Path, uri: str = "") -> None:
    """Write the archive and the manifest into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / ARCHIVE
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "kubectl-odds"
        zipapp.write(program)
        members = {
            "LICENSE": ((zipapp.ROOT / "LICENSE").read_bytes(), 0o644),
            program.name: (program.read_bytes(), 0o755),
        }
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, (content, mode) in members.items():
            archive.writestr(zipapp.member(name, mode, zipfile.ZIP_STORED), content)
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    found = manifest(uri or target.resolve().as_uri(), digest)
    # JSON is YAML, and needs no package to write.
    (folder / MANIFEST).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """Write archive and manifest."""
    parser = argparse.ArgumentParser(prog="python -m release.krew", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("--uri", default="", help="where the archive will be published")
    options = parser.parse_args(words)
    write(options.folder, options.uri)
    return 0


if __name__ == "__main__":
    sys.exit(main())
