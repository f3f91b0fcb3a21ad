"""Names of devices: a wildcard (``+``, ``*``) matches the same devices as before.

Theory of operation: as for addresses, letter by letter: the replacement of a letter depends on
those before it, and a prefix that programs give their devices (``eth``, ``cali``) stays. After it,
numbers of devices stay (``eth0``, ``flannel.1``), but letters and hashes do not: those of Calico
and of veth pairs can be computed from a pod's name.
"""

from __future__ import annotations

import hmac
import string

from analyzer.anonymise.words import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Names of devices, and how they begin, that programs and kernels give.
_KNOWN: Final = tuple(
    listed("""
    lo eth en wlan ww bond team br dummy ifb vlan vxlan geneve gre gretap sit ip6tnl ip6gre tunl wg
    tun tap veth vethwe macvtap macvlan ipvlan docker docker_gwbridge cni cbr cali vxlan.calico
    vxlan-v6.calico wireguard.cali wg-v6.cali tunl0 flannel flannel. flannel.4096 flannel-v6 lxc
    lxc_health cilium_ cilium_host cilium_net cilium_vxlan weave eni azv azure azure0 gke
    kube-bridge kube-ipvs kube-ipvs0 kube-dummy-if nodelocaldns antrea-gw antrea-tun genev_sys_ ovn
    ovn-k8s-mp ovs-system virbr vnet lxdbr podman tailscale nerdctl br- br-ex br-int cri k3s
    """)
)
#: After these a number is kept; after others it may be a hash.
_NUMBERED: Final = frozenset(
    listed("""
    eth en wlan ww bond team br dummy ifb vlan vxlan sit tunl wg tun docker cni cbr flannel.
    flannel-v6 azure kube-ipvs antrea-gw ovn ovn-k8s-mp virbr lxdbr podman tailscale nerdctl
    """)
)
_SPINE: Final = frozenset(name[:at] for name in _KNOWN for at in range(len(name)))
_CLASSES: Final = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
#: More digits are those of a hash.
_MOST_DIGITS: Final = 5


def renamed(key: bytes, name: str) -> str:
    """Return the new name of a device, which may end in ``+`` or ``*``."""
    bare = name[:-1] if name[-1:] in {"+", "*"} else name
    found = [_letter(key, bare[:at], letter) for at, letter in enumerate(bare)]
    return "".join(found) + name[len(bare) :]


def _letter(key: bytes, before: str, letter: str) -> str:
    # Whether a letter stays depends on those before it only, so that beginnings stay beginnings.
    is_number = letter.isdigit() and _is_numbered(before)
    return letter if before in _SPINE or is_number else _drawn(key, before, letter)


def _is_numbered(before: str) -> bool:
    stem = before.rstrip(string.digits)
    return stem in _NUMBERED and len(before) - len(stem) <= _MOST_DIGITS


def _drawn(key: bytes, before: str, letter: str) -> str:
    for letters in _CLASSES:
        if letter in letters:
            digest = hmac.digest(key, f"device\0{before}\0{letters[0]}".encode(), "sha256")
            shift = int.from_bytes(digest[:8], "big") % (len(letters) - 1) + 1
            return letters[(letters.index(letter) + shift) % len(letters)]
    return letter if letter in ".-_@" else "x"
