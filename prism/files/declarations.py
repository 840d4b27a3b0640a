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

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from reprlib import repr as brief
from typing import Annotated, Any, ClassVar, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from prism.files.records import Where
from prism.files.source import Problems, Source

_DocumentT = TypeVar("_DocumentT")
_ItemT = TypeVar("_ItemT")

_LONGEST_KEY = 40
_MOST_READ = 1000


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

Listed = Annotated[tuple[_ItemT, ...], Field(strict=False)]
"""A list of the document, which becomes a tuple."""


def read_document(kind: type[_DocumentT] | Any, source: Source) -> _DocumentT:
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

    return cast("_DocumentT", document)


def shaped(
    kind: type[_DocumentT] | Any, value: Any, problems: Problems, top: Where = ()
) -> _DocumentT | None:
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
        return cast("_DocumentT", adapter(cast("Any", kind)).validate_python(value))
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
    errors_at: dict[Where, list[Any]] = {}
    # more are not reported, and each takes a kilobyte
    for each in error.errors(include_url=False)[:_MOST_READ]:
        errors_at.setdefault(_where(each, value), []).append(each)

    around = {where[:length] for where in errors_at for length in range(len(where))}
    for where, errors in errors_at.items():
        # an alternative that got further into the value says more than those that did not fit
        if where in around and all(each["type"] != "extra_forbidden" for each in errors):
            continue
        yield where, _message(errors, kind, where), errors[0]["type"]


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


def _message(errors: Sequence[Any], kind: Any, where: Where) -> str:
    """Return what is wrong at one place, where each alternative has an error."""
    first = errors[0]
    if first["type"] == "missing":
        return "is missing"
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    if first["type"] == "extra_forbidden":
        return _unknown(str(where[-1]), kind)

    # the class that declares a document says nothing to who writes it
    requirements = dict.fromkeys(each["msg"].partition(" or instance of ")[0] for each in errors)
    return f"{' or '.join(requirements)}, got {brief(first['input'])}"


def _unknown(key: str, kind: Any) -> str:
    """Return the problem of an unknown key, with the key that it probably stands for."""
    if len(key) > _LONGEST_KEY:
        return "is unknown"
    near = get_close_matches(key, _keys(kind), n=1)
    return f"is unknown; did you mean {near[0]!r}?" if near else "is unknown"


@lru_cache(maxsize=64)
def _keys(kind: Any) -> tuple[str, ...]:
    """Return all keys that a document and its parts may have."""
    schema = adapter(kind).json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return tuple(name for part in parts for name in part.get("properties", ()))


def _inside(value: Any, part: str | int) -> Any:
    try:
        return value[part]
    except (LookupError, TypeError):
        return None
