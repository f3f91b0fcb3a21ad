"""The plan of a look-up: which names, to which server, from which port, how often.

Theory of operation
===================

Search domains and ndots make candidates of a name. Each is asked for on a new socket, so that the
rules draw again for it. All that is sent from one socket to one name server is one flow to
conntrack: A and AAAA share its fate, and so does what is sent again, as long as the entry lives
(nf_conntrack_udp_timeout, 30 s). A refusal makes a resolver close its socket.

Source: Linux, net/netfilter/nf_conntrack_proto_udp.c, UDP_CT_UNREPLIED.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from analyzer.clients.plan import ZERO, EitherPlan, OperationResult, Plan, Time, after, exactly
from analyzer.clients.resolvers import Port, Resolver, Search
from analyzer.clients.responses import FlowResponse
from analyzer.clients.target import ClientTarget, Pins, new_flow
from analyzer.model.resolv_conf import ResolvConf
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, TypeAlias

#: Seconds after which conntrack forgets a datagram that has no answer.
UDP_TIMEOUT: Final = Fraction(30)
#: Beyond which ndots is cut. Source: glibc, resolv.h, RES_MAXNDOTS; musl and Go have the same.
_MOST_NDOTS: Final = 15

#: How a plan continues after an operation: its result, and which clients are pinned to which
#: endpoint.
Finish: TypeAlias = Callable[[OperationResult, Pins], Plan]


@value
class Candidate:
    """A name that a query is sent for.

    Attributes:
        as_given: whether it is the name that was looked up, no domain behind it.
        exists: whether it has an address.
    """

    name: str
    as_given: bool
    exists: bool


def candidates(
    resolver: Resolver, conf: ResolvConf, name: str, exists: Callable[[str], bool]
) -> tuple[Candidate, ...]:
    """Return the names to query in turn until one has an address."""
    bare = name.rstrip(".")
    given = Candidate(bare, as_given=True, exists=exists(bare))
    if name.endswith(".") or not resolver.searches:
        return (given,)
    longer = [bare if domain == "." else f"{bare}.{domain}" for domain in conf.search]
    searched = tuple(Candidate(each, as_given=False, exists=exists(each)) for each in longer)
    ndots = 1 if conf.ndots is None else min(conf.ndots, _MOST_NDOTS)
    if bare.count(".") >= ndots:
        return (given, *searched) if resolver.search_behind_dots else (given,)
    return (*searched, given)


def with_options(resolver: Resolver, conf: ResolvConf) -> Resolver:
    """Return the resolver with the timeout and the attempts of resolv.conf."""
    if resolver.fixed:
        return resolver
    timeout, attempts = conf.timeout, conf.attempts
    if timeout is not None:
        timeout = max(1, min(timeout, resolver.most_timeout))
        resolver = replace(resolver, timeout=Fraction(timeout))
    if attempts is not None:
        resolver = replace(resolver, attempts=max(1, min(attempts, resolver.most_attempts)))
    return resolver


def look_up(
    resolver: Resolver,
    asked: Sequence[Candidate],
    servers: Sequence[ClientTarget],
    pins: Pins,
    finish: Finish,
) -> Plan:
    """Return the plan of a look-up by a resolver with its options, at these name servers."""
    return _LookUp(resolver, asked, servers, finish).candidate(0, pins, (None, None))


#: How the name as given failed, and the last one with a search domain.
_Errors: TypeAlias = tuple[OperationResult | None, OperationResult | None]


def _order(resolver: Resolver, servers: int) -> tuple[int, ...]:
    """Return which name server is asked first, second, and so on, if none answers."""
    if resolver.first:
        return (*[0] * resolver.attempts, *range(1, servers))
    number = resolver.attempts * (1 if resolver.together else servers)
    return tuple(at % servers for at in range(number))


class _LookUp:
    def __init__(
        self,
        resolver: Resolver,
        asked: Sequence[Candidate],
        servers: Sequence[ClientTarget],
        finish: Finish,
    ) -> None:
        self._resolver = resolver
        self._asked = asked
        self._servers = servers
        self._finish = finish
        self._order = _order(resolver, len(servers))
        self._most = len(self._order)
        self._known: dict[tuple[object, ...], Plan] = {}

    def _once(self, make: Callable[..., Plan], *state: Any) -> Plan:
        """Return the plan from a state on, the same one each time."""
        key = make.__name__, *state
        if key not in self._known:
            self._known[key] = make(*state)
        return self._known[key]

    def candidate(self, at: int, pins: Pins, errors: _Errors) -> Plan:
        """Return the plan starting at a candidate."""
        if at == len(self._asked):
            return self._over(pins, errors)
        if self._resolver.parallel:
            return self._once(self._burst, at, 0, 0, pins, errors)
        if self._resolver.apart:
            return self._once(self._chain, at, None, 0, ZERO, pins, errors)
        return self._once(self._try, at, 0, (None,) * len(self._servers), False, pins, errors)

    def _over(self, pins: Pins, errors: _Errors) -> Plan:
        as_given, searched = errors
        # glibc goes by the name as it was given, Go by the last one with a domain.
        first, second = (
            (searched, as_given) if self._resolver.silence is Search.NEXT else (as_given, searched)
        )
        return self._finish(first or second or OperationResult.NO_NAME, pins)

    # --- one socket, servers in turn ------------------------------------------------

    def _try(
        self,
        at: int,
        number: int,
        flows: tuple[FlowResponse | None, ...],
        silent: bool,
        pins: Pins,
        errors: _Errors,
    ) -> Plan:
        """Ask one server, given the `flows` of earlier datagrams."""
        if number == self._most:
            return self._unanswered(at, pins, errors, silent=silent)
        resolver, server = self._resolver, self._order[number]

        def goes_on(fate: FlowResponse, pins: Pins) -> Plan:
            later = number + 1
            if resolver.refused_once and later >= len(self._servers):
                later = self._most
            told = self._once(self._try, at, later, (None,) * len(flows), silent, pins, errors)
            # What is sent again may bring the ICMP that the first time did not.
            held = (*flows[:server], fate, *flows[server + 1 :])
            waits = after(
                self._wait(number),
                self._once(self._try, at, number + 1, held, True, pins, errors),
            )
            match fate:
                case FlowResponse.ANSWERED:
                    return self._answered(at, pins, errors)
                case FlowResponse.REFUSED if resolver.hears_refusal:
                    return told
                case FlowResponse.UNREACHABLE if resolver.hears_unreachable:
                    # Hosts and routers limit how much ICMP they send.
                    return EitherPlan((told, waits))
                case _:
                    return waits

        fresh = new_flow(self._servers[server], pins, goes_on)
        earlier = flows[server]
        if earlier is None:
            return fresh
        match self._again():
            case Port.NEW:
                return fresh
            case Port.SAME:
                return goes_on(earlier, pins)
            case Port.EITHER:
                return EitherPlan((goes_on(earlier, pins), fresh))

    def _again(self) -> Port:
        """Return whether what is sent again to a silent server is the same flow to conntrack."""
        resolver = self._resolver
        if resolver.port is not Port.SAME:
            return resolver.port
        number = len(self._servers)
        gap = resolver.timeout / resolver.attempts
        if not resolver.parallel:
            gap = sum((self._wait(each).least for each in range(number)), ZERO)
        if gap == UDP_TIMEOUT:
            return Port.EITHER
        return Port.SAME if gap < UDP_TIMEOUT else Port.NEW

    def _wait(self, number: int) -> Time:
        """Return how long the answer to a try is waited for."""
        resolver, servers = self._resolver, len(self._servers)
        if resolver.backoff:
            least, most = resolver.backoff[number // servers]
            return Time(resolver.timeout * least, resolver.timeout * most)
        place = self._order[number]
        if resolver.port is Port.SAME and place:
            # glibc: (timeout << place) / servers, in whole seconds.
            return exactly(Fraction(max(1, (int(resolver.timeout) << place) // servers)))
        return exactly(resolver.timeout)

    # --- A and AAAA each on sockets of its own --------------------------------------

    def _chain(
        self,
        at: int,
        first: tuple[bool, Fraction] | None,
        number: int,
        passed: Fraction,
        pins: Pins,
        errors: _Errors,
    ) -> Plan:
        """Ask for A, and then for AAAA, which goes on at the same time: `first` is A's end."""
        resolver = self._resolver

        def over(pins: Pins, *, ok: bool, passed: Fraction) -> Plan:
            if first is None:
                return self._once(self._chain, at, (ok, passed), 0, ZERO, pins, errors)
            is_there, took = first
            then = (
                self._answered(at, pins, errors)
                if is_there
                else self._unanswered(at, pins, errors, silent=bool(took))
            )
            return after(exactly(max(took, passed)), then)

        if number == self._most:
            return over(pins, ok=False, passed=passed)

        def goes_on(fate: FlowResponse, pins: Pins) -> Plan:
            if fate is FlowResponse.ANSWERED:
                return over(pins, ok=True, passed=passed)
            told = fate is FlowResponse.REFUSED and resolver.hears_refusal
            if told and resolver.refused_once and number + 1 >= len(self._servers):
                return over(pins, ok=False, passed=passed)
            if not told and resolver.port is Port.EITHER:
                # Any further attempt may be the one that is answered, or none.
                ways = [over(pins, ok=False, passed=resolver.timeout * self._most)]
                some_live = any(
                    FlowResponse.ANSWERED in each.lot.possible() for each in self._servers
                )
                ways += [
                    over(pins, ok=True, passed=resolver.timeout * each)
                    for each in range(number + 1, self._most if some_live else 0)
                ]
                return EitherPlan(tuple(ways))
            later = passed if told else passed + resolver.timeout
            return self._once(self._chain, at, first, number + 1, later, pins, errors)

        return new_flow(self._servers[self._order[number]], pins, goes_on)

    # --- all servers at once ----------------------------------------------------------

    def _burst(self, at: int, turn: int, server: int, pins: Pins, errors: _Errors) -> Plan:
        """Ask a server and all behind it; the first answer counts."""
        resolver = self._resolver
        if server == len(self._servers):
            gap = resolver.timeout / resolver.attempts
            rest = gap * (resolver.attempts - turn)
            ends = after(exactly(rest), self._unanswered(at, pins, errors, silent=True))
            if turn + 1 == resolver.attempts or self._again() is Port.SAME:
                return ends
            fresh = after(exactly(gap), self._once(self._burst, at, turn + 1, 0, pins, errors))
            return fresh if self._again() is Port.NEW else EitherPlan((ends, fresh))

        def goes_on(fate: FlowResponse, pins: Pins) -> Plan:
            if fate is FlowResponse.ANSWERED:
                return self._answered(at, pins, errors)
            return self._once(self._burst, at, turn, server + 1, pins, errors)

        return new_flow(self._servers[server], pins, goes_on)

    # --- after a candidate ------------------------------------------------------------

    def _answered(self, at: int, pins: Pins, errors: _Errors) -> Plan:
        if self._asked[at].exists:
            return self._finish(OperationResult.ANSWERED, pins)
        return self.candidate(at + 1, pins, self._noted(at, errors, OperationResult.NO_NAME))

    def _unanswered(self, at: int, pins: Pins, errors: _Errors, *, silent: bool) -> Plan:
        resolver, each = self._resolver, self._asked[at]
        errors = self._noted(
            at, errors, OperationResult.TIMED_OUT if silent else OperationResult.REFUSED
        )
        follows = resolver.silence if silent else resolver.refusal
        if follows is Search.NEXT or (each.as_given and resolver.silence is Search.AS_IS):
            # If the name as given is queried first, the others still follow.
            return self.candidate(at + 1, pins, errors)
        last = len(self._asked) - 1
        if follows is Search.AS_IS and at < last and self._asked[last].as_given:
            return self.candidate(last, pins, errors)
        return self._over(pins, errors)

    def _noted(self, at: int, errors: _Errors, error: OperationResult) -> _Errors:
        as_given, searched = errors
        return (error, searched) if self._asked[at].as_given else (as_given, error)
