"""Declared documents: one class reads and checks each kind of document.

A document is a class whose fields are its keys. pydantic reads it, so this module is imported only
where a document is read::

    class Bound(Declaration):
        least: float
        most: float
        step: float | None = Field(None, gt=0, description="Distance of neighbouring values.")

    bound = read_document(Bound, Source.read("bound.toml"))

All problems of a document are reported at once, each with its key, and its line if it is YAML.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from reprlib import repr as brief
from types import UnionType
from typing import Annotated, Any, ClassVar, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from prism.files._source import Problems, Source
from prism.files._yaml import Where

__all__ = [
    "Declaration",
    "Listed",
    "WholeNumber",
    "adapter",
    "keys_at",
    "meant",
    "read_document",
    "shape_problems",
    "shaped",
]

DocumentT = TypeVar("DocumentT")
ItemT = TypeVar("ItemT")

_LONGEST_KEY = 40
_MOST_LISTED = 20
_MOST_READ = 1000
_MOST_SHOWN = 60


class Declaration(BaseModel):
    """Base class of documents and their parts.

    Values are not converted: a number is not a text, and ``"5"`` is not a number. Undeclared keys
    are refused.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False
    )


def _without_fraction(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WholeNumber = Annotated[int, BeforeValidator(_without_fraction)]
"""A whole number, which JSON may write as 5.0."""

Listed = Annotated[tuple[ItemT, ...], Field(strict=False)]
"""A list of the document, which becomes a tuple."""


def read_document(kind: type[DocumentT] | Any, source: Source) -> DocumentT:
    """Read a document.

    Args:
        kind: The class that declares it, or another type, such as a union.
        source: The document.

    Raises:
        DocumentError: If there are problems; the message lists them all.
    """
    problems = Problems(source)
    document = shaped(kind, source.value, problems)
    problems.raise_if_any()

    return cast("DocumentT", document)


def shaped(
    kind: type[DocumentT] | Any, value: Any, problems: Problems, top: Where = ()
) -> DocumentT | None:
    """Read a value, and note the problems of its shape.

    Args:
        kind: The class that declares it, or a type.
        value: The value.
        problems: Collects the problems.
        top: The place of the value in its document.

    Returns:
        None if there were problems.
    """
    try:
        return cast("DocumentT", adapter(cast("Any", kind)).validate_python(value))
    except ValidationError as error:
        for where, message, name in shape_problems(kind, value, error):
            problems.add((*top, *where), message, name)

    return None


@lru_cache(maxsize=64)
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return pydantic's reader of a type, which is slow to make."""
    return TypeAdapter(kind)


def shape_problems(
    kind: Any, value: Any, error: ValidationError
) -> Iterator[tuple[Where, str, str]]:
    """Yield what pydantic says about a value: the place, the problem, and its name.

    If none of several alternatives fits a value, that is one problem.

    Args:
        kind: The class that declares it, or a type.
        value: The value.
        error: The error that reading it raised.
    """
    by_place: dict[Where, list[Any]] = {}
    # more are not reported, and each takes a kilobyte
    for each in error.errors(include_url=False)[:_MOST_READ]:
        by_place.setdefault(_where(each, value), []).append(each)

    around = {where[:length] for where in by_place for length in range(len(where))}
    for where, errors in by_place.items():
        # an alternative that got further into the value says more than those that did not fit
        if where in around and all(each["type"] != "extra_forbidden" for each in errors):
            continue
        yield where, _message(errors, kind, where, value), errors[0]["type"]


def _where(error: Any, value: Any) -> Where:
    """Return the place of an error, without the names of alternatives that pydantic inserts."""
    where: list[str | int] = []
    for part in error["loc"]:
        is_key = isinstance(value, Mapping) and part in value
        if is_key or (isinstance(part, int) and isinstance(value, list | tuple)):
            where.append(part)
            value = _inside(value, part)
    if error["type"] == "missing":
        where.append(error["loc"][-1])

    return tuple(where)


def _message(errors: Sequence[Any], kind: Any, where: Where, value: Any) -> str:
    """Return what is wrong at one place, where each alternative has an error."""
    first = errors[0]
    if first["type"] == "missing":
        return "is missing"
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    if first["type"] == "extra_forbidden":
        return _unknown(str(where[-1]), keys_at(kind, where[:-1], value))

    requirements = dict.fromkeys(each["msg"] for each in errors)
    return f"{' or '.join(requirements)}, got {_shown(first['input'])}"


def _unknown(key: str, keys: Sequence[str]) -> str:
    near = meant(key, keys)
    if near is not None:
        return f"is unknown; did you mean {near!r}?"
    if keys and len(keys) <= _MOST_LISTED:
        return f"is unknown; known are {', '.join(keys)}"

    return "is unknown"


def meant(key: str, keys: Iterable[str]) -> str | None:
    """Return the key that an unknown one probably stands for."""
    if len(key) > _LONGEST_KEY:
        return None

    # typos rarely affect the first letter, and fewer comparisons limit the cost of a hostile file
    similar = [each for each in keys if each[:1].lower() == key[:1].lower()]
    matches = get_close_matches(key, similar, n=1)

    return matches[0] if matches and matches[0] != key else None


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except RecursionError:  # the values are nested too deeply
        text = brief(value)

    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def keys_at(kind: Any, where: Where, value: Any = None) -> tuple[str, ...]:
    """Return the keys that a mapping of a document may have.

    Args:
        kind: The class that declares the document, or a type.
        where: The place of the mapping.
        value: The document. Only the alternative that fits its keys best counts.
    """
    kinds = [*_alternatives(kind)]
    for part in where:
        kinds = [inner for each in kinds for inner in _alternatives(_part_of(each, part))]
        value = _inside(value, part)

    keys = [
        tuple(field.alias or name for name, field in each.model_fields.items())
        for each in kinds
        if isinstance(each, type) and issubclass(each, BaseModel)
    ]
    present = set(value) if isinstance(value, Mapping) else set()
    return max(keys, key=lambda names: len(present & set(names)), default=())


def _alternatives(kind: Any) -> Iterator[Any]:
    """Yield the alternatives of a type, or the type itself."""
    if get_origin(kind) is Annotated:
        yield from _alternatives(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            yield from _alternatives(each)
    else:
        yield kind


def _part_of(kind: Any, part: str | int) -> Any:
    """Return the type of the values inside a value of a type."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = {field.alias or name: field for name, field in kind.model_fields.items()}
        return fields[str(part)].annotation if part in fields else None

    # the values of a mapping, or the items of a list or tuple
    inside = get_args(kind)
    return inside[-1] if get_origin(kind) is dict else next(iter(inside), None)


def _inside(value: Any, part: str | int) -> Any:
    try:
        return value[part]
    except (LookupError, TypeError):
        return None
