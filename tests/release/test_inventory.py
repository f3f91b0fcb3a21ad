"""The inventory lists what extras bring, as the lock pins it, and follows its schema."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.resources import files
from typing import Any
from urllib.parse import urljoin

from jsonschema import Draft7Validator
from referencing import Registry
from referencing.jsonschema import DRAFT7

from analyzer import __version__
from release import inventory

PROJECT = tomllib.loads((inventory.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Files of cyclonedx-python-lib; the first uses the others.
SCHEMAS = tuple(f"{name}.SNAPSHOT.schema.json" for name in ("bom-1.6", "spdx", "jsf-0.82"))


def document() -> Any:
    return json.loads((inventory.ROOT / inventory.FILE).read_text(encoding="utf-8"))


def depends_on() -> dict[str, set[str]]:
    return {
        name(each["ref"]): {name(other) for other in each.get("dependsOn", ())}
        for each in document()["dependencies"]
    }


def name(reference: str) -> str:
    return reference.removeprefix("pkg:pypi/").partition("@")[0]


def test_it_follows_the_schema_of_cyclonedx() -> None:
    folder = files("cyclonedx.schema").joinpath("_res")
    schemas = {
        name: json.loads(folder.joinpath(name).read_text(encoding="utf-8")) for name in SCHEMAS
    }
    # They name each other by file, from where the first says that it is.
    registry: Registry[Any] = Registry().with_resources(
        (urljoin(schemas[SCHEMAS[0]]["$id"], name), DRAFT7.create_resource(each))
        for name, each in schemas.items()
    )
    validator = Draft7Validator(schemas[SCHEMAS[0]], registry=registry)
    validator.validate(document())
    broken = {**document(), "components": [{"name": "a"}]}
    assert not validator.is_valid(broken)


def test_it_names_this_version() -> None:
    own = document()["metadata"]["component"]
    assert (own["name"], own["version"]) == ("kubeodds", __version__)
    assert PROJECT["version"] == __version__


def test_it_lists_each_package_of_the_lock_as_optional() -> None:
    lock = (inventory.ROOT / inventory.LOCK).read_text(encoding="utf-8")
    locked = set(re.findall(r"^(\S+)==(\S+)", lock, re.MULTILINE))
    listed = {(each["name"], each["version"]) for each in document()["components"]}
    assert listed == locked
    assert {each["scope"] for each in document()["components"]} == {"optional"}


def test_what_it_depends_on_is_what_the_extras_name() -> None:
    extras = {
        re.split(r"[^a-z0-9-]", requirement)[0]
        for extra in PROJECT["optional-dependencies"].values()
        for requirement in extra
    }
    assert PROJECT["dependencies"] == []
    assert depends_on()["kubeodds"] == extras


def test_every_package_is_reached() -> None:
    graph = depends_on()
    seen, ahead = set(), {"kubeodds"}
    while ahead:
        seen |= ahead
        ahead = {below for each in ahead for below in graph[each]} - seen
    assert seen == graph.keys()
