"""Periodic checks of a node's rules, one after the other.

Theory of operation
===================

A check reads the bytes of the rules, and evaluates them only if something has changed since the
last evaluation: the rules (not their counters or the time of the dump), the objects, or what is
dead. If anything cannot be read or evaluated, the check has failed: it has no result then, and no
old one in its place. A failure is forgotten as soon as a check succeeds.

The program runs without Python's cyclic garbage collector, and a watch runs for months: it collects
after each evaluation.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Callable, Mapping, Sequence

from analyzer import __version__
from analyzer.cluster.node_names import NodeNames
from analyzer.errors import AnalyzerError, InputError, UsageError
from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.files import Member, read_file
from analyzer.reports.watch_answer import Ages, CheckResult, Watched
from analyzer.watching.checks import Checker, LookError, names_of_dead
from analyzer.watching.commands import printed
from analyzer.watching.taken import digest, modified, of_file, signature, taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final, TypeAlias

    from analyzer.watching.signals import Signals

    #: Of files: what changes when they do.
    Signature: TypeAlias = tuple[tuple[str, int, int, int], ...]

#: What a file that says who is dead may hold.
_MOST_DEAD: Final = 1 << 24
#: Seconds within which a file may change twice at what is the same time to its file system.
_SETTLED: Final = 2.0


class Watch:
    """Checks rules; `now` returns the time in seconds since 1970.

    Attributes:
        result: the last one, of the rules as they were at the last look that succeeded.
    """

    def __init__(
        self, options: SimpleNamespace, signals: Signals, now: Callable[[], float] = time.time
    ) -> None:
        self._options = options
        self._signals = signals
        self._now = now
        self._checker: Checker | None = None
        self._objects: Signature | None = None
        self._key: object = None
        #: Signatures of the files of the last look, if they show whether these have changed.
        self._last: object = None
        self._rules_of: dict[str, float] = {}
        self._rules = ""
        self._changed: float | None = None
        self._success: float | None = None
        self.result: CheckResult | None = None
        self._looks = {"judged": 0, "unchanged": 0, "failed": 0}

    def forget(self) -> None:
        """Read everything again at the next check, changed or not."""
        self._objects = self._key = self._last = None

    def look(self) -> Watched:
        """Check once, and return what is known then."""
        begun, at = time.monotonic(), self._now()
        found: Sequence[Member] = ()
        objects: Signature = ()
        dead: Signature = ()
        failure = why = ""
        try:
            objects, dead = self._files(at)
            besides = self._besides()
            written = self._written(at)
            if written is not None and (written, objects, dead, besides) == self._last:
                self._looks["unchanged"] += 1  # and need not be read to know
            else:
                found = self._rules_now()
                self._checked(found, objects, (dead, besides), at)
                self._last = None if written is None else (written, objects, dead, besides)
            self._success = at
        except LookError as error:
            failure, why = error.failure, str(error)
            self.result, self._key, self._last = None, None, None
            self._looks["failed"] += 1
        told = Ages(
            success=self._success,
            changed=self._changed,
            rules=self._rules_of,
            objects=modified(objects),
            dead=modified(dead),
        )
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return Watched(
            at=at,
            failure=failure,
            why=why,
            result=self.result,
            ages=told,
            looks=dict(self._looks),
            took=time.monotonic() - begun,
            every=None if self._options.once else float(self._options.every),
            is_ok=self.result is not None and self.is_ok(self.result),
            cpu=usage.ru_utime + usage.ru_stime,
            resident=_resident(),
            version=__version__,
        )

    def is_ok(self, found: CheckResult) -> bool:
        """Return whether everything was evaluated, and no threshold is exceeded."""
        differs = found.differences and not self._options.allow_drift
        # Who gave objects wants to know of drift.
        unknown = (found.drift is None or found.drift_unknown) and self._asks_for_drift
        return found.is_whole and not found.beyond and not differs and not unknown

    @property
    def _asks_for_drift(self) -> bool:
        return bool(self._options.objects) and not (
            self._options.no_drift or self._options.allow_drift
        )

    # --- reading ------------------------------------------------------------------

    def _written(self, at: float) -> Signature | None:
        """Return the signature of the files of rules; None where that is not enough.

        A file that was just written may be written again without another time.
        """
        try:
            found = signature(self._options.rules)
        except OSError as error:
            raise LookError("read", _of_system(error)) from None
        self._rules_of = {name: ns / 1e9 for name, _, ns, _ in found}
        for name, written in self._rules_of.items():
            self._check_age(name, written, at)
        is_old = all(at - written > _SETTLED for written in self._rules_of.values())
        return found if is_old and not self._options.command else None

    def _rules_now(self) -> Sequence[Member]:
        """Return what there is; a program without tables, as ip6tables-save, prints nothing."""
        options, most = self._options, self._options.max_input
        try:
            found = [of_file(name, most) for name in options.rules]
            found += [
                taken(words[0], printed(words, float(options.timeout), most, self._signals))
                for words in options.command
            ]
        except InputError as error:
            raise LookError("read", str(error)) from None
        except OSError as error:
            raise LookError("read", _of_system(error)) from None
        some = [each for each in found if each.data.strip()]
        if not some:
            raise LookError("read", f"{', '.join(found)}: no rules at all")
        return some

    def _check_age(self, name: str, written: float, at: float) -> None:
        oldest = self._options.max_age
        if oldest is not None and at - written > oldest:
            says = f"{name}: {at - written:,.0f} s old, more than --max-age {float(oldest):g}s"
            raise LookError("stale", says)

    def _files(self, at: float) -> tuple[Signature, Signature]:
        """Return the signatures of the objects, and of the file that lists what is dead."""
        options = self._options
        try:
            objects = signature(options.objects)
        except OSError as error:
            raise LookError("objects", _of_system(error)) from None
        written = modified(objects)
        if written is not None:
            self._check_age(", ".join(options.objects), written, at)
        try:
            dead = signature([] if options.dead_file is None else [options.dead_file])
        except OSError as error:
            raise LookError("dead", _of_system(error)) from None
        return objects, dead

    def _besides(self) -> Signature:
        """Return the signature of the node's other files: ipsets, addresses, routes."""
        options = self._options
        one = [each for each in (options.ipsets, options.addresses) if each is not None]
        try:
            return signature([*one, *options.routes])
        except OSError as error:
            raise LookError("read", _of_system(error)) from None

    def _checked(
        self, found: Sequence[Member], objects: Signature, others: object, at: float
    ) -> None:
        """Evaluate the rules, unless nothing has changed since; `others` are other files."""
        rules = digest(found)
        if rules != self._rules:
            self._rules, self._changed = rules, at
        if (rules, objects, others) == self._key and self.result is not None:
            self._looks["unchanged"] += 1
            return
        if self._checker is None or objects != self._objects:
            try:
                known = ApiObjects(self._options)
            except (AnalyzerError, OSError) as error:
                says = _of_system(error) if isinstance(error, OSError) else str(error)
                raise LookError("objects", says) from None
            options = type(self._options)(**vars(self._options))
            if options.node is None:
                options.node = NodeNames(known.cluster.node_names).called(os.uname().nodename)
            before = self._checker
            if before is None:
                self._checker = Checker(options, known, {}, None)
            else:
                self._checker = Checker(options, known, before.known, before.died)
            self._objects = objects
        self.result = None  # not kept in memory together with the next one
        try:
            self.result = self._checker.check(found, self._dead(), at)
        finally:
            gc.collect()
        self._key = rules, objects, others
        self._looks["judged"] += 1

    def _dead(self) -> Mapping[str, Sequence[str]]:
        """Return what is dead, from the options and from the file."""
        options = self._options
        said = {name: [*getattr(options, name)] for name in ("dead", "dead_node", "dead_zone")}
        if options.dead_file is not None:
            try:
                text = read_file(options.dead_file, _MOST_DEAD).decode("utf-8", "replace")
                for option, name in names_of_dead(text):
                    said[option].append(name)
            except OSError as error:
                raise LookError("dead", _of_system(error)) from None
            except (InputError, UsageError) as error:
                raise LookError("dead", f"{options.dead_file}: {error}") from None
        return said


def _of_system(error: OSError) -> str:
    where = "" if error.filename is None else f"{error.filename}: "
    return f"{where}{error.strerror or error}"


def _resident() -> int:
    """Return how many bytes of memory the process has now.

    Source: Linux, Documentation/filesystems/proc.rst, ``/proc/PID/statm``: pages.
    """
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # pathlib is slow
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, ValueError, IndexError):
        return 0
