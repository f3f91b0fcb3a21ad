from __future__ import annotations

import pytest

from analyzer.gate.quantities import quantity


@pytest.mark.parametrize(
    ("resource", "given", "amount"),
    [
        ("cpu", "500m", 500),
        ("cpu", 2, 2000),
        ("cpu", "0.1", 100),
        ("cpu", "1n", 1),
        ("memory", "1Gi", 1 << 30),
        ("memory", "128M", 128_000_000),
        ("memory", "1.5Ki", 1536),
        ("memory", "1e3", 1000),
        ("memory", "2E", 2 * 10**18),
        ("pods", "110", 110),
        ("nvidia.com/gpu", "1", 1),
    ],
)
def test_a_quantity_is_what_the_api_makes_of_it(resource: str, given: object, amount: int) -> None:
    assert quantity(resource, given) == amount


@pytest.mark.parametrize("given", ["", "1 Gi", "ten", "1gi", "-1", True, None, [], "1e999", "0x1"])
def test_what_is_none_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        quantity("memory", given)
