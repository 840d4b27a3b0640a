"""The fields that agents and worlds declare: their defaults and draws, and a world's parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    TypeVar,
    cast,
    dataclass_transform,
    get_type_hints,
    overload,
)

from prism.errors import DefinitionError, FieldTypeError, FieldValueError
from prism.randomness import RandomStream

ValueT = TypeVar("ValueT")

MISSING: Any = object()


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

    @property
    def is_required(self) -> bool:
        """Whether a value must be given."""
        return self.default is MISSING and self.make is None and self.draw is None


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
        DefinitionError: If the default is a list, dict or set, or is drawn.
    """
    refuse_shared(default, "a tuple")
    if isinstance(default, Field):
        raise DefinitionError(
            "a parameter has one value: declare state(...), and draw it in setup with self.random"
        )

    return cast(ValueT, Field(default, help=help, least=least, most=most))


def refuse_shared(value: Any, instead: str) -> None:
    """Refuse a default that all objects of a class would share.

    Raises:
        DefinitionError: If it is a list, dict or set.
    """
    if isinstance(value, (list, dict, set)):
        raise DefinitionError(
            f"the default {value!r} would be shared by all objects: use {instead}"
        )


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


def whole(least: int, most: int) -> int:
    """Declare a whole number that is drawn once for each agent, including both ends."""
    return draw(lambda stream: least + stream.index(most - least + 1))


def one_of(*options: ValueT) -> ValueT:
    """Declare a value that is drawn once for each agent from several equally likely ones."""
    for option in options:
        refuse_shared(option, "tuples")
    return draw(lambda stream: stream.choice(options))


def normal(mean: float = 0.0, sd: float = 1.0) -> float:
    """Declare a number that is drawn once for each agent from a normal distribution."""
    return draw(lambda stream: stream.normal(mean, sd))


# to a type checker, `uniform(0, 1)` is an ordinary default, so no field specifiers are named
@dataclass_transform(kw_only_default=True, eq_default=False)
class Declares:
    """A base of classes whose annotated attributes are fields."""

    fields: ClassVar[Mapping[str, Field]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Take the fields of the class."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls) and cls.__module__.partition(".")[0] != "prism":
            raise DefinitionError(
                f"{cls.__name__}.__init__: declare fields with their types instead, and do the "
                "rest in the world's setup or populate"
            )
        own: dict[str, Field] = {}
        for name, hint in vars(cls).get("__annotations__", {}).items():
            if name.startswith("_") or "ClassVar" in str(hint):
                continue
            value = vars(cls).get(name, MISSING)
            if callable(value) and not isinstance(value, (Field, Enum, type)):
                continue
            refuse_shared(value, f"{name}: ... = state({type(value).__name__})")
            own[name] = value if isinstance(value, Field) else Field(value)
            if isinstance(value, Field):
                delattr(cls, name)
        for name, value in [*vars(cls).items()]:
            # a new default, whose type is that of the base
            if name in cls.fields and name not in own and not callable(value):
                own[name] = replace(cls.fields[name], default=value, make=None, draw=None)
        for name in own:
            if name not in cls.fields and any(name in vars(base) for base in _above(cls)):
                raise DefinitionError(
                    f"{cls.__name__}.{name} would hide what every {_above(cls)[0].__name__} has: "
                    "give it another name, or set it without a type"
                )
        cls.fields = {**cls.fields, **own}

    def _fill(
        self, arguments: Mapping[str, Any], stream: Callable[[str], RandomStream] | None
    ) -> None:
        """Set every field to its argument, or to what its declaration makes."""
        cls = type(self)
        for name, field in cls.fields.items():
            if name in arguments:
                setattr(self, name, arguments[name])
            elif field.make is not None:
                setattr(self, name, field.make())
            elif field.draw is not None:
                if stream is None:
                    raise DefinitionError(
                        f"{cls.__name__}.{name} is drawn, which works only for fields of agents: "
                        "draw it in setup, with self.random"
                    )
                setattr(self, name, field.draw(stream(name)))
            elif field.default is MISSING:
                raise TypeError(f"{cls.__name__} needs {name}: {cls.__name__}({name}=...)")
            else:
                setattr(self, name, field.default)


def _above(cls: type) -> list[type]:
    """Return prism's own bases of a class."""
    own = [base for base in cls.__mro__[1:] if base.__module__.startswith("prism.worlds.")]
    return [base for base in own if base is not Declares]


def require_fields(cls: type[Declares], names: Iterable[str]) -> None:
    """Refuse arguments that are no fields.

    Raises:
        TypeError: If one is not; the message names those that there are.
    """
    for name in names:
        if name not in cls.fields:
            raise TypeError(_unknown(cls, name, "field", cls.fields))


def hints_of(cls: type) -> dict[str, Any]:
    """Return the types of a class's fields, as far as they can be resolved."""
    try:
        return get_type_hints(cls)
    except Exception:  # a type that is imported for type checkers only, or defined in a function
        return {}


# Parameters of worlds


def parameters_of(cls: type[Declares]) -> dict[str, Field]:
    """Return the parameters of a world's class by name."""
    return {name: field for name, field in cls.fields.items() if not field.is_state}


def parameter_values(world: Any) -> dict[str, Any]:
    """Return the current values of a world's parameters by name."""
    return {name: getattr(world, name) for name in parameters_of(type(world))}


def read_parameters(cls: type[Declares], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters, converted from texts and checked by their types and bounds.

    Raises:
        TypeError: If there is no such parameter.
        FieldTypeError: If a value has the wrong type.
        FieldValueError: If a value is out of its range.
    """
    known = parameters_of(cls)
    hints = hints_of(cls) if values else {}
    for name in values:
        if name in cls.fields and name not in known:
            raise TypeError(f"{cls.__name__}.{name} is state, not a parameter: set it in setup")
        if name not in known:
            raise TypeError(_unknown(cls, name, "parameter", known))

    return {
        name: read_value(f"{cls.__name__}.{name}", known[name], hints.get(name, Any), value)
        for name, value in values.items()
    }


def _unknown(cls: type, name: str, what: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(known) or f"no {what}"
    return f"{cls.__name__} has no {what} {name!r}: it has {listed}{guess}"


def read_value(where: str, field: Field, hint: Any, value: Any) -> Any:
    """Return a value of a field's type, converted from a text if it is one.

    Args:
        where: The field's class and name, for messages.
        field: Its declaration.
        hint: Its type.
        value: The value.
    """
    # pydantic takes a tenth of a second to load, which few runs need
    from pydantic import Field as Bounds
    from pydantic import TypeAdapter, ValidationError

    has_bounds = field.least is not None or field.most is not None
    bounded: Any = hint
    if has_bounds:
        bounded = Annotated[hint, Bounds(ge=field.least, le=field.most)]
    try:
        adapter = TypeAdapter(bounded, config={"arbitrary_types_allowed": True})
    except Exception:  # a type that pydantic cannot check
        return value
    for each in _readings(value):
        try:
            return adapter.validate_python(each)
        except ValidationError as error:
            problem = error.errors()[0]

    kind = FieldValueError if "than" in problem["type"] else FieldTypeError
    raise kind(f"{where}: {problem['msg']}, got {value!r}")


def _readings(value: Any) -> list[Any]:
    """Return what a text may stand for: itself, a value in JSON, or the items of a tuple."""
    if not isinstance(value, str):
        return [value]
    readings: list[Any] = [value]
    if value.strip().lower() == "none":
        readings.append(None)
    try:
        readings.append(json.loads(value))
    except ValueError:
        readings.append([each.strip() for each in value.split(",")])
    return readings


def plain_value(value: Any) -> Any:
    """Return a value as JSON represents it: an enum by its value, a tuple as a list."""
    if isinstance(value, Enum):
        return plain_value(value.value)
    if isinstance(value, (list, tuple)):
        return [plain_value(each) for each in value]
    if isinstance(value, Path):
        return str(value)
    return value


def words_of_type(hint: Any) -> str:
    """Return a type as it is written."""
    return getattr(hint, "__name__", None) or str(hint).replace("typing.", "")
