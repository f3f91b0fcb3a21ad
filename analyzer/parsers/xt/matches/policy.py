"""``-m policy``. Source: extensions/libxt_policy.c, ``policy4_save``."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.matches import MatchPolicy
from analyzer.model.iptables.options import PolicyElement
from analyzer.parsers.words import Words
from analyzer.parsers.xt.options import Options, flag, negatable, plain
from analyzer.parsers.xt.values import WORD, number, one_of

_NUMBER: Final = number(most=0xFFFFFFFF)

_HEAD: Final = Options(
    MatchPolicy,
    (
        plain("--dir", "direction", one_of("in", "out")),
        plain("--pol", "policy", one_of("ipsec", "none")),
        flag("--strict", "strict"),
    ),
)
_ELEMENT: Final = Options(
    PolicyElement,
    (
        negatable("--reqid", "reqid", _NUMBER),
        negatable("--spi", "spi", number(most=0xFFFFFFFF, hexadecimal=True)),
        negatable("--proto", "protocol", WORD),
        negatable("--mode", "mode", one_of("transport", "tunnel")),
        negatable("--tunnel-dst", "tunnel_destination", WORD),
        negatable("--tunnel-src", "tunnel_source", WORD),
    ),
)


class Policy:
    """Options for the whole policy, then for each transformation, separated by ``--next``."""

    def parse(self, words: Words) -> MatchPolicy:
        """Take the options."""
        head = _HEAD.parse(words)
        elements = [_ELEMENT.parse(words)]
        while words.peek() == "--next":
            words.take("--next")
            elements.append(_ELEMENT.parse(words))
        nothing = elements == [PolicyElement()]
        return MatchPolicy(
            direction=head.direction,
            policy=head.policy,
            strict=head.strict,
            elements=() if nothing else tuple(elements),
        )

    def render(self, value: MatchPolicy) -> str:
        """Return the options."""
        elements = " --next ".join(_ELEMENT.render(each) for each in value.elements)
        return f"{_HEAD.render(value)} {elements}".rstrip()


POLICY: Final = Policy()
