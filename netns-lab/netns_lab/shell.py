"""``kubeodds lab shell``: interactive use of the lab, or by a script.

A program runs in one place of the lab; ``ip netns exec`` knows the names of all others. Endpoints
report who they are to HTTP clients, and to other TCP clients that send something first. The
cluster's DNS knows the ClusterIPs of the dump's Services.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Final

from analyzer.failure.models import Dead
from analyzer.inputs.recognised import Input, read_input
from analyzer.kubeproxy.view import Source
from analyzer.output import say
from netns_lab import command
from netns_lab.asked import other_nodes
from netns_lab.backends import backend_of
from netns_lab.deaths import deaths_of, without_flapping
from netns_lab.errors import LabError
from netns_lab.experiment import Lab, LabSetup
from netns_lab.inside import Inside, fresh_folder, show
from netns_lab.naming import RESOLV_CONF, resolv_conf, responder
from netns_lab.node_ports import own_first
from netns_lab.places import OUTSIDE, LabPlace, LabPlaces
from netns_lab.pod_devices import pod_device

#: Seconds to wait for packets before checking whether the program has ended.
_POLL: Final = 0.05

#: Hidden from programs in the lab, because it has the sockets of services on the host.
_RUN: Final = Path("/run")
_OURS: Final = _RUN / "kubeodds"
_NAMESPACES: Final = _RUN / "netns"
_EXECUTABLE: Final = 0o755
#: Variables that make a shell read the user's files, or run something unexpected.
_NOT_PASSED_ON: Final = frozenset({"ENV", "BASH_ENV", "PROMPT_COMMAND", "PYTHONPATH"})

_MAP: Final = f"#!/bin/sh\nexec cat {_OURS}/map\n"
_GO: Final = f"""#!/bin/sh
# lab-in PLACE [COMMAND...]: run a program, or a shell, in another place of the lab.
if [ $# = 0 ] || [ ! -e "{_NAMESPACES}/$1" ]; then
    echo "usage: lab-in PLACE [COMMAND...]; places: $(ls {_NAMESPACES} | tr '\\n' ' ')" >&2
    exit 2
fi
place=$1
shift
if [ $# = 0 ]; then
    PS1="lab:$place\\\\$ "
    export PS1
    set -- SHELL
fi
exec ip netns exec "$place" "$@"
"""


def shell(options: SimpleNamespace) -> int:
    """Build the lab, run a shell or `options.command` in it, and return its exit status.

    The host's network must have been left already.

    Raises:
        LabError: the lab cannot start, or there is no such place or program.
    """
    given = read_input(options)
    if given.parts:
        raise LabError("one IP version at a time: pass the dump of iptables, or that of ip6tables")
    dead, deaths = deaths_of(options, given)
    nodes, told = other_nodes(options, given, dead)
    for each in told:
        say(each.message)
    is_outside = options.place == OUTSIDE
    lab = Lab(
        LabSetup(
            ruleset=given.ruleset,
            cluster=given.cluster,
            view=given.view,
            own=own_first(given),
            dead=dead,
            others=given.rulesets[1:],
            nodes=nodes,
            lenient=options.lenient,
            deaths=without_flapping(deaths),
            backend=options.backend or backend_of(given.ruleset),
            flows=1,
            pod_device=pod_device(given.every_ruleset, given.assumed),
            visitors=(Source.HAIRPIN, *([Source.EXTERNAL] if is_outside else [])),
        )
    )
    places = LabPlaces(lab, outside=is_outside)
    here = places.enter(options.place)
    arguments = _arguments(options.command)
    if not options.command and sys.stdin.isatty():
        _greet(given, dead, places, here)
    servers = lab.serve(responder(given.view), places.talk)
    texts = {"map": places.map(here), "resolv.conf": resolv_conf(given.view)}
    program = Inside(here.namespace, arguments, _environment(here), lambda: _furnish(places, texts))
    try:
        while (status := program.ended()) is None:
            servers.serve(_POLL)
    finally:
        servers.close()
        lab.close()
    return status


def _greet(given: Input, dead: Dead, places: LabPlaces, here: LabPlace) -> None:
    """Print what a user at a terminal needs to begin with."""
    dies = ", ".join([*dead.nodes, *dead.zones, *dead.named])
    fate = f"dead: {dies}" if dies else "nothing is dead, see --dead and --dead-node"
    say(f"The rules of {given.ruleset.file} are loaded; {fate}.")
    say(f"You are in {here.name}: {here.says}.")
    say("lab-map              list the places")
    say("lab-in node CMD      run a command in another place; a shell, without one")
    listens = "tcpdump -ni eth0" if shutil.which("tcpdump") else "ip -s link show eth0"
    say(f"lab-in {places.all[3].name} {listens}   for example")
    say("exit                 end the lab and everything that runs in it")


def _shell() -> list[str]:
    bash = shutil.which("bash")
    return [bash, "--norc", "--noprofile"] if bash else ["/bin/sh"]


def _arguments(wanted: Sequence[str]) -> list[str]:
    """Return a program's path and arguments.

    Raises:
        LabError: it is not installed.
    """
    if not wanted:
        return _shell()
    if wanted[0] in _SCRIPTS:
        return [str(_OURS / wanted[0]), *wanted[1:]]
    return [wanted[0] if "/" in wanted[0] else command.program(wanted[0]), *wanted[1:]]


def _environment(here: LabPlace) -> Mapping[str, str]:
    kept = {name: each for name, each in os.environ.items() if name not in _NOT_PASSED_ON}
    return {
        **kept,
        "PATH": f"{_OURS}:{command.PATH}",
        "PS1": f"lab:{here.name}\\$ ",
        "HISTFILE": os.devnull,
    }


_SCRIPTS: Final = {"lab-map": _MAP, "lab-in": _GO}


def _furnish(places: LabPlaces, texts: Mapping[str, str]) -> None:
    """Create what the program sees: names of namespaces, scripts, and a resolv.conf."""
    at = RESOLV_CONF.resolve()
    fresh_folder(_RUN)
    _OURS.mkdir()
    _NAMESPACES.mkdir()
    for name, text in texts.items():
        (_OURS / name).write_text(text, encoding="utf-8")
    for name, text in _SCRIPTS.items():
        (_OURS / name).write_text(text.replace("SHELL", " ".join(_shell())), encoding="utf-8")
        (_OURS / name).chmod(_EXECUTABLE)
    for each in places.all:
        (_NAMESPACES / each.name).touch()
        show(Path(f"/proc/self/fd/{each.namespace.descriptor}"), _NAMESPACES / each.name)
    if texts["resolv.conf"]:
        if at.is_relative_to(_RUN):
            at.parent.mkdir(parents=True, exist_ok=True)
            at.touch()
        if at.is_file():
            show(_OURS / "resolv.conf", at)
