"""``--assume`` and ``--assume-nothing``: what is assumed beyond the rules."""

from __future__ import annotations

import re
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace

from analyzer.semantics.assumed import ASSUMPTIONS, BY_NAME, DEFAULTS, POD_INTERFACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

#: What older versions called one.
_FORMERLY: Final = {"limit": "limits"}
#: Source: Linux, include/uapi/linux/if.h, ``IFNAMSIZ``, which counts the zero behind a name.
_MOST_LETTERS: Final = 15
#: What the assumption may be that is no device.
_WORDS: Final = frozenset(BY_NAME[POD_INTERFACE].values)


def add_assumed_options(parser: ArgumentParser) -> None:
    """Add both options, which together give ``assumed``: what is assumed, by name."""
    defaults = ", ".join(f"{name}={of}" for name, of in DEFAULTS.items())
    parser.add_argument(
        "--assume",
        dest="assumed",
        metavar="NAME=VALUE",
        action=_Assume,
        type=_assumptions,
        default=DEFAULTS,
        help=(
            f"what to assume about facts that no dump contains (default: {defaults}); each may be "
            "unknown, too, reverse-path fail, limits over; printed if a result depends on it"
        ),
    )
    parser.add_argument(
        "--pod-interface",
        dest="assumed",
        metavar="PATTERN",
        action=_PodInterface,
        type=_patterns,
        default=DEFAULTS,
        help="devices that belong to pods, for example cali+ (default: as network plugins name "
        "them); the same as --assume pod-interface=PATTERN",
    )
    parser.add_argument(
        "--assume-nothing",
        dest="assumed",
        action=_AssumeNothing,
        nargs=0,
        default=DEFAULTS,
        help="assume only what --assume names; where an answer depends on more, it is bounds",
    )


def _assumptions(text: str) -> Mapping[str, str]:
    return dict(_assumption(each) for each in text.split(","))


def _assumption(text: str) -> tuple[str, str]:
    name, _, of = text.partition("=")
    name = _FORMERLY.get(name, name)
    if name == POD_INTERFACE and of not in BY_NAME[name].values:
        return name, _pattern(of)
    known = BY_NAME.get(name)
    if known is None or of not in known.values:
        every = ", ".join(f"{each.name}={'|'.join(each.values)}" for each in ASSUMPTIONS)
        raise ArgumentTypeError(f"{text!r} is not one of {every}")
    return name, of


def _patterns(text: str) -> Mapping[str, str]:
    return {POD_INTERFACE: " ".join(map(_pattern, text.split(",")))}


def _pattern(text: str) -> str:
    """Return the name of a device as iptables writes it; ``*`` at its end is ``+``.

    Source: iptables, libxtables/xtables.c, ``xtables_parse_interface``.
    """
    found = f"{text[:-1]}+" if text.endswith("*") else text
    if not 0 < len(found) <= _MOST_LETTERS or found == "+" or re.search(r"[\s/*!]", found):
        raise ArgumentTypeError(
            f"{text!r} is not a device or a pattern of devices (for example cni0 or cali+)"
        )
    return found


class _Given(dict[str, str]):
    """What is assumed, and what of it was named."""

    named: Mapping[str, str] = {}
    base: Mapping[str, str] = DEFAULTS


def _given(before: object, named: Mapping[str, str], base: Mapping[str, str] | None) -> _Given:
    """Return what is assumed now; the order of options does not matter."""
    former = before if isinstance(before, _Given) else _Given()
    named = {**former.named, **named}
    base = former.base if base is None else base
    found = _Given({**base, **named})
    found.named, found.base = named, base
    return found


class _Assume(Action):
    """Takes what is assumed instead of the default."""

    def __call__(self, _: object, options: Namespace, values: Any, __: Any = None) -> None:
        """Take some."""
        options.assumed = _given(options.assumed, values, None)


class _PodInterface(Action):
    """Takes devices of pods besides those that were named before."""

    def __call__(self, _: object, options: Namespace, values: Any, __: Any = None) -> None:
        """Take some."""
        before = options.assumed.named if isinstance(options.assumed, _Given) else {}
        named = [*before.get(POD_INTERFACE, "").split(), *values[POD_INTERFACE].split()]
        every = " ".join(dict.fromkeys(each for each in named if each not in _WORDS))
        options.assumed = _given(options.assumed, {POD_INTERFACE: every}, None)


class _AssumeNothing(Action):
    """Assumes only what is named."""

    def __call__(self, _: object, options: Namespace, __: Any, ___: Any = None) -> None:
        """Take nothing for the default."""
        options.assumed = _given(options.assumed, {}, {})
