"""What classes of agents and worlds declare: fields, parameters, and methods with a mark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from inspect import get_annotations, isfunction
from math import inf
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from prism.errors import DefinitionError, FieldTypeError, FieldValueError
from prism.randomness import RandomStream
from prism.statechart.names import did_you_mean

ValueT = TypeVar("ValueT")
MethodT = TypeVar("MethodT", bound=Callable[..., Any])

MISSING: Any = object()

STEP, RATE = "during", "rate"
MEASURE, TREATMENT, PICTURE = "is_measure", "is_treatment", "is_picture"
"""Marks of methods."""

MARKS = (STEP, MEASURE, TREATMENT, PICTURE)


@dataclass(frozen=True, slots=True)
class Field:
    """A declared field.

    Args:
        default: Its value, if it has one.
        make: Makes its value for each object, such as ``list``.
        draw: Draws it from a stream when its agent joins a run.
        is_state: Whether it changes during a run. In a world, others are parameters.
        help: What it means.
        least: Smallest value.
        most: Largest value.
    """

    default: Any = MISSING
    make: Callable[[], Any] | None = None
    draw: Callable[[RandomStream], Any] | None = None
    is_state: bool = False
    help: str = ""
    least: float | None = None
    most: float | None = None


@overload
def state(default: Callable[[], ValueT]) -> ValueT: ...
@overload
def state(default: ValueT) -> ValueT: ...
def state(default: Any = MISSING) -> Any:
    """Declare a field that changes during a run.

    Args:
        default: Its first value. For a list, dict or deque, pass what makes it: ``state(list)``. A
            field of an agent can also be drawn: ``state(uniform(0, 1))``.

    Raises:
        DefinitionError: If the default is a list, dict or set, which all objects would share.
    """
    if isinstance(default, Field):
        return replace(default, is_state=True)
    if callable(default) and not isinstance(default, Enum):
        return Field(make=default, is_state=True)

    refuse_shared(default, f"state({type(default).__name__})")
    return Field(default, is_state=True)


def param(
    default: ValueT = MISSING,
    help: str = "",  # noqa: A002
    *,
    least: float | None = None,
    most: float | None = None,
) -> ValueT:
    """Declare a parameter of a world with a description and bounds.

    Args:
        default: Its default value. Without one, the parameter is required.
        help: What it means, for ``prism world show``.
        least: Smallest value.
        most: Largest value.

    Raises:
        DefinitionError: If the default is a list, dict or set.
    """
    refuse_shared(default, "a tuple")
    return cast(ValueT, Field(default, help=help, least=least, most=most))


def refuse_shared(value: Any, instead: str) -> None:
    """Refuse a default that all objects of a class would share.

    Raises:
        DefinitionError: If it can change, like a list, dict or set.
    """
    if type(value).__hash__ is None:
        raise DefinitionError(f"{value!r} would be shared by all objects: use {instead}")


def _refuse_shared_attributes(cls: type) -> None:
    for name, value in vars(cls).items():
        is_constant = name.startswith("_") or name.isupper() or hasattr(super(cls, cls), name)
        if not is_constant and cls.__module__.partition(".")[0] != "prism":
            refuse_shared(value, f"{name}: ... = state({type(value).__name__})")


# Fields that are drawn


def draw(function: Callable[[RandomStream], ValueT]) -> ValueT:
    """Declare a value that a function draws once for each agent.

    Args:
        function: Takes the field's random stream: ``draw(lambda random: random.beta(2, 5))``.
    """
    return cast(ValueT, Field(draw=function))


def uniform(low: float, high: float) -> float:
    """Declare a number that is drawn once for each agent, uniformly from ``low`` to ``high``."""
    return draw(lambda stream: stream.between(low, high))


# to a type checker, `uniform(0, 1)` is an ordinary default, so no field specifiers are named
@dataclass_transform(kw_only_default=True, eq_default=False)
class Declares:
    """A base of classes whose annotated attributes are fields."""

    fields: ClassVar[Mapping[str, Field]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Take the fields of the class."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls) and cls.__module__.partition(".")[0] != "prism":
            problem = "declare fields instead, and do the rest in the world's setup or populate"
            raise DefinitionError(f"{cls.__name__}.__init__: {problem}")
        _refuse_shared_attributes(cls)
        fields: dict[str, Field] = {}
        for name, hint in get_annotations(cls).items():
            if name.startswith("_") or "ClassVar" in str(hint):
                continue
            value = vars(cls).get(name, MISSING)
            if callable(value) and not isinstance(value, (Field, Enum, type)):
                continue
            refuse_shared(value, f"{name}: ... = state({type(value).__name__})")
            fields[name] = value if isinstance(value, Field) else Field(value)
            if isinstance(value, Field):
                delattr(cls, name)
        for name, value in [*vars(cls).items()]:
            # a new default, whose type is that of the base
            if name in cls.fields and name not in fields and not callable(value):
                fields[name] = replace(cls.fields[name], default=value, make=None, draw=None)
        methods = [name for mark in MARKS for name in marked(cls, mark) if name in vars(cls)]
        for name in (*fields, *methods):
            if name not in cls.fields and any(name in vars(base) for base in _above(cls)):
                problem = f"would hide what every {_above(cls)[0].__name__} has"
                cure = "give it another name, or set it without a type"
                raise DefinitionError(f"{cls.__name__}.{name} {problem}: {cure}")
        cls.fields = {**cls.fields, **fields}

    def _fill(
        self, arguments: Mapping[str, Any], stream: Callable[[str], RandomStream] | None
    ) -> None:
        """Set every field to its argument, or to what its declaration makes."""
        cls, plain = type(self), _plain_fields(type(self))
        for name, field in cls.fields.items():
            if name in arguments:
                value = arguments[name]
            elif field.make is not None:
                value = field.make()
            elif field.draw is not None:
                if stream is None:
                    problem = "is drawn, as only agents' fields are: draw it in setup"
                    raise DefinitionError(f"{cls.__name__}.{name} {problem}")
                value = field.draw(stream(name))
            elif field.default is MISSING:
                raise FieldTypeError(f"{cls.__name__} needs {name}: {cls.__name__}({name}=...)")
            else:
                value = field.default
            if name in plain:
                # almost all values have their type already
                types, is_bounded = plain[name]
                if type(value) not in types or (is_bounded and value is not field.default):
                    value = read_value(cls, name, value)
            setattr(self, name, value)


def _above(cls: type) -> list[type]:
    """Return prism's own bases of a class."""
    bases = [base for base in cls.__mro__[1:] if base.__module__.startswith("prism.worlds.")]
    return [base for base in bases if base is not Declares]


def refuse_unknown(cls: type, names: Iterable[str], what: str, fields: Mapping[str, Field]) -> None:
    """Refuse arguments that are no fields, or no parameters.

    Raises:
        TypeError: If one is not; the message names those that there are.
    """
    for name in names:
        if name not in fields:
            raise TypeError(unknown_name(cls, name, what, fields))


def unknown_name(cls: type, name: str, what: str, names: Iterable[str]) -> str:
    """Return what is wrong with a name that a class does not have."""
    problem = f"{cls.__name__} has no {what} {name!r}{did_you_mean(name, [*names])}"
    return problem if what == "field" else f"{problem} (prism world show lists all)"


def by_class(function: MethodT) -> MethodT:
    """Keep what a function of a class returns, which a batch needs in each of its runs."""
    # to mypy a class is not hashable
    return cast(MethodT, cast(Any, lru_cache(maxsize=1024)(function)))


@by_class
def hints_of(cls: type) -> dict[str, Any]:
    """Return the types of a class's fields, as far as they can be resolved."""
    try:
        return get_type_hints(cls)
    except Exception:  # a type that is imported for type checkers only, or defined in a function
        return {}


# Values


_PLAIN = (int, float, str, NoneType, Enum)


@by_class
def _plain_fields(cls: type[Declares]) -> dict[str, tuple[set[Any], bool]]:
    """Return the types of the values of a class's plain fields, and whether these have bounds.

    Plain are fields of numbers, texts, truth values, members of an enum, and of one of these or
    None. In others, such as lists, nothing is checked.
    """
    plain, hints = {}, hints_of(cls)
    for name, field in cls.fields.items():
        hint = hints.get(name)
        types = {*get_args(hint)} if get_origin(hint) in (Union, UnionType) else {hint}
        if all(isinstance(each, type) and issubclass(each, _PLAIN) for each in types):
            # None stands for what is not known yet, and every whole number is a number
            types |= {NoneType} if field.default is None else set()
            types |= {int} if float in types else set()
            plain[name] = types, (field.least, field.most) != (None, None)
    return plain


def read_value(cls: type[Declares], name: str, value: Any) -> Any:
    """Return a value of a field's type, converted from a text if it is one.

    Args:
        cls: The class that declares the field.
        name: The name of the field.
        value: The value.

    Raises:
        FieldTypeError: If it has another type.
        FieldValueError: If it is out of range, or not finite.
    """
    # pydantic takes a tenth of a second to load, which few runs need
    from pydantic import ValidationError

    adapter = _adapter(cls, name)
    if adapter is None:
        return value
    readings = [(adapter.validate_python, value)]
    if isinstance(value, str):
        # a text may stand for a value in JSON, or for the items of a tuple
        readings += [
            (adapter.validate_json, "null" if value.strip().lower() == "none" else value),
            (adapter.validate_python, [each.strip() for each in value.split(",")]),
        ]
    problems = []
    for read, each in readings:
        try:
            return read(each)
        except ValidationError as error:
            problems += error.errors()

    problem = problems[0]
    is_of_its_type = any(word in problem["type"] for word in ("than", "finite"))
    kind = FieldValueError if is_of_its_type else FieldTypeError
    raise kind(f"{cls.__name__}.{name}: {problem['msg']}, got {value!r}")


@by_class
def _adapter(cls: type[Declares], name: str) -> Any:
    """Return what checks the values of a field; None for a type that pydantic cannot check."""
    from pydantic import ConfigDict, TypeAdapter
    from pydantic import Field as Bounds

    field, hint = cls.fields[name], hints_of(cls).get(name, Any)
    bounded: Any = Annotated[hint, Bounds(ge=field.least, le=field.most)]
    # JSON, and so a log, has no infinity and no NaN
    config = ConfigDict(arbitrary_types_allowed=True, allow_inf_nan=False)
    try:
        return TypeAdapter(bounded, config=config)
    except Exception:
        return None


# Marks of methods


def during(
    *states: Enum,
    rate: float | str | Callable[[Any, Any], float] | None = None,
    most: float | None = None,
) -> Callable[[MethodT], MethodT]:
    """Mark a method as the step of agents in some states: ``step(self, agent)``.

    A step that decides, or waits for a message, is ``async``.

    Args:
        states: The states.
        rate: For events in continuous time: the number of events per round for each agent. A
            number, the name of a field of the world, or a function of world and agent, which is
            called for every agent after every event. If one step of a world has a rate, all must.
        most: The largest rate that the function returns. With it, only the rate of one agent is
            evaluated for each event, so a large population takes no longer.

    Raises:
        DefinitionError: If no state is given, or the rate is no function and has a largest value.
    """
    if not states or not all(isinstance(each, Enum) for each in states):
        names = ", ".join(map(repr, states)) or "none"
        problem = f"@during needs states of a chart, got {names}: write the members of its enum"
        raise DefinitionError(problem)
    if most is not None and not (callable(rate) and 0 <= most < inf):
        raise DefinitionError(f"@during(most={most!r}) is the largest value of a rate's function")

    def decorate(method: MethodT) -> MethodT:
        setattr(method, STEP, states)
        setattr(method, RATE, (rate, most))
        return method

    return decorate


@overload
def measure(method: MethodT, /) -> MethodT: ...
@overload
def measure(*, label: str = ..., unit: str = ...) -> Callable[[MethodT], MethodT]: ...
def measure(method: Any = None, /, *, label: str = "", unit: str = "") -> Any:
    """Mark a method, without arguments, to be measured at the end of every round.

    It returns a number, or None if there is nothing to measure.

    Args:
        method: The method.
        label: The measure in words, for figures and papers.
        unit: Its unit.
    """

    def decorate(method: Any) -> Any:
        title = f"{label or method.__name__} ({unit})".removesuffix(" ()")
        setattr(method, MEASURE, title if label or unit else "")
        return method

    return decorate if method is None else decorate(method)


def titles_of(cls: type) -> dict[str, str]:
    """Return the measures of a world's class in words with their units, if they have any."""
    return {name: title for name, title in marked(cls, MEASURE).items() if title}


def treatment(method: MethodT) -> MethodT:
    """Mark a method that changes the world; it has no arguments and is not ``async``.

    It is applied when the round begins that a run names: ``treatments=["warning@12"]``.
    """
    setattr(method, TREATMENT, True)
    return method


@by_class
def marked(cls: type, attribute: str) -> dict[str, Any]:
    """Return the methods of a class that have a mark, those of bases first, with its value."""
    members = {name: each for base in reversed(cls.__mro__) for name, each in vars(base).items()}
    return {
        name: getattr(each, attribute)
        for name, each in members.items()
        if isfunction(each) and hasattr(each, attribute)
    }


def picture(method: MethodT) -> MethodT:
    """Mark a method of a world, ``look(self, agent)``, that returns the colour of an agent.

    It is a colour as ``#rrggbb``, or the name of a group, which gets a colour of its own; None for
    the colour of the agent's state. The report and ``prism watch`` draw each agent at its place in
    the world's space or network.
    """
    setattr(method, PICTURE, True)
    return method
