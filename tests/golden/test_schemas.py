"""Every JSON document follows its schema, and the schema notices a change."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.support.captures import FIXTURES
from tests.support.documents import SCHEMAS, golden_files, schema, schema_version

NAMES = sorted(path.stem for path in SCHEMAS.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one_of_draft_2020_12(name: str) -> None:
    assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_asks_for_its_own_name(name: str) -> None:
    assert schema(name)["properties"]["schema"] == {
        "const": f"kubeodds/{name}/{schema_version(name)}"
    }


@pytest.mark.parametrize(
    "file", golden_files("json"), ids=lambda file: str(file.relative_to(FIXTURES))
)
def test_a_golden_document_follows_its_schema(file: Any) -> None:
    document = json.loads(file.read_text(encoding="utf-8"))
    Draft202012Validator(schema(file.stem)).validate(document)


_RICH = "1.36.2-iptables-legacy/two-node@worker1"


@pytest.mark.parametrize("name", ["services", "tree", "loss"])
def test_a_field_may_be_added(name: str) -> None:
    file = FIXTURES / _RICH / "expected" / f"{name}.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    Draft202012Validator(schema(name)).validate(with_more(document))


def with_more(value: Any) -> Any:
    """Return a document with one more field in every object."""
    if isinstance(value, list):
        return [with_more(item) for item in value]
    if isinstance(value, dict):
        return {**{key: with_more(item) for key, item in value.items()}, "added": 1}
    return value


@pytest.mark.parametrize("numerator", ["1", "0X1", "0x", "0xG", "-0x1", 1])
def test_a_numerator_is_in_hexadecimal(numerator: object) -> None:
    file = FIXTURES / _RICH / "expected" / "services.json"
    document = copy.deepcopy(json.loads(file.read_text(encoding="utf-8")))
    document["distributions"][0]["unresolved"]["numerator"] = numerator
    assert not Draft202012Validator(schema("services")).is_valid(document)
