"""Flows through a dump's rules with some endpoints silent, and what conntrack has of them then.

A program: it leaves the host's network. Prints what ``conntrack -L`` prints.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import SimpleNamespace

from netns_lab.arguments import parser as lab_parser
from netns_lab.asked import set_up
from netns_lab.command import run
from netns_lab.established import Established
from netns_lab.netlink import forget_flows


def main(words: Sequence[str] | None = None) -> int:
    """Send so many flows of each route; options behind ``--`` are those of `lab run`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=500, help="flows of each route")
    parser.add_argument("rest", nargs="*")
    given = parser.parse_args(words)
    options = lab_parser().parse_args(["run", *given.rest], SimpleNamespace())
    ((lab, routes),) = set_up(options, given.each).labs
    forget_flows(lab.topology.node)
    for service, route in routes:
        Established(lab, service, route, given.each, None).send()
    print(run(lab.topology.node, ["conntrack", "-L"]).stdout, end="")  # noqa: T201  # it is its output
    lab.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
