"""Values common to JSON documents. Fields may be added, never renamed.

A document is given piece by piece, an entry of its lists a line: so that the largest takes little
memory, `grep` finds an entry, and `diff` shows which ones differ. The encoder is json's own in C,
which asking for an indent would turn off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from analyzer.kubeproxy.view import Frontend, FrontendKind, ServicePort, Source
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.endings import Endings
from analyzer.model.probability import Bounds, Dyadic
from analyzer.semantics.tree import AnyRule

#: Of all documents, except for those of verbs that came later: ``kubeodds/VERB/2``.
VERSION: Final = 2
_FAMILIES: Final = {4: "ip", 6: "ip6"}
_KINDS: Final = {kind: kind.value for kind in FrontendKind}
#: As in JSON; reading an enumeration's value takes longer than writing the rest.
SOURCES: Final = {source: json.dumps(source.value) for source in Source}

#: Only ASCII comes out, so that nothing of a dump reaches a terminal as a control character.
encode: Final = json.JSONEncoder(separators=(",", ":")).encode


#: A field of a document: an encoded value, the encoded entries of a list, or what gives these.
Field: TypeAlias = str | Iterable[str] | Callable[[], Iterable[str] | None]


def document(verb: str, fields: Mapping[str, Field], version: int = VERSION) -> Iterator[str]:
    """Yield one JSON document that names its schema first.

    Fields hold an encoded value, or the encoded entries of a list. Entries are consumed in the
    order of the fields, so a field may depend on what the entries of an earlier one left behind:
    whether it is there at all, if it has to be called for its entries, and then returns None.
    """
    yield f'{{"schema":"kubeodds/{verb}/{version}"'
    for name, field in fields.items():
        value = field() if callable(field) else field
        if value is None:
            continue
        yield f',\n"{name}":'
        if isinstance(value, str):
            yield value
            continue
        before = "[\n"
        for entry in value:
            yield before + entry
            before = ",\n"
        yield "\n]" if before != "[\n" else "[]"
    yield "\n}\n"


def column(values: Sequence[Any]) -> Any:
    """Return a column of one value for each endpoint: just the value if all are equal.

    No value is a list, so readers can tell the two apart.
    """
    if not values:
        return None
    first = values[0]
    same = all(each is first for each in values) or values.count(first) == len(values)
    return first if same else [*values]


def probability(value: Dyadic) -> dict[str, Any]:
    """Return numerator / 2**exponent, the numerator in hexadecimal."""
    return {
        "numerator": hex(value.numerator),
        "exponent": value.exponent,
        "value": float(value),
    }


def bounds(value: Bounds) -> dict[str, Any]:
    """Return both ends."""
    return {"lower": probability(value.lower), "upper": probability(value.upper)}


def family(version: int | None) -> str | None:
    """Return nft's name of an IP version; None if the version is not known."""
    return None if version is None else _FAMILIES[version]


def frontend(value: Frontend) -> dict[str, Any]:
    """Return a frontend; without an address for any address of the node."""
    return {
        "kind": _KINDS[value.kind],
        "address": None if value.address is None else str(value.address),
        "port": value.port,
    }


def name(service: ServicePort) -> dict[str, Any]:
    """Return what identifies a ServicePort."""
    return {
        "name": service.name.text,
        "namespace": service.name.namespace,
        "service": service.name.service,
        "port_name": service.name.port,
        "protocol": service.protocol,
        "family": family(service.version),
    }


def diagnostics(values: Sequence[Diagnostic]) -> Iterator[str]:
    """Yield all diagnostics, encoded."""
    for value in values:
        yield encode(
            {
                "severity": value.severity.value,
                "code": value.code,
                "message": value.message,
                "file": value.file,
                "line": value.line,
                "column": value.column,
            }
        )


class RuleNumbers:
    """Numbers rules in order of first use, so that each is written once.

    A map of nft with all its elements is one rule, and each of a thousand ways goes through it.
    """

    def __init__(self) -> None:
        # By identity; the rules are kept, so that no other gets theirs.
        self._numbers: dict[int, tuple[int, AnyRule]] = {}

    def of(self, rules: Iterable[AnyRule]) -> list[int]:
        """Return the numbers of rules."""
        numbers = self._numbers
        return [numbers.setdefault(id(rule), (len(numbers), rule))[0] for rule in rules]

    def written(self) -> Iterator[str]:
        """Yield each rule as evidence, encoded: its location and its text."""
        from analyzer.reports.rules import program
        from analyzer.semantics.onward import chain_of

        for _, rule in self._numbers.values():
            yield encode(
                {
                    "table": rule.location.table,
                    "chain": chain_of(rule),
                    "line": rule.location.line,
                    "program": program(rule),
                    "text": rule.raw,
                }
            )


def endings(found: Endings) -> list[dict[str, Any]]:
    """Return how flows end that reach no endpoint, with the share of each."""
    from analyzer.model.programs import program_of

    return [
        {
            "kind": ending.kind.value,
            "how": ending.how,
            "table": ending.table,
            "chain": ending.chain,
            "rule": ending.rule,
            "program": program_of(ending.chain, ending.rule, ending.table) if ending.rule else None,
            "file": None if ending.place is None else ending.place.file,
            "line": None if ending.place is None else ending.place.line,
            **bounds(share),
        }
        for ending, share in found
    ]
