"""Declared documents: one class reads, checks and publishes each kind of document.

A document is a class whose fields are its keys. pydantic reads it, so this module is imported only
where a document is read::

    class Bound(Declaration):
        least: float
        most: float
        step: float | None = Field(None, gt=0, description="Distance of neighbouring values.")

    bound = read_document(Bound, Source.read("bound.toml"))

All problems of a document are reported at once, each with its line and key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from reprlib import repr as brief
from types import UnionType
from typing import Annotated, Any, ClassVar, TypeGuard, TypeVar, Union, cast, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    InstanceOf,
    TypeAdapter,
    ValidationError,
)
from pydantic.json_schema import GenerateJsonSchema

from prism.files._source import Problems, Severity, Source, Where, key_of

__all__ = [
    "AnyText",
    "Declaration",
    "Listed",
    "Optionally",
    "WholeNumber",
    "adapter",
    "alternatives",
    "is_declaration",
    "meant",
    "note_ignored",
    "read_document",
    "schema_of",
    "shape_problems",
    "shaped",
]

DocumentT = TypeVar("DocumentT")
ItemT = TypeVar("ItemT")

_MOST_TYPED = 40
"""Maximum length of a key that may be a misspelt other one."""

_MOST_LISTED = 20
_MOST_READ = 1000
_MOST_SHOWN = 60


class Declaration(BaseModel):
    """Base class of documents and their parts.

    Values are not converted: a number is not a text, and ``"5"`` is not a number. Undeclared keys
    are refused.

    Attributes:
        ignored_prefix: Prefix of keys that are neither read nor refused.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False
    )

    ignored_prefix: ClassVar[str] = ""


def _without_fraction(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WholeNumber = Annotated[int, BeforeValidator(_without_fraction)]
"""A whole number, which JSON may write as 5.0."""

Listed = Annotated[tuple[ItemT, ...], Field(strict=False)]
"""A list of the document, which becomes a tuple."""


AnyText = InstanceOf[str]
"""A text that may hold half a surrogate pair, as JSON can write it; pydantic's own refuses that."""


class _NotNull:
    """Removes null from the values of an optional key."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """Return the schema of the type without None."""
        found: Any = handler(source)
        return found["schema"] if found["type"] == "nullable" else found


Optionally = Annotated[ItemT | None, _NotNull()]
"""The type of a key that may be absent but not null; its default is None."""

Check = Callable[[Any], Iterable[tuple[Where, str]]]
"""Yields contradictions in a document of valid shape, each with its place."""


def read_document(
    kind: type[DocumentT] | Any, source: Source, *, checks: Sequence[Check] = ()
) -> DocumentT:
    """Read a document.

    Args:
        kind: The class that declares it, or another type, such as a union.
        source: The document.
        checks: Called with the document, if its shape is valid.

    Raises:
        DocumentError: If there are problems; the message lists them all.
    """
    problems = Problems(source)
    document = shaped(kind, source.value, problems)
    problems.raise_if_any()

    for check in checks:
        for where, message in check(document):
            problems.add(where, message)
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
    reader = adapter(cast("Any", kind))
    try:
        return cast("DocumentT", reader.validate_python(value))
    except ValidationError as error:
        for where, message, name in shape_problems(kind, value, error):
            problems.add((*top, *where), message, name)
        problems.counts["error"] += max(0, error.error_count() - _MOST_READ)

    return None


@lru_cache(maxsize=64)
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return pydantic's reader of a type, which is slow to make."""
    return TypeAdapter(kind)


def schema_of(kind: Any, *, title: str, name: str | None = None) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a document.

    Args:
        kind: The class that declares it, or a type.
        title: Title of the document.
        name: File name under which the schema is published.
    """
    found = part_schema_of(kind)
    found.pop("description", None)
    head = {"$schema": GenerateJsonSchema.schema_dialect, "title": title}

    return {**head, **({"$id": name} if name else {}), **found}


def part_schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a part of a document.

    Args:
        kind: The class that declares it, or a type.
    """
    return adapter(kind).json_schema(by_alias=True, schema_generator=_Schema)


_KEYWORDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
}
"""Bounds as pydantic names them after a validator, and as JSON Schema does."""


class _Schema(GenerateJsonSchema):
    """Schemas without null as a default, and without titles that only repeat names."""

    def generate_inner(self, schema: Any) -> Any:
        found = super().generate_inner(schema)
        return {_KEYWORDS.get(key, key): value for key, value in found.items()}

    def default_schema(self, schema: Any) -> Any:
        found = super().default_schema(schema)
        if found.get("default", ()) is None:
            del found["default"]
        return found

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def model_schema(self, schema: Any) -> Any:
        found = super().model_schema(schema)
        found.pop("title", None)
        return found


# Pydantic's messages in plain words


def shape_problems(
    kind: Any, value: Any, error: ValidationError
) -> Iterator[tuple[Where, str, str]]:
    """Yield pydantic's findings about a value: the place, the problem, and its name.

    If none of several alternatives fits a value, that is one problem.
    """
    by_place: dict[Where, list[Any]] = {}
    # more are not reported, and each takes a kilobyte
    for each in error.errors(include_url=False)[:_MOST_READ]:
        by_place.setdefault(_where(each["loc"], value), []).append(each)

    around = {where[:length] for where in by_place for length in range(len(where))}
    for where, errors in by_place.items():
        # an alternative that got further into the value is more informative than those that stopped
        # here
        if where in around:
            errors = [each for each in errors if each["type"] not in _OTHER_TYPES]
        if not errors:
            continue

        told = list(dict.fromkeys(_told(each, kind, where, value) for each in errors))
        yield where, _either(told), errors[0]["type"]


def _where(location: tuple[str | int, ...], value: Any) -> Where:
    """Return a place in the document, without the names of alternatives that pydantic inserts."""
    where: list[str | int] = []
    for number, part in enumerate(location):
        is_last = number == len(location) - 1
        if isinstance(value, Mapping) and (part in value or (is_last and not _is_tag(part))):
            value = value.get(part)
            where.append(part)
        elif isinstance(value, Sequence) and not isinstance(value, str) and isinstance(part, int):
            value = _inner(value, part)
            where.append(part)

    return tuple(where)


def _is_tag(part: str | int) -> bool:
    """Return whether pydantic has inserted the name of an alternative, such as ``int``."""
    return isinstance(part, str) and (
        part[:1] == "<" or part.partition("[")[0] in _NAMES_OF_TYPES or part[:1].isupper()
    )


_NAMES_OF_TYPES = (
    *("int", "float", "str", "bool", "list", "dict", "tuple", "none", "literal", "constrained-int"),
    *("constrained-str", "constrained-float", "function-before", "function-after", "function-wrap"),
    *("lax-or-strict", "nullable", "json-or-python"),
)

_WORDS: Mapping[str, str] = {
    "model_type": "must be a mapping of keys",
    "model_attributes_type": "must be a mapping of keys",
    "dict_type": "must be a mapping of keys",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "none_required": "must be omitted",
}

# pydantic counts only the items that are valid
_OTHER_TYPES = (
    *(name for name in _WORDS if name.endswith("_type")),
    *("is_instance_of", "too_short"),
)

_BOUNDS: Mapping[str, tuple[str, str]] = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("above", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("below", "lt"),
}


def _too_short(context: Any) -> str:
    least = context["min_length"]
    return "must not be empty" if least == 1 else f"must have at least {least} entries"


_PHRASES: Mapping[str, Callable[[Any], str]] = {
    "missing": lambda _: "is missing",
    "too_short": _too_short,
    "string_too_short": _too_short,
    "too_long": lambda context: (
        f"must have at most {context['max_length']} entries, got {context['actual_length']}"
    ),
    "value_error": lambda context: str(context["error"]),
}
"""The problem, in words that do not repeat the value."""


def _told(error: Any, kind: Any, where: Where, value: Any) -> str:
    """Return one of pydantic's errors in prism's words."""
    name, found, context = error["type"], error.get("input"), error.get("ctx", {})
    name = "string_type" if name == "is_instance_of" and context["class"] == "str" else name
    if name in _PHRASES:
        return _PHRASES[name](context)
    if name == "extra_forbidden":
        return _unknown(str(where[-1]), keys_at(kind, where[:-1], value))
    if name in _WORDS:
        mend = "; put it in quotes" if name == "string_type" and _is_scalar(found) else ""
        return f"{_WORDS[name]}, got {shown(found)}{mend}"
    if name in _BOUNDS:
        words, key = _BOUNDS[name]
        return f"must be {words} {context[key]:g}, got {shown(found)}"
    if name in ("literal_error", "enum"):
        return f"must be {context['expected']}, got {shown(found)}"

    message = str(error["msg"])
    return message[:1].lower() + message[1:]


def _either(told: Sequence[str]) -> str:
    """Join alternative requirements of one value."""
    if len(told) == 1:
        return told[0]
    if not all(each.startswith("must be ") for each in told):
        return " or ".join(told)

    wanted, gots = [], []
    for each in told:
        want, _, got = each.removeprefix("must be ").partition(", got ")
        wanted.append(want)
        gots.append(got.partition(";")[0])
    got = f", got {gots[0]}" if gots[0] else ""

    return f"must be {' or '.join(wanted)}{got}"


def _unknown(key: str, known: Sequence[str]) -> str:
    near = meant(key, known)
    if near is not None:
        return f"is unknown; did you mean {near!r}?"
    if known and len(known) <= _MOST_LISTED:
        return f"is unknown; known are {', '.join(known)}"

    return "is unknown"


def meant(key: str, known: Iterable[str]) -> str | None:
    """Return the key that an unknown one probably stands for."""
    if len(key) > _MOST_TYPED:
        return None

    # typos rarely affect the first letter, and fewer comparisons limit the cost of a hostile file
    near = [each for each in known if each[:1].lower() == key[:1].lower()]
    found = get_close_matches(key, near, n=1)

    return found[0] if found and found[0] != key else None


def shown(value: Any) -> str:
    """Return a value for a message."""
    if value is None:
        return "nothing"

    try:
        text = str(value).lower() if isinstance(value, bool) else repr(value)
    except RecursionError:  # the values are nested too deeply
        text = brief(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _is_scalar(value: Any) -> bool:
    return value is not None and not isinstance(value, (list, dict))


def keys_at(kind: Any, where: Where, value: Any = None) -> tuple[str, ...]:
    """Return the keys that a mapping of a document may have.

    Args:
        kind: The class that declares the document, or a type.
        where: The place of the mapping.
        value: The document. Only the alternatives that fit its keys best count.
    """
    kinds = list(alternatives(kind))
    for part in where:
        kinds = [inner for each in kinds for inner in alternatives(_part_of(each, part))]
        value = _inner(value, part)

    declared = [_keys_of(each) for each in kinds if is_declaration(each)]
    if not declared:
        return ()

    given = set(value) if isinstance(value, Mapping) else set()
    return max(declared, key=lambda names: len(given & set(names)))


def ignored_keys(kind: Any, value: Any, top: Where = ()) -> Iterator[tuple[Where, bool]]:
    """Yield the ignored keys of a document, and whether they are declared as ignored.

    Args:
        kind: The class that declares it. Ignored are deprecated fields, keys that its class is
            configured to ignore, and keys that begin with its ``ignored_prefix``.
        value: The document.
        top: Its place in a larger document.
    """
    if not isinstance(value, dict):
        return
    for each in filter(is_declaration, alternatives(kind)):
        fields = {field.alias or name: field for name, field in each.model_fields.items()}
        for key, inner in value.items():
            field = fields.get(key)
            if field is not None and not field.deprecated:
                yield from ignored_keys(field.annotation, inner, (*top, key))
            elif field is not None or _ignores(each, key):
                yield (*top, key), field is not None


def _ignores(kind: Any, key: str) -> bool:
    """Return whether a declaration ignores an undeclared key."""
    prefix = kind.ignored_prefix
    return kind.model_config.get("extra") == "ignore" or bool(prefix and key.startswith(prefix))


def note_ignored(kind: Any, problems: Problems, severity: Severity) -> None:
    """Add one note that lists the ignored keys of a document.

    Args:
        kind: The class that declares it.
        problems: Holds the document, and receives the note.
        severity: The severity of the note.
    """
    value = problems.source.value
    found = list(ignored_keys(kind, value))
    if not found:
        return

    named = []
    for where, is_known in found[:_MOST_LISTED]:
        near = None if is_known else meant(str(where[-1]), keys_at(kind, where[:-1], value))
        named.append(key_of(where) + ("" if near is None else f" (did you mean {near!r}?)"))
    more = f" and {len(found) - len(named):,} more" if len(found) > len(named) else ""
    message = f"prism ignores {', '.join(named)}{more}"
    problems.add(found[0][0], message, "left_out", severity=severity)


def is_declaration(kind: Any) -> TypeGuard[type[BaseModel]]:
    """Return whether a kind of value is a class of documents."""
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _keys_of(kind: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys of a mapping, without the deprecated ones."""
    found = kind.model_fields.items()
    return tuple(field.alias or name for name, field in found if not field.deprecated)


def _inner(value: Any, part: str | int) -> Any:
    try:
        return value[part]
    except (LookupError, TypeError):
        return None


def alternatives(kind: Any) -> Iterator[Any]:
    """Yield the alternatives of a type, or the type itself."""
    if get_origin(kind) is Annotated:
        yield from alternatives(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            yield from alternatives(each)
    else:
        yield kind


def _part_of(kind: Any, part: str | int) -> Any:
    """Return the type of the values inside a value of a type."""
    if is_declaration(kind):
        for name, field in kind.model_fields.items():
            if part in (name, field.alias):
                return field.annotation
        return None

    inside = get_args(kind)
    return inside[-1] if len(inside) == 2 and get_origin(kind) is dict else next(iter(inside), None)
