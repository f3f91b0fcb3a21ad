"""The script that ``collect`` prints, for a node with neither Python nor kubectl.

It is data of the package, ``data/collect.sh``. Options are numbers by the time that they come
here, and only numbers are put into its text.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from analyzer import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

EPILOG: Final = (
    "The script needs a POSIX shell, tar and what every node has; it changes nothing there. It "
    "collects rules with counters, connections, addresses, routes, kube-proxy's arguments and, "
    "if the API answers, objects, and writes one tar.gz that only its owner can read: it "
    "contains addresses and pod specs. Its MANIFEST names what is missing or was too slow. `sh "
    "-s -- FILE` says where to write; - is stdout; default: a file in the current folder, named "
    "after node and time."
)
#: Seconds.
_UNITS: Final = {"s": 1, "m": 60}
_MOST: Final = 3600
_MOST_DIGITS: Final = 4


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the script."""
    parser.add_argument(
        "--twice",
        metavar="TIME",
        type=seconds_from_text,
        default=0,
        help="take rules and connections again after this time (for example 10s), so that rates "
        "are known",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=seconds_from_text,
        default=20,
        help="stop a command that takes longer (default: 20s; all of them together: 5m)",
    )
    parser.add_argument(
        "--digest",
        metavar="FILE",
        help=(
            "hash names on the node with the secret in this file, created if it does not exist; "
            "addresses stay, and anything that may contain other names is not collected. The "
            "script then contains the secret"
        ),
    )


def seconds_from_text(text: str) -> int:
    """Return a time written ``10``, ``10s`` or ``2m``, in seconds."""
    unit = _UNITS.get(text[-1:], 0)
    digits = text[:-1] if unit else text
    good = digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS
    seconds = int(digits) * (unit or 1) if good else 0
    if not 1 <= seconds <= _MOST:
        raise ArgumentTypeError(f"{text!r} is not a time from 1s to 60m (for example 10s)")
    return seconds


def script(*, twice: int, timeout: int, salt: bytes = b"") -> str:
    """Return the script; `twice` and `timeout` are seconds, `twice` is 0 to collect once only.

    With a `salt` names are hashed.
    """
    from hashlib import sha256
    from importlib.resources import files

    text = files("analyzer").joinpath("data/collect.sh").read_text(encoding="utf-8")
    for before, after in (
        ("version=unknown", f"version={__version__}"),
        ("twice=0", f"twice={twice:d}"),
        ("limit=20", f"limit={timeout:d}"),
        ("salt=''", f"salt={sha256(salt).hexdigest()}" if salt else "salt=''"),
    ):
        assert text.count(f"\n{before}\n") == 1, before
        text = text.replace(f"\n{before}\n", f"\n{after}\n")
    return text
