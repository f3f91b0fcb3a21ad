"""The tables of a store: their columns, and the views for SQL queries.

Each table is a folder of Parquet files with the same columns; docs/cluster.md describes the
columns. DuckDB alone can read and write them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

#: By table, its columns and their types, in order.
TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "nodes": {
        "node": "VARCHAR",
        "source": "VARCHAR",
        "state": "VARCHAR",
        "reason": "VARCHAR",
        "fingerprint": "VARCHAR",
        "files": "VARCHAR[]",
        "taken": "VARCHAR",
        "synced": "DOUBLE",
        "map": "VARCHAR",
        "mode": "VARCHAR",
        "rules": "BIGINT",
        "unseen": "VARCHAR",
        "cut": "INTEGER[]",
        "left_out": "VARCHAR[]",
        "unled": "VARCHAR[]",
        "facts": "VARCHAR",
        "written": "BIGINT",
    },
    "maps": {"map": "VARCHAR", "blocks": "VARCHAR[]"},
    "blocks": {"block": "VARCHAR", "service_ports": "VARCHAR[]"},
    "service_ports": {
        "service_port": "VARCHAR",
        "name": "VARCHAR",
        "namespace": "VARCHAR",
        "service": "VARCHAR",
        "port_name": "VARCHAR",
        "protocol": "VARCHAR",
        "version": "INTEGER",
        "affinity": "BIGINT",
        "frontends": "VARCHAR",
        "refusals": "VARCHAR",
        "unfilled": "VARCHAR",
    },
    "routes": {
        "service_port": "VARCHAR",
        "position": "INTEGER",
        "kind": "VARCHAR",
        "address": "VARCHAR",
        "port": "INTEGER",
        "frontend": "INTEGER",
        "source": "VARCHAR",
        "network": "VARCHAR",
        "endpoints": "VARCHAR",
        "distribution": "VARCHAR",
        "unresolved_numerator": "VARCHAR",
        "unresolved_exponent": "BIGINT",
        "masquerade": "BOOLEAN[]",
        "astray": "VARCHAR",
        "lost": "VARCHAR",
    },
    "endpoints": {
        "endpoints": "VARCHAR",
        "position": "INTEGER",
        "address": "VARCHAR",
        "port": "INTEGER",
        "node": "VARCHAR",
        "zone": "VARCHAR",
        "pod": "VARCHAR",
    },
    "distributions": {
        "distribution": "VARCHAR",
        "position": "INTEGER",
        "lower_numerator": "VARCHAR",
        "lower_exponent": "BIGINT",
        "upper_numerator": "VARCHAR",
        "upper_exponent": "BIGINT",
        "lower": "DOUBLE",
        "upper": "DOUBLE",
    },
    "diagnostics": {
        "node": "VARCHAR",
        "source": "VARCHAR",
        "severity": "VARCHAR",
        "code": "VARCHAR",
        "message": "VARCHAR",
        "file": "VARCHAR",
        "line": "BIGINT",
        "column": "BIGINT",
        "partial": "BOOLEAN",
        "written": "BIGINT",
    },
}

#: The views for queries; if a node was read more than once, the last row counts.
VIEWS: Final[Mapping[str, str]] = {
    "nodes": "SELECT * FROM (SELECT * FROM {nodes} QUALIFY written = max(written) OVER "
    "(PARTITION BY source)) WHERE state <> 'replaced'",
    "maps": "SELECT * FROM {maps}",
    "blocks": "SELECT * FROM {blocks}",
    "service_ports": "SELECT * FROM {service_ports}",
    "routes": "SELECT * FROM {routes}",
    "endpoints": "SELECT * FROM {endpoints}",
    "distributions": "SELECT * FROM {distributions}",
    "diagnostics": "SELECT d.* FROM {diagnostics} d SEMI JOIN nodes n USING (source, written)",
    "node_service_ports": "SELECT node, source, unnest(b.service_ports) AS service_port FROM "
    "(SELECT node, source, unnest(m.blocks) AS block FROM nodes JOIN maps m USING (map)) "
    "JOIN blocks b USING (block)",
    "node_routes": "SELECT n.node, s.name, s.protocol, s.version, r.* FROM node_service_ports n "
    "JOIN service_ports s USING (service_port) JOIN routes r USING (service_port)",
    "route_endpoints": "SELECT r.service_port, r.position, e.position AS endpoint, e.address, "
    "e.port, e.node, e.zone, e.pod, d.* EXCLUDE (distribution, position) FROM routes r "
    "JOIN endpoints e USING (endpoints) JOIN distributions d ON "
    "d.distribution = r.distribution AND d.position = e.position",
}


def create_views(folder: str) -> str:
    """Return the SQL that makes the views over the tables in a folder.

    `folder` ends with a slash, or is empty where it is the current one.
    """
    files = {table: f"read_parquet('{folder}{table}/*.parquet')" for table in TABLES}
    return "".join(
        f"CREATE VIEW {name} AS {says.format(**files)};\n" for name, says in VIEWS.items()
    )
