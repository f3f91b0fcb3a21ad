"""Immutable values: what ``@dataclass(frozen=True, slots=True)`` gives, at a tenth of its start-up.

A dataclass compiles six functions when its class is created, 0.4 ms each time the program starts,
and imports `inspect`; a hundred of them cost more than reading a dump of a thousand rules. Here one
``__init__`` is compiled for each number of fields, and a class gets it with its own names of
fields. Type checkers see frozen dataclasses and refuse a change; at run time nothing does, since
a ``__setattr__`` that refuses makes each value take two and a half times as long to create.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import attrgetter
from types import FunctionType

TYPE_CHECKING = False  # as that of typing, which takes a tenth of the time of a small dump to load
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Final, TypeAlias, TypeVar, dataclass_transform, overload

    #: What reads all fields of a value, the places of those that change, and what sets all.
    _Replacing: TypeAlias = tuple[
        Callable[[Any], Iterable[Any]], tuple[int, ...], Callable[..., None]
    ]

    T = TypeVar("T")
    C = TypeVar("C", bound=type)
else:

    def dataclass_transform(**_: object) -> Callable[[T], T]:
        """Do nothing: it is there for type checkers."""
        return lambda made: made


#: Code of ``__init__`` by number of fields, and whether ``__post_init__`` is called.
_INITS: Final[dict[tuple[int, bool], CodeType]] = {}
#: The classes whose values keep their fields in a dictionary.
_WITH_DICT: Final[set[type]] = set()
#: What `replace` needs, by the class and the names of the changed fields.
_REPLACING: Final[dict[tuple[object, ...], _Replacing]] = {}

if TYPE_CHECKING:

    @overload
    def value(cls: C) -> C: ...
    @overload
    def value(*, kw_only: bool = False, slots: bool = True) -> Callable[[C], C]: ...


@dataclass_transform(frozen_default=True)
def value(cls: type | None = None, *, kw_only: bool = False, slots: bool = True) -> Any:
    """Make a value class from the annotated fields of a class, which may have defaults.

    Fields are given by position or (with `kw_only` always) by name, and stay as they are: the
    types see to that. Values of the same class are equal if their fields are. ``__post_init__`` is
    called if there is one.

    Without slots a value of many fields takes more memory, and is replaced and compared in a tenth
    of the time; all its fields are keyword-only and have defaults, and nothing else is called.
    """
    make = partial(_make, kw_only=kw_only) if slots else _make_with_dict
    return make if cls is None else make(cls)


def replace(old: T, **changes: object) -> T:
    """Return a value like `old`, with some fields changed.

    Raises:
        TypeError: it has no such field.
    """
    cls = type(old)
    if cls in _WITH_DICT:
        if not changes.keys() <= old.__dict__.keys():
            raise _unknown(cls, changes.keys() - old.__dict__.keys())
        copied = object.__new__(cls)
        fields = copied.__dict__
        fields.update(old.__dict__)
        fields.update(changes)
        return copied
    found = _REPLACING.get((cls, *changes))
    if found is None:
        found = _REPLACING[(cls, *changes)] = _replacing(cls, tuple(changes))
    read, places, initialize = found
    values = [*read(old)]
    for place, changed in zip(places, changes.values(), strict=True):
        values[place] = changed
    new = cls.__new__(cls)
    initialize(new, *values)
    return new


def fields_of(cls: type) -> tuple[str, ...]:
    """Return the names of a value class's fields, in order."""
    made: Any = cls
    fields: tuple[str, ...] = made.__value_fields__  # set by _make
    return fields


def is_value(given: object) -> bool:
    """Return whether something is of a value class."""
    return hasattr(type(given), "__value_fields__")


def required_fields_of(cls: type) -> tuple[str, ...]:
    """Return the names of the fields that have no default."""
    made: Any = cls
    defaults: Mapping[str, Any] = made.__value_defaults__
    return tuple(name for name in fields_of(cls) if name not in defaults)


def _namespace(cls: type, *, kw_only: bool) -> dict[str, Any]:
    """Return what a value class has, except for what depends on how it keeps its fields."""
    namespace = dict(cls.__dict__)
    namespace.pop("__dict__", None)
    namespace.pop("__weakref__", None)
    names = tuple(namespace.get("__annotations__", ()))
    defaults = {name: namespace.pop(name) for name in names if name in namespace}
    namespace |= {
        "__value_fields__": names,
        "__value_defaults__": defaults,
        "__match_args__": () if kw_only else names,
        "__qualname__": cls.__qualname__,
    }
    namespace.setdefault("__repr__", _repr)
    namespace.setdefault("__reduce__", _reduce)
    return namespace


def _make_with_dict(cls: type) -> type:
    """Return a copy of `cls` whose values keep their fields in a dictionary."""
    namespace = _namespace(cls, kw_only=True)
    defaults = namespace["__value_defaults__"]

    def init(self: Any, **given: object) -> None:
        fields = self.__dict__
        fields.update(defaults)
        if given:
            if not given.keys() <= defaults.keys():
                raise _unknown(cls, given.keys() - defaults.keys())
            fields.update(given)

    def equal(self: Any, other: Any) -> Any:
        if self is other:
            return True
        if self.__class__ is not other.__class__:
            return NotImplemented
        return self.__dict__ == other.__dict__

    namespace |= {"__init__": init, "__eq__": equal}
    namespace.setdefault("__hash__", lambda self: hash(tuple(self.__dict__.values())))
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    _WITH_DICT.add(made)
    return made


def _unknown(cls: type, names: Iterable[str]) -> TypeError:
    return TypeError(f"{cls.__name__} has no field {', '.join(names)}")


def _make(cls: type, *, kw_only: bool) -> type:
    """Return a copy of `cls` with slots, which a class cannot get later."""
    namespace = _namespace(cls, kw_only=kw_only)
    names, defaults = namespace["__value_fields__"], namespace["__value_defaults__"]
    namespace["__slots__"] = names
    if names:
        key = attrgetter(*names)
        namespace.setdefault("__eq__", _equal(key))
        namespace.setdefault("__hash__", lambda self: hash((self.__class__, key(self))))
    else:
        namespace.setdefault("__eq__", lambda self, other: self.__class__ is other.__class__)
        namespace.setdefault("__hash__", lambda self: hash(self.__class__))
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    _set_at_first_call(made, names, defaults, kw_only=kw_only)
    for function in cls.__dict__.values():
        _repair_class_cell(function, cls, made)
    return made


def _equal(key: Callable[[Any], object]) -> Callable[[Any, Any], Any]:
    def equal(self: Any, other: Any) -> Any:
        if self is other:
            return True
        if self.__class__ is not other.__class__:
            return NotImplemented
        return key(self) == key(other)

    return equal


def _repr(self: object) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in fields_of(type(self)))
    return f"{type(self).__qualname__}({shown})"


def _reduce(self: object) -> tuple[Callable[..., object], tuple[object, ...]]:
    """Return what pickle needs to create an equal value, in another process."""
    cls = type(self)
    return _made, (cls, *[getattr(self, name) for name in fields_of(cls)])


def _made(cls: Callable[..., object], *values: object) -> object:
    names: tuple[str, ...] = cls.__value_fields__  # type: ignore[attr-defined]  # set by _make
    return cls(**dict(zip(names, values, strict=True)))


def _setting(owner: type, names: tuple[str, ...], *, kw_only: bool) -> FunctionType:
    """Return a function that sets all fields of a new value of a class, without defaults."""
    shape = len(names), hasattr(owner, "__post_init__")
    code = _INITS.get(shape)
    if code is None:
        code = _INITS[shape] = _compile_init(*shape)
    by_name = len(names) if kw_only else 0
    code = code.replace(
        co_names=(*names, *code.co_names[len(names) :]),
        co_varnames=("self", *names),
        co_qualname=f"{owner.__qualname__}.__init__",
        co_argcount=1 + len(names) - by_name,
        co_kwonlyargcount=by_name,
    )
    return FunctionType(code, {}, "__init__")


def _made_init(
    owner: type, names: tuple[str, ...], defaults: dict[str, object], *, kw_only: bool
) -> Callable[..., None]:
    """Return an ``__init__`` for a class with the fields `names`, as if it had been written out."""
    made = _setting(owner, names, kw_only=kw_only)
    if kw_only:
        made.__kwdefaults__ = defaults
    else:
        made.__defaults__ = tuple([defaults[name] for name in names if name in defaults])
    return made


def _set_at_first_call(
    owner: Any, names: tuple[str, ...], defaults: dict[str, object], *, kw_only: bool
) -> None:
    """Give a class an ``__init__`` that puts the compiled one in its own place.

    Half of the classes that a run loads never have a value.
    """
    given = [name in defaults for name in names]
    if not kw_only and sorted(given) != given:
        raise TypeError(f"a field of {owner.__name__} without a default follows one that has one")

    def init(self: object, *values: object, **named: object) -> None:
        made = owner.__init__ = _made_init(owner, names, defaults, kw_only=kw_only)
        made(self, *values, **named)

    owner.__init__ = init


def _compile_init(count: int, has_more: bool) -> CodeType:
    """Return the code of an ``__init__`` that sets `count` fields, whatever their names."""
    fields = [f"_{at}" for at in range(count)]
    lines = [f"    self.{field} = {field}" for field in fields]
    if has_more:
        lines.append("    self.__post_init__()")
    scope: dict[str, Any] = {}
    head = f"def __init__({', '.join(['self', *fields])}):"
    exec("\n".join([head, *(lines or ["    pass"])]), scope)  # noqa: S102  # no input's text
    code: CodeType = scope["__init__"].__code__
    return code


def _replacing(cls: type, names: tuple[str, ...]) -> _Replacing:
    """Return what `replace` needs for a class and the names of the changed fields."""
    fields = fields_of(cls)
    unknown = [name for name in names if name not in fields]
    if unknown:
        raise _unknown(cls, unknown)
    owner = next(each for each in cls.__mro__ if "__value_fields__" in each.__dict__)
    # With a single name, attrgetter returns no tuple.
    read = attrgetter(*fields) if len(fields) > 1 else partial(_few, fields)
    return read, tuple(map(fields.index, names)), _setting(owner, fields, kw_only=False)


def _few(names: tuple[str, ...], old: object) -> list[Any]:
    return [getattr(old, name) for name in names]


def _repair_class_cell(function: object, old: type, new: type) -> None:
    """Make ``super()`` and ``__class__`` in a method refer to the class with slots."""
    for cell in getattr(function, "__closure__", None) or ():
        try:
            if cell.cell_contents is old:
                cell.cell_contents = new
        except ValueError:  # an empty cell
            continue
