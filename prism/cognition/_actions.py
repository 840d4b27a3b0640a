"""The actions that a reply can ask for while executing: the memory's, and an application's own."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal, TypeVar, get_type_hints

from pydantic import PydanticUserError, ValidationError

from prism.cognition._memory._memory import Memory
from prism.cognition._memory._values import as_tag
from prism.cognition._prompts import FIELD_OF_EXAMPLE, TAG_OF_EXAMPLE
from prism.cognition._replies import AskedAction
from prism.cognition._settings import AVAILABLE_ACTIONS, MEMORY_ACTIONS, WITH_VALUE
from prism.errors import DefinitionError, PrismError
from prism.files.declarations import adapter

ActionOutcome = Literal["done", "missing", "refused", "unusable", "failed"]

MOST_FOUND = 5
"""Memories that a search shows."""

_SUGGESTED = 3
_LOOKED_AT = 20

_REPEATED = "the reply repeats the example of the prompt"


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result of an action that a reply asked for.

    Args:
        type: The kind of action, such as ``working_memory_add``; empty if the reply does not say.
        tags: The memory that it concerns.
        outcome: ``done``; ``missing`` if this memory does not exist; ``refused`` if it could not be
            carried out. In a prompt also ``unusable`` if the reply was useless, and ``failed`` if
            none came.
        reason: Why it was not done, or had no effect.
        answer: The result of an action of the application.
        found: Tags of the memories that a search found, best first.
    """

    type: str
    tags: str
    outcome: ActionOutcome = "done"
    reason: str | None = None
    answer: str | None = None
    found: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, without empty keys."""
        told = asdict(self) | {"found": list(self.found)}
        return {key: value for key, value in told.items() if value not in (None, "", [])}


def carry_out(memory: Memory, asked: AskedAction) -> ActionResult:
    """Carry out an action of the memory that has no problem."""
    tags, value = _tag_meant(memory, asked), value_of(asked)
    before = _held(memory, tags)
    match asked.type:
        case "storage_search":
            return _search(memory, asked)
        case "working_memory_add":
            memory.add(tags, value)
            is_there = True
        case "working_memory_remove":
            is_there = memory.remove(tags)
        case "storage_load":
            is_there = memory.load(tags)
        case _:
            is_there = memory.save(tags, value)

    if not is_there:
        return ActionResult(asked.type, tags, "missing", _missing(memory, asked))

    memory.touch([tags])
    is_same = _held(memory, tags) == before
    return ActionResult(asked.type, tags, reason="nothing has changed by it" if is_same else None)


def tag_in(memory: Memory, tag: str, *, is_stored: bool) -> str | None:
    """Return the tag of a memory that a tag names, in any case; None if none or several are meant.

    Args:
        memory: The memory.
        tag: A tag.
        is_stored: Whether it is looked for in storage, otherwise in working memory.
    """
    known: Collection[str] = memory.working
    if is_stored and memory.stored(tag) is not None:
        known = [tag]
    elif is_stored:
        known = [match.tag for match in memory.search(tag.replace("_", " "), _LOOKED_AT)]
    alike = [tag] if tag in known else [it for it in known if it.casefold() == tag.casefold()]

    return alike[0] if len(alike) == 1 else None


def _tag_meant(memory: Memory, asked: AskedAction) -> str:
    """Return the tag of an action, as the memory that it concerns is called if there is one."""
    is_new = asked.type in WITH_VALUE and value_of(asked) is not None
    is_stored = asked.type == "storage_load"
    found = None if is_new else tag_in(memory, as_tag(asked.tags), is_stored=is_stored)
    return asked.tags if found in (None, as_tag(asked.tags)) else str(found)


def _held(memory: Memory, tags: str) -> tuple[Any, Any]:
    return memory.working.get(as_tag(tags)), memory.stored(tags)


def problem_of(
    asked: AskedAction | None,
    memory: Memory,
    available: Collection[str],
    own: Mapping[str, OwnAction],
    fits: Callable[[str, Any], bool],
) -> str | None:
    """Return why an action cannot be carried out while executing; None if it can.

    Args:
        asked: What the reply asks for, if anything.
        memory: The memory.
        available: Types of action that the configuration has.
        own: Actions of the application.
        fits: Whether a prompt has room for a memory, if it has no other.
    """
    if asked is None:
        return "the reply asks for no action"
    if asked.type in own:
        return None  # its fields are checked when it is carried out

    known = [*filter(available.__contains__, MEMORY_ACTIONS), *own]
    if asked.type not in known:
        return _unknown(asked.type, known)

    tag = as_tag(_tag_meant(memory, asked))
    if asked.type == "storage_search":
        return None if tag or value_of(asked) else "the search has no words"
    if not tag:
        return "the action has no tags"
    if tag == TAG_OF_EXAMPLE:
        return f"{_REPEATED}: name the memory that is meant"

    return _problem_of_value(asked, tag, memory, fits)


def _unknown(name: str, known: list[str]) -> str:
    what = f"{name!r} is no action" if name else "the action has no type"
    close = get_close_matches(name, known, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    return f"{what} that can be carried out: {', '.join(known) or 'none is available'}{meant}"


def value_of(asked: AskedAction) -> str | None:
    """Return the value that an action has; an element that is left empty has none."""
    return asked.value if asked.value and asked.value.strip() else None


def _problem_of_value(
    asked: AskedAction, tag: str, memory: Memory, fits: Callable[[str, Any], bool]
) -> str | None:
    value: Any = value_of(asked)
    if asked.type == "working_memory_add" and value is None:
        return "the action has no value"
    if asked.type == "storage_save" and value is None and tag not in memory.working:
        return "the action has no value, and neither has working memory"

    if asked.type == "storage_load":
        value = memory.stored(tag)
    if asked.type in ("working_memory_add", "storage_load") and not fits(tag, value):
        return "the value alone exceeds the hard limit"

    return None


def _search(memory: Memory, asked: AskedAction) -> ActionResult:
    words = " ".join(filter(None, (asked.tags.replace("_", " "), value_of(asked))))
    found = tuple(match.tag for match in memory.search(words, MOST_FOUND))
    if not found:
        none = "no memory in storage contains any of these words"
        return ActionResult(asked.type, asked.tags, "missing", none)

    last = memory.last_action or {}
    is_same = (last.get("type"), last.get("tags")) == (asked.type, asked.tags)
    reason = "it repeats the last search" if is_same else None
    return ActionResult(asked.type, asked.tags, reason=reason, found=found)


def _missing(memory: Memory, asked: AskedAction) -> str:
    """Say what is not there, and what comes near to it."""
    if asked.type == "storage_load":
        close = [match.tag for match in memory.search(asked.tags.replace("_", " "), _SUGGESTED)]
        near = f"; storage has {', '.join(close)}" if close else ""
        return f"there is no {asked.tags!r} in storage{near}"

    return f"there is no {asked.tags!r} in working memory"


# --- actions of an application --------------------------------------------------------------------

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_MARK = "_prism_action"
_OF_MEMORY = ("tags", "value")
_KINDS: Mapping[str, str] = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "null": "null",
}


class ActionRefusedError(PrismError, ValueError):
    """An action cannot be carried out now; the agent's next prompt says why."""


def action(function: FunctionT) -> FunctionT:
    """Turn a method of a `CognitiveAgent` into an action that its model can ask for by name.

    The parameters are the fields of the action, with the annotated types. The first line of the
    docstring tells the model what the action does. A parameter ``world`` is not a field: it
    receives the world in which the agent acts. The next prompt shows the method's result as text,
    or the message of an `ActionRefusedError`::

        class Trader(CognitiveAgent):
            @action
            def bid(self, world: Market, price: float) -> str:
                \"\"\"Offer to buy one unit at a price.\"\"\"
                return f"you are number {world.queue(self, price)} in the queue"

    Args:
        function: A plain method; one that is ``async`` is refused.

    Raises:
        DefinitionError: If no reply could ask for it.
    """
    setattr(function, _MARK, own_action(function))
    return function


@dataclass(frozen=True)
class OwnAction:
    """An action of an application.

    Args:
        name: Its name, which a reply gives as the type.
        description: What it does.
        fields: The names of its fields, and the type of each.
        required: Those of them that have no default.
        function: Carries it out, given the agent and the fields.
        takes_world: Whether it is given the world, too.
    """

    name: str
    description: str
    fields: Mapping[str, Any]
    required: tuple[str, ...]
    function: Callable[..., Any]
    takes_world: bool

    @cached_property
    def told(self) -> str:
        """Its description in a prompt."""
        kinds = ", ".join(
            f"{name}{'' if name in self.required else ' (optional)'}: {self._kind_of(name)}"
            for name in self.fields
        )
        return f"{self.description} Fields: {kinds or 'none'}."

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of each field; its ``$defs`` are in `models`."""
        return {
            name: {key: value for key, value in schema.items() if key != "$defs"}
            for name, schema in self._schemas.items()
        }

    @cached_property
    def models(self) -> Mapping[str, Any]:
        """The JSON Schema of what fields refer to in the ``$defs`` of the document."""
        return {
            f"{self.name}_{name}_{model}": schema
            for name, each in self._schemas.items()
            for model, schema in each.get("$defs", {}).items()
        }

    @cached_property
    def _schemas(self) -> Mapping[str, Mapping[str, Any]]:
        # fields may have different classes of one name
        place = f"#/$defs/{self.name}_{{}}_{{{{model}}}}"
        return {
            name: adapter(wanted).json_schema(ref_template=place.format(name))
            for name, wanted in self.fields.items()
        }

    def _kind_of(self, name: str) -> str:
        return _kind_of(self.schema[name], self.models)

    def values_of(self, asked: AskedAction) -> dict[str, Any]:
        """Return the values of its fields that a reply gives, checked.

        Raises:
            ActionRefusedError: If one is missing, unknown, or of another type.
        """
        given = self._given(asked)
        if unknown := [name for name in given if name not in self.fields]:
            known = ", ".join(self.fields) or "none"
            raise ActionRefusedError(f"{self.name} has no field {unknown[0]!r}; it has {known}")
        if missing := [name for name in self.required if name not in given]:
            raise ActionRefusedError(f"the action lacks {', '.join(missing)}")
        if FIELD_OF_EXAMPLE in given.values():
            raise ActionRefusedError(f"{_REPEATED}: fill in its fields")

        return {name: self._checked(name, value) for name, value in given.items()}

    def _given(self, asked: AskedAction) -> dict[str, Any]:
        # the names of the memory's actions mean nothing to one that has no such fields
        given = {
            name: value
            for name, value in asked.fields.items()
            if name not in _OF_MEMORY or self.fields.get(name, str) is not str
        }
        for name, text in zip(_OF_MEMORY, (asked.tags or None, asked.value), strict=True):
            if text is not None and name in self.fields:
                given.setdefault(name, text)

        return given or self._given_by(asked.value or asked.tags)

    def _checked(self, name: str, value: Any) -> Any:
        wanted = self.fields[name]
        if wanted is str and isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        data = _as_data(value) if isinstance(value, str) and wanted is not str else value
        problem = ""
        for each in (value, data):
            try:
                return adapter(wanted).validate_python(each)
            except ValidationError as error:
                problem = error.errors()[0]["msg"]

        raise ActionRefusedError(f"{name} must be {self._kind_of(name)}, got {value!r}: {problem}")

    def _given_by(self, text: str) -> dict[str, Any]:
        """Return the fields that a text gives, which stands where none of them does."""
        inner = _as_data(text)
        if isinstance(inner, dict) and {*inner} <= {*self.fields}:
            return inner
        # the only field has the only text
        return {next(iter(self.fields)): text} if text and len(self.fields) == 1 else {}


def own_action(function: Callable[..., Any]) -> OwnAction:
    """Read an action from a function, whose parameters after the agent are fields.

    Raises:
        DefinitionError: If no reply could ask for it.
    """
    name = getattr(function, "__name__", "")
    parameters = dict([*inspect.signature(function).parameters.items()][1:])
    if problem := _problem_of(function, name, parameters.values()):
        raise DefinitionError(f"the action {name!r} {problem}")

    takes_world = parameters.pop("world", None) is not None
    return OwnAction(
        name,
        (inspect.getdoc(function) or name).strip().splitlines()[0],
        {field: _type_of(each, function) for field, each in parameters.items()},
        tuple(field for field, each in parameters.items() if each.default is each.empty),
        function,
        takes_world,
    )


def _type_of(parameter: inspect.Parameter, function: Callable[..., Any]) -> Any:
    """Return the type of a field of an action.

    Raises:
        DefinitionError: If it is not defined yet, or no reply could give a value of it.
    """
    name, written = parameter.name, parameter.annotation
    if written is parameter.empty:
        return str

    # the types of other parameters, such as the world's, may be imported for type checkers only
    alone = type(name, (), {"__annotations__": {name: written}})
    told = written if isinstance(written, str) else getattr(written, "__name__", written)
    has_type = f"the field {name!r} of the action {function.__name__!r} has the type {told}, which"
    try:
        # a decorated function has the types of the module that it comes from
        names = getattr(inspect.unwrap(function), "__globals__", {})
        wanted = get_type_hints(alone, globalns=names, include_extras=True)[name]
        adapter(wanted).json_schema()
    except (NameError, AttributeError, SyntaxError):
        raise DefinitionError(
            f"{has_type} is not found: define or import it in the module, above the action"
        ) from None
    except PydanticUserError:
        raise DefinitionError(
            f"{has_type} no reply could give: use text, numbers, lists, dicts, enums or "
            "dataclasses of these"
        ) from None

    return wanted


def _problem_of(
    function: Callable[..., Any], name: str, parameters: Collection[inspect.Parameter]
) -> str | None:
    """Return why no reply could ask for an action; None if one could."""
    if not name.isidentifier() or name.startswith("_") or name in AVAILABLE_ACTIONS:
        return "needs its own name, without a leading underscore"
    if inspect.iscoroutinefunction(function):
        return "must not be async: actions happen at once"
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
        return "must name its parameters, without * and **"
    if any(each.name == "type" for each in parameters):
        return "must not have a field 'type', which names the action"

    return None


def actions_of(cls: type, given: Iterable[Callable[..., Any]] = ()) -> dict[str, OwnAction]:
    """Return the actions of a class, and those of functions that take the agent first, by name.

    Raises:
        DefinitionError: If two have one name, or no reply could ask for one.
    """
    names = dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))
    marks = {name: getattr(getattr(cls, name, None), _MARK, None) for name in names}
    found: dict[str, OwnAction] = {name: own for name, own in marks.items() if own is not None}
    for function in given:
        own = getattr(function, _MARK, None) or own_action(function)
        if own.name in found:
            raise DefinitionError(f"there are two actions {own.name!r}: rename one")
        found[own.name] = own

    return found


def _kind_of(schema: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    """Return in words what a JSON Schema asks for."""
    schema = models.get(schema.get("$ref", "").rpartition("/")[2], schema)
    options = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if options:
        return f"one of {', '.join(map(str, options))}"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind_of(each, models) for each in schema["anyOf"]))
    if "properties" in schema:
        return f"an object with {', '.join(schema['properties'])}"

    return _KINDS.get(schema.get("type", ""), "data")


def _as_data(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text
