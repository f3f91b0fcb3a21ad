"""One module per nft expression and statement. To add one, write the module and a line here."""

from __future__ import annotations

from typing import Final

from analyzer.parsers.nft.counter import COUNTER
from analyzer.parsers.nft.ct import CT
from analyzer.parsers.nft.ct_count import CT_COUNT
from analyzer.parsers.nft.dup import DUP
from analyzer.parsers.nft.extension import Extension
from analyzer.parsers.nft.exthdr import EXTHDR
from analyzer.parsers.nft.fib import FIB
from analyzer.parsers.nft.flow import FLOW
from analyzer.parsers.nft.fwd import FWD
from analyzer.parsers.nft.hash import HASH
from analyzer.parsers.nft.ipsec import IPSEC
from analyzer.parsers.nft.limit import LIMIT
from analyzer.parsers.nft.log import LOG
from analyzer.parsers.nft.mangle import MANGLE
from analyzer.parsers.nft.match import MATCH
from analyzer.parsers.nft.meta import META
from analyzer.parsers.nft.nat import NAT
from analyzer.parsers.nft.notrack import NOTRACK
from analyzer.parsers.nft.numgen import NUMGEN
from analyzer.parsers.nft.objref import OBJREF
from analyzer.parsers.nft.osf import OSF
from analyzer.parsers.nft.payload import PAYLOAD
from analyzer.parsers.nft.queue import QUEUE
from analyzer.parsers.nft.quota import QUOTA
from analyzer.parsers.nft.reject import REJECT
from analyzer.parsers.nft.rt import RT
from analyzer.parsers.nft.set_update import SET_UPDATE
from analyzer.parsers.nft.socket import SOCKET
from analyzer.parsers.nft.tproxy import TPROXY
from analyzer.parsers.nft.verdict import VERDICT
from analyzer.parsers.nft.vmap import VMAP
from analyzer.parsers.nft.xt import XT

#: Readers of expressions; of two that begin with the same word, the first is tried first.
EXPRESSIONS: Final[tuple[Extension, ...]] = (
    PAYLOAD,
    META,
    CT,
    FIB,
    NUMGEN,
    HASH,
    EXTHDR,
    RT,
    SOCKET,
    OSF,
    IPSEC,
    VERDICT,
)

#: Readers of statements. Those without words begin with an expression.
STATEMENTS: Final[tuple[Extension, ...]] = (
    MATCH,
    VMAP,
    VERDICT,
    COUNTER,
    LIMIT,
    QUOTA,
    OBJREF,
    LOG,
    REJECT,
    NAT,
    MANGLE,
    CT_COUNT,
    SET_UPDATE,
    NOTRACK,
    QUEUE,
    DUP,
    FWD,
    TPROXY,
    FLOW,
    XT,
)
