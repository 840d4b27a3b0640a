"""The fields that agents, Things and worlds declare, and where their values come from."""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from importlib import import_module
from math import isfinite
from types import FunctionType, MemberDescriptorType, NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)
from weakref import WeakKeyDictionary

from prism.errors import DefinitionError, FieldTypeError, FieldValueError
from prism.files import parse_json
from prism.randomness import RandomStream

ValueT = TypeVar("ValueT")

MISSING: Any = object()

Draw = Callable[[RandomStream], Any]

_HINTS: WeakKeyDictionary[type, dict[str, Any]] = WeakKeyDictionary()
"""The types of classes whose types could all be resolved, which takes a millisecond per class."""

_MUTABLE = (list, dict, set, frozenset, deque, bytearray)
_CLASS_VARIABLE = re.compile(r"^(?:typing\.|t\.)?ClassVar\b")
_SET = re.compile(r"\b(?:set|frozenset|Set|FrozenSet|MutableSet|AbstractSet)\b")


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of one field: where its value comes from.

    Args:
        default: The value, if there is one.
        make: Makes the value, such as ``list``.
        draw: Draws the value.
        drawn: A description of how it is drawn.
        is_state: Whether it was declared with `state`, and may change.
        is_measured: Whether its value is recorded for every agent and round.
        help: What it means.
        least: Smallest value.
        most: Largest value.
    """

    default: Any = MISSING
    make: Callable[[], Any] | None = None
    draw: Draw | None = None
    drawn: str = ""
    is_state: bool = False
    is_measured: bool = False
    help: str = ""
    least: float | None = None
    most: float | None = None

    @property
    def is_required(self) -> bool:
        """Whether a value must be given."""
        return self.default is MISSING and self.make is None and self.draw is None

    def value(self, stream: Callable[[], RandomStream] | None = None) -> Any:
        """Return the value of a field that was not given."""
        if self.make is not None:
            return self.make()
        if self.draw is not None:
            assert stream is not None
            return self.draw(stream())

        return self.default


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a class.

    Args:
        name: Its name.
        owner: Name of the declaring class.
        annotation: Its type as written in the class.
        declared: Its declaration.
    """

    name: str
    owner: str
    annotation: Any
    declared: Declared


@overload
def state(default: Callable[[], ValueT]) -> ValueT: ...
@overload
def state(default: ValueT) -> ValueT: ...
def state(default: Any = MISSING) -> Any:
    """Declare a field that changes during a run.

    Args:
        default: The initial value. For a list, dict or deque, pass what makes it, ``state(list)``.
            A field of an agent can also be drawn, ``state(uniform(0, 1))``.

    Raises:
        DefinitionError: If the default is a list, dict or set, which all objects would share.
    """
    if isinstance(default, Declared):
        return replace(default, is_state=True)
    if callable(default) and not isinstance(default, Enum):
        return Declared(make=default, is_state=True)

    refuse_shared(default, f"state({type(default).__name__})")

    return Declared(default, is_state=True)


def param(
    default: ValueT = MISSING,
    help: str = "",  # noqa: A002
    *,
    least: float | None = None,
    most: float | None = None,
) -> ValueT:
    """Declare a parameter of a world, which only a treatment changes.

    Args:
        default: Its default value. Without one, the parameter is required.
        help: What it means, for ``prism world show``.
        least: Smallest value.
        most: Largest value.

    Raises:
        DefinitionError: If the default is a list, dict or set, or is drawn.
    """
    refuse_shared(default, "a tuple")
    if isinstance(default, Declared):
        raise DefinitionError(
            f"param({default.drawn or '...'}): a parameter has the same value in every run: give "
            "it that, or declare  state(...)  and draw it in setup, with self.random"
        )

    return cast(ValueT, Declared(default, help=help, least=least, most=most))


# to a type checker, `uniform(0, 1)` is an ordinary default, so no field specifiers are named
@dataclass_transform(kw_only_default=True, eq_default=False)
class Fields(type):
    """The metaclass of classes whose objects have slots for exactly their declared fields."""

    fields: Mapping[str, Field]

    def __new__(
        metacls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        """Take the declarations from the class body, and make slots for them."""
        own = _declared_in(name, namespace)
        _refuse_hiding(name, bases, own)
        for each in own:
            namespace.pop(each, None)
        if "__slots__" not in namespace:
            inherited = {each for base in bases for each in getattr(base, "fields", ())}
            namespace["__slots__"] = tuple(each for each in own if each not in inherited)

        made = super().__new__(metacls, name, bases, namespace, **options)
        above = [getattr(base, "fields", {}) for base in reversed(bases)]
        made.fields = {each: of for fields in above for each, of in fields.items()} | own
        _refuse_open(made)

        return made

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: Any, **_options: Any) -> None:
        """Accept the options of the class, which `__new__` has used."""
        super().__init__(name, bases, namespace)


def type_problems(cls: Fields) -> list[str]:
    """Return the fields of a class whose types cannot be kept, or do not fit their defaults."""
    hints = hints_of(cls)
    unkept = [
        f"{field.owner}.{name}: {words_of_type(field.annotation)} cannot be kept: {mend}"
        for name, field in cls.fields.items()
        if (mend := _mend_of(hints.get(name, field.annotation)))
    ]

    wrong = [
        f"{field.owner}.{name} must be {words_of_type(hints[name])}, got {field.declared.default!r}"
        for name, field in cls.fields.items()
        if name in hints and not _fits_its_default(field, hints[name])
    ]

    return unkept + wrong


def _fits_its_default(field: Field, hint: Any) -> bool:
    """Return whether the default of a field has its type; None stands for nothing yet."""
    default = field.declared.default
    return default is MISSING or default is None or is_a(hint, default)


def hints_of(cls: type) -> dict[str, Any]:
    """Return the types of a class's fields, as far as they can be resolved."""
    if (known := _HINTS.get(cls)) is not None:
        return known

    try:
        hints = get_type_hints(cls)
    except Exception:  # a type that is imported for type checkers only, or defined in a function
        # not kept: a name may be defined by the time of the next call
        found = (_hints_alone(base) for base in reversed(cls.__mro__))
        return {name: hint for hints in found for name, hint in hints.items()}

    _HINTS[cls] = hints

    return hints


def _hints_alone(cls: type) -> dict[str, Any]:
    """Return the types of a class's own fields, each resolved independently."""
    found = {}
    for name, field in getattr(cls, "fields", {}).items():
        alone = type(cls.__name__, (), {"__annotations__": {name: field.annotation}})
        names = vars(sys.modules[cls.__module__])
        with suppress(Exception):
            found[name] = get_type_hints(alone, globalns=dict(names))[name]

    return found


def check_value(field: Field, hint: Any, value: Any) -> None:
    """Refuse a value of the wrong type or out of range.

    Raises:
        FieldTypeError: If it has the wrong type.
        FieldValueError: If it is too small or too large.
    """
    where = f"{field.owner}.{field.name}"
    if not is_a(hint, value):
        raise FieldTypeError(f"{where} must be {words_of_type(hint)}, got {value!r}")

    # None, where it is allowed, is not checked against the range
    if value is None:
        return

    least, most = field.declared.least, field.declared.most
    below, above = least is not None and value < least, most is not None and value > most
    if below or above or (isinstance(value, float) and value != value):
        ends = [f"at least {least}"] * (least is not None) + [f"at most {most}"] * (
            most is not None
        )
        raise FieldValueError(f"{where} must be {' and '.join(ends) or 'a number'}, got {value!r}")


def missing_attribute(cls: Fields, name: str) -> str:
    """Return the error for an attribute that a class does not declare, which says what to do."""
    if isinstance(getattr(cls, name, None), MemberDescriptorType):
        name = name.removeprefix("_")
        return f"{cls.__name__}.{name} has no value yet: it gets one when the agent joins a run"
    if name in _CHANGES_POPULATION:
        return (
            f"{cls.__name__} has no {name!r}, as the population is fixed when a run begins: give "
            "those who come later, or leave, a state for that"
        )

    # loaded only for a message
    from difflib import get_close_matches

    public = [each for each in dir(cls) if not each.startswith("_")]
    near = get_close_matches(name, [*cls.fields, *public], n=1)
    guess = f" (did you mean {near[0]!r}?)" if near else ""

    return (
        f"{cls.__name__} has no field {name!r}{guess}; a field is declared with its type:  "
        f"{name}: int = state(...)"
    )


_CHANGES_POPULATION = ("add", "add_agent", "add_agents", "kill", "remove", "remove_agent", "spawn")
"""Names that other libraries use and that users try first."""


def _declared_in(owner: str, namespace: Mapping[str, Any]) -> dict[str, Field]:
    annotations = _annotations_of(namespace)
    found = {}
    for name, annotation in annotations.items():
        if name.startswith("__") or _is_class_variable(annotation):
            continue

        given = namespace.get(name, MISSING)
        if not isinstance(given, Declared):
            refuse_shared(given, f"state({type(given).__name__})", f"{owner}.{name}: ")
            given = Declared(given)

        found[name] = Field(name, owner, annotation, given)

    for name, value in namespace.items():
        if isinstance(value, Declared) and name not in annotations:
            raise DefinitionError(f"{owner}.{name} needs its type: {name}: float = ...")

    return found


def _refuse_hiding(owner: str, bases: Iterable[type], own: Iterable[str]) -> None:
    """Refuse fields with the names of attributes that every agent or world has."""
    lines = [base for each in bases for base in each.__mro__]
    refuse_all([problem for name in own if (problem := _hiding(owner, name, lines))])


def _hiding(owner: str, name: str, lines: Sequence[type]) -> str:
    """Return the problem if a field has the name of another attribute, or else nothing."""
    above = [base for base in lines if _has(base, name)]
    if not above or any(name in getattr(base, "fields", {}) for base in above):
        return ""

    first, value = above[-1], vars(above[-1]).get(name)
    public = [*filter(_is_public, (base for base in lines if issubclass(base, first)))]
    is_setting = not callable(value) and not hasattr(value, "__get__")
    mend = f"set it without a type, {name} = ..." if is_setting else "give it another name"

    return f"the field {owner}.{name} would hide {public[-1].__name__}.{name}: {mend}"


def _is_public(cls: type) -> bool:
    return not cls.__name__.startswith("_")


def refuse_all(problems: Sequence[str]) -> None:
    """Refuse a class, with all of its problems in one message.

    Raises:
        DefinitionError: If there are any problems.
    """
    if problems:
        raise DefinitionError("; ".join(problems))


def _has(cls: type, name: str) -> bool:
    """Return whether a class defines an attribute, or declares that its subclasses do."""
    said = vars(cls).get("__annotations__", {}).get(name)
    return name in vars(cls) or _is_class_variable(said)


def _annotations_of(namespace: Mapping[str, Any]) -> Mapping[str, Any]:
    if "__annotations__" in namespace or sys.version_info < (3, 14):
        return cast(Mapping[str, Any], namespace.get("__annotations__", {}))

    # since Python 3.14, annotations are evaluated on access
    library: Any = import_module("annotationlib")
    annotate = library.get_annotate_from_class_namespace(namespace)
    if annotate is None:
        return {}

    found = library.call_annotate_function(annotate, library.Format.FORWARDREF)
    return cast(Mapping[str, Any], found)


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return _CLASS_VARIABLE.match(annotation) is not None

    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _refuse_open(cls: Any) -> None:
    """Refuse a class whose objects accept any attribute because a base has no slots."""
    if cls.__dictoffset__ == 0:
        return

    open_bases = [base.__name__ for base in cls.__mro__[1:] if "__dict__" in vars(base)]
    raise DefinitionError(
        f"{cls.__name__} would accept undeclared attributes, since "
        f"{', '.join(open_bases) or 'one of its bases'} has no slots: write  __slots__ = ()  "
        "there"
    )


def refuse_shared(value: Any, mend: str, where: str = "") -> None:
    """Refuse a mutable value that all objects of a class would share.

    Raises:
        DefinitionError: If it is mutable.
    """
    if isinstance(value, _MUTABLE):
        kind = type(value).__name__
        raise DefinitionError(f"{where}the {kind} {value!r} would be shared by all: use {mend}")


def _mend_of(hint: Any) -> str | None:
    """Return what to use instead of a type that cannot be kept, or None if it can."""
    if isinstance(hint, str):
        return _NOT_A_SET if _SET.search(hint) else None
    if (get_origin(hint) or hint) in _SETS:
        item = ", ".join(map(words_of_type, get_args(hint))) or "..."
        return f"use dict[{item}, None], which has an order"
    if isinstance(hint, type):
        return "use a number, a text, or a Thing" if hint in _UNKEPT else None

    return next((mend for each in get_args(hint) if (mend := _mend_of(each))), None)


_NOT_A_SET = "use a dict[..., None], which has an order"
_SETS = (set, frozenset)
_UNKEPT = (bytes, bytearray, complex, object, RandomStream, FunctionType)


def is_a(hint: Any, value: Any) -> bool:
    """Return whether a value has a type, as far as this can be checked."""
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in (Union, UnionType):
        return any(is_a(each, value) for each in get_args(hint))
    if isinstance(origin, type):
        return isinstance(value, origin) and _items_are(origin, get_args(hint), value)

    # `Any` is a class since Python 3.11
    is_class = isinstance(hint, type) and hint is not Any
    return _is_instance(hint, value) if is_class else True


def _is_instance(cls: type, value: Any) -> bool:
    # True is an int, but not a number here
    if cls in (int, float) and isinstance(value, bool):
        return False

    return isinstance(value, (int, float) if cls is float else cls)


def _items_are(kind: type, items: tuple[Any, ...], value: Any) -> bool:
    """Return whether the items of a tuple, list or deque have its types."""
    if kind not in (tuple, list, deque) or not items:
        return True
    if kind is tuple and items and items[-1] is not ...:
        return len(value) == len(items) and all(map(is_a, items, value))

    return all(is_a(items[0], item) for item in value)


def slot_of(cls: type, name: str) -> MemberDescriptorType:
    """Return the descriptor that reads and writes a field without checks."""
    found = next(vars(base)[name] for base in cls.__mro__ if name in vars(base))
    return cast(MemberDescriptorType, found)


def derived(cls: type, **attributes: Any) -> Any:
    """Return a class that differs from another one only in some of its attributes."""
    same = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return Fields(cls.__name__, (cls,), {**same, **attributes})


_TRUTH = {"true": True, "yes": True, "false": False, "no": False}
_NOTHING = ("none", "null")
_ARRAYS = (list, tuple, deque)


def read_value(hint: Any, value: Any) -> Any:
    """Return the value that a text or a JSON value represents.

    A text is a number, true or false, the value or name of an enum member, one of a `Literal`,
    ``none`` if None is allowed, or a JSON array. If the type cannot be resolved, the value is
    returned unchanged.

    Raises:
        ValueError: If it represents no value of the type.
    """
    if hint is Any:
        return value

    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _of_several(get_args(hint), value)
    if origin is Literal:
        return _among(get_args(hint), value)
    if _is_enum(hint):
        return _among(tuple(hint), value)

    kind = origin or hint
    if isinstance(value, str) and kind not in _ARRAYS:
        return _of_text(kind, value)

    given = parse_json(value) if isinstance(value, str) else value
    # a JSON string may represent a text itself
    if isinstance(given, str):
        return _of_text(kind, given)

    return _of_json(kind, get_args(hint), given)


def _of_text(kind: Any, text: str) -> Any:
    if kind is bool:
        if text.lower() not in _TRUTH:
            raise ValueError(text)
        return _TRUTH[text.lower()]
    if kind is int:
        return int(text)
    if kind is float:
        number = float(text)
        if not isfinite(number):
            raise ValueError(text)
        return number
    if isinstance(kind, type) and not is_a(kind, text):
        raise ValueError(text)

    return text


def _of_json(kind: Any, items: Sequence[Any], value: Any) -> Any:
    """Return the tuple or deque that a JSON array represents."""
    if not (isinstance(value, list) and kind in _ARRAYS):
        return value

    if kind is tuple and items and items[-1] is not ...:
        if len(value) != len(items):
            raise ValueError(value)
        return tuple(map(read_value, items, value))

    hint = items[0] if items else Any

    return kind(read_value(hint, item) for item in value)


def _of_several(members: Sequence[Any], value: Any) -> Any:
    is_nothing = value is None or (isinstance(value, str) and value.lower() in _NOTHING)
    if is_nothing and NoneType in members:
        return None

    # a text stays a text only if no other type fits
    for member in sorted(members, key=lambda each: each is str):
        try:
            found = read_value(member, value)
        except ValueError:
            continue
        if is_a(member, found):
            return found

    raise ValueError(value)


def _among(options: Sequence[Any], value: Any) -> Any:
    """Return the option that a value equals, or that a text names."""
    plain = [(option, getattr(option, "value", option)) for option in options]
    for option, own in plain:
        if option is value or (type(own) is type(value) and own == value):
            return option
    for option, own in plain:
        if isinstance(value, str) and value in (str(own), getattr(option, "name", None)):
            return option

    raise ValueError(value)


def read_field(owner: str, field: Field, hint: Any, value: Any) -> Any:
    """Return the value of a field that a text or a JSON value represents.

    Raises:
        FieldTypeError: If it represents no value of the type; the message names the class of the
            field.
    """
    try:
        return read_value(hint, value)
    except ValueError:
        wanted = words_of_type(hint, field.annotation)
        if hint is float and str(value).strip("+- ").lower() in ("inf", "infinity", "nan"):
            wanted = "a finite number"
        raise FieldTypeError(f"{owner}.{field.name} must be {wanted}, got {value!r}") from None


def words_of_type(hint: Any, annotation: Any = None) -> str:
    """Return a type in words for messages, with the values of an enum or a `Literal`.

    Args:
        hint: The type, or its text if it could not be resolved.
        annotation: The type as written in its class. Defaults to the type.
    """
    if options := options_of(hint):
        return f"one of {', '.join(map(str, options))}"
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(words_of_type, get_args(hint)))
    if hint is NoneType:
        return "none"

    is_simple = hint in (bool, int, float, str)
    named = hint if annotation is None or is_simple else annotation

    return named if isinstance(named, str) else _name_of(named)


def options_of(hint: Any) -> list[Any]:
    """Return the values of an enum, as they are written, or of a `Literal`; else none."""
    if _is_enum(hint):
        return list(map(_shown, hint))
    return [*get_args(hint)] if get_origin(hint) is Literal else []


def _is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)


def _shown(option: Enum) -> str:
    return option.value if isinstance(option.value, str) else option.name


def shown_value(value: Any) -> Any:
    """Return a value as `plain_value` does, but enum members by names that can be read again."""
    return _shown(value) if isinstance(value, Enum) else plain_value(value)


def _name_of(annotation: Any) -> str:
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__

    # without the modules of what it is made of
    return re.sub(r"\b[\w.]+\.(?=\w)", "", str(annotation))


def plain_value(value: Any) -> Any:
    """Return a value as JSON: an enum member by its value, a tuple or deque as a list."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (list, tuple, deque)):
        return [plain_value(each) for each in value]
    if isinstance(value, Mapping):
        return {str(plain_value(key)): plain_value(each) for key, each in value.items()}

    return value
