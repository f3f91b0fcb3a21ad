"""``--assume`` and ``--assume-nothing``: what is assumed beyond the rules."""

from __future__ import annotations

from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace

from analyzer.semantics.assumed import ASSUMPTIONS, BY_NAME, DEFAULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

#: What older versions called one.
_FORMERLY: Final = {"limit": "limits"}


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
        help=f"what the rules do not tell (default: {defaults}); of each also unknown, of "
        "reverse-path fail, of limits over; printed where an answer rests on it",
    )
    parser.add_argument(
        "--assume-nothing",
        dest="assumed",
        action=_AssumeNothing,
        nargs=0,
        default=DEFAULTS,
        help="none of these but what --assume names: bounds, which hold whatever is true",
    )


def _assumptions(text: str) -> Mapping[str, str]:
    return dict(_assumption(each) for each in text.split(","))


def _assumption(text: str) -> tuple[str, str]:
    name, _, of = text.partition("=")
    name = _FORMERLY.get(name, name)
    known = BY_NAME.get(name)
    if known is None or of not in known.values:
        every = ", ".join(f"{each.name}={'|'.join(each.values)}" for each in ASSUMPTIONS)
        raise ArgumentTypeError(f"{text!r} is none of {every}")
    return name, of


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


class _AssumeNothing(Action):
    """Assumes nothing but what is named."""

    def __call__(self, _: object, options: Namespace, __: Any, ___: Any = None) -> None:
        """Take nothing for the default."""
        options.assumed = _given(options.assumed, {}, {})
