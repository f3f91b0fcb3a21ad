"""Shell completion scripts: data files of the package, one for each shell.

``release/completion.py`` makes them of the parser; a test holds that they are what it makes.
"""

from __future__ import annotations


def script(shell: str) -> str:
    """Return the script of bash, zsh or fish."""
    from importlib.resources import files

    path = files("analyzer").joinpath(f"data/completion/kubeodds.{shell}")
    return path.read_text(encoding="utf-8")
