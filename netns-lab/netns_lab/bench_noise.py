"""Cost of other programs' rules beside kube-proxy's, as part of `make bench`.

Each dump with other programs' rules is compared with the same dump without them. The rules are
those of the captured nodes in fixtures/noise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import analyzer
from analyzer.kubeproxy.generate import iptables_save, nft_text, services
from netns_lab.command import program
from netns_lab.contender import Contender, alternate, kubeodds
from netns_lab.namespace import Namespace

_NOISE: Final = Path(analyzer.__file__).parents[1] / "fixtures" / "noise"
#: Services in the dumps to which other programs' rules are added.
_MANY: Final = 5_000
_SOME: Final = 1_000
#: Rules in Calico's chains of the filter table: a node with many policies.
_ROWS: Final = 50_000
_ROWS_OF_CHAIN: Final = 50
#: Docker's rules, as nft lists those that iptables-nft loaded.
_DOCKER: Final = """\
table ip nat {
	chain DOCKER {
		iifname "docker0" counter packets 0 bytes 0 return
		iifname != "docker0" tcp dport 8080 counter packets 0 bytes 0 dnat to 172.17.0.2:80
	}
	chain PREROUTING {
		type nat hook prerouting priority dstnat; policy accept;
		fib daddr type local counter packets 9 bytes 540 jump DOCKER
	}
	chain OUTPUT {
		type nat hook output priority dstnat; policy accept;
		ip daddr != 127.0.0.0/8 fib daddr type local counter packets 9 bytes 540 jump DOCKER
	}
	chain POSTROUTING {
		type nat hook postrouting priority srcnat; policy accept;
		oifname != "docker0" ip saddr 172.17.0.0/16 counter packets 0 bytes 0 masquerade
	}
}
"""


def noise(folder: Path, rounds: int) -> None:
    """Compare nodes that have other programs' rules with the same nodes without."""
    print("Rules of other programs: services as text, to the same dump without them")
    base = _NOISE / "base.txt"
    known = ("--objects", str(_NOISE / "objects.json"), "--node", "worker1")
    others = sorted(each for each in _NOISE.glob("*.txt") if each != base)
    runs = [kubeodds("services", each, *known) for each in (base, *others)]
    alternate(runs, 5 * rounds)
    for name, run in zip(others, runs[1:], strict=True):
        _told(f"{name.stem}, a node of 5 ServicePorts", run, runs[0])
    many = iptables_save(list(services(_MANY)))
    given = {"plain": many, **{f"{n}'s raw table": many + _raw(n) for n in _WITH_RAW}}
    _compared(f"{_MANY:,} Services and ", given, folder, rounds)
    some = nft_text(list(services(_SOME)))
    _compared(
        f"{_SOME:,} Services of nftables mode and ",
        {"plain": some, "Docker's table ip nat": some + _DOCKER},
        folder,
        rounds,
    )
    _policies(folder, rounds)
    print()


_WITH_RAW: Final = ("nodelocaldns", "calico")


def _compared(title: str, given: dict[str, str], folder: Path, rounds: int) -> None:
    """Print the time of each dump relative to the first."""
    runs = {}
    for name, text in given.items():
        path = folder / f"noise-{len(text)}"
        path.write_text(text, encoding="ascii")
        runs[name] = kubeodds("services", path)
    alternate([*runs.values()], rounds)
    plain, *others = runs
    for name in others:
        _told(f"{title}{name}", runs[name], runs[plain])


def _told(name: str, run: Contender, plain: Contender) -> None:
    print(f"  {name:58} {run.median:7.3f} s, {run.median / plain.median:.2f}x")


def _raw(name: str) -> str:
    """Return the raw table of a captured node."""
    text = (_NOISE / f"{name}.txt").read_text(encoding="ascii")
    found = re.search(r"^\*raw\n.*?^COMMIT\n", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0]


def _policies(folder: Path, rounds: int) -> None:
    """Compare a dump with many Calico rules with one without.

    The cost of these rules is compared with that of reading them by `iptables-legacy-restore
    --test`.
    """
    text = iptables_save(list(services(_SOME)))
    paths = [folder / name for name in ("policies-without", "policies")]
    rows = "".join(_calico())
    whole = text.replace("COMMIT\n", f"{_chains()}{rows}COMMIT\n", 1)  # of the filter table
    for path, content in zip(paths, (text, whole), strict=True):
        path.write_text(content, encoding="ascii")
    restore = [program("iptables-legacy-restore"), "--test"]
    ours = [kubeodds("services", path) for path in paths]
    theirs = [Contender("restore", [*restore, str(path)]) for path in paths]
    with Namespace("restore") as namespace:
        alternate([*ours, *theirs], rounds, namespace)
    without, with_rows = ours
    more, read = (b.median - a.median for a, b in (ours, theirs))
    name = f"{_SOME:,} Services and {_ROWS:,} rows of Calico's in filter"
    _told(name, with_rows, without)
    print(
        f"    {more:.3f} s more, {more / _ROWS * 1e6:.1f} us a row; iptables-legacy-restore --test "
        f"takes {read:.3f} s more to read them"
    )


def _chains() -> str:
    return "".join(f":{chain} - [0:0]\n" for chain in ("cali-to-wl-dispatch", *_of_pods()))


def _of_pods() -> list[str]:
    return [f"cali-tw-cali{at}" for at in range(_ROWS // _ROWS_OF_CHAIN)]


def _calico() -> Iterator[str]:
    """Yield rules as Calico writes them: one for each pod's device, and a chain for each pod."""
    named = '-m comment --comment "cali:x"'
    yield f"-A FORWARD -o cali+ {named} -j cali-to-wl-dispatch\n"
    yield f'-A FORWARD {named} -m comment --comment "Policy explicitly accepted packet." '
    yield "-m mark --mark 0x10000/0x10000 -j ACCEPT\n"
    for chain in _of_pods():
        device = chain.removeprefix("cali-tw-")
        yield f"-A cali-to-wl-dispatch -o {device} {named} -g {chain}\n"
    yield f'-A cali-to-wl-dispatch {named} -m comment --comment "Unknown interface" -j DROP\n'
    for at, chain in enumerate(_of_pods()):
        yield f"-A {chain} {named} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
        yield f"-A {chain} {named} -m conntrack --ctstate INVALID -j DROP\n"
        yield f"-A {chain} {named} -j MARK --set-xmark 0x0/0x10000\n"
        for number in range(_ROWS_OF_CHAIN - 6):
            yield (
                f"-A {chain} -s 10.{at % 250}.{number}.0/24 -p tcp {named} -m multiport "
                f"--dports {1000 + number} -j MARK --set-xmark 0x10000/0x10000\n"
            )
        yield f"-A {chain} {named} -m mark --mark 0x10000/0x10000 -j RETURN\n"
        yield f'-A {chain} {named} -m comment --comment "Drop if no policies passed" -j DROP\n'
