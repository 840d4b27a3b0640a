"""The actions that a reply can ask for while executing: the memory's, and an application's own."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any, Literal, TypeVar, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, PydanticUserError, ValidationError, create_model

from prism.errors import DefinitionError, PrismError
from prism.programs.thinking._config import AVAILABLE_ACTIONS, MEMORY_ACTIONS
from prism.programs.thinking._memory import Memory
from prism.programs.thinking._replies import AskedAction, is_placeholder

ActionOutcome = Literal["done", "missing", "refused", "unusable", "failed"]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

MOST_FOUND = 5
_ACTION = "_prism_action"
_REPEATS = "the reply repeats a placeholder: write what is meant"


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result of an action that a reply asked for.

    Args:
        type: The kind of action; empty if the reply does not say.
        tags: The memory that it concerns.
        outcome: ``done``, ``missing`` if there is no such memory, or ``refused``.
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
        values = asdict(self) | {"found": list(self.found)}
        return {key: value for key, value in values.items() if value not in (None, "", [])}


def carry_out(memory: Memory, asked: AskedAction) -> ActionResult:
    """Carry out an action of the memory that has no problem."""
    tags, value = asked.tags, value_of(asked)
    if asked.type == "storage_search":
        return _search(memory, asked)
    before = memory.working.get(tags), memory.stored(tags)
    match asked.type:
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
    is_same = (memory.working.get(tags), memory.stored(tags)) == before
    return ActionResult(asked.type, tags, reason="it has changed nothing" if is_same else None)


def problem_of(
    asked: AskedAction,
    memory: Memory,
    available: Collection[str],
    own: Mapping[str, OwnAction],
    fits: Callable[[str, Any], bool],
) -> str | None:
    """Return why an action cannot be carried out while executing; None if it can.

    Args:
        asked: The action.
        memory: The memory.
        available: Types of action that the configuration has.
        own: Actions of the application, whose fields are checked when they are carried out.
        fits: Whether a prompt has room for a memory, if it has no other.
    """
    if any(map(is_placeholder, filter(None, (asked.tags, value_of(asked))))):
        return _REPEATS
    if asked.type in own:
        return None
    names = [*filter(available.__contains__, MEMORY_ACTIONS), *own]
    if asked.type not in names:
        what = f"{asked.type!r} is no action" if asked.type else "the action has no type"
        close = get_close_matches(asked.type, names, n=1)
        meant = f"; did you mean {close[0]}?" if close else ""
        return f"{what} that can be carried out: {', '.join(names)}{meant}"
    return _problem_of_value(asked, memory, fits)


def _problem_of_value(
    asked: AskedAction, memory: Memory, fits: Callable[[str, Any], bool]
) -> str | None:
    value: Any = value_of(asked)
    if not asked.tags and not (asked.type == "storage_search" and value):
        return "the action has no tags"
    if asked.type == "working_memory_add" and value is None:
        return "the action has no value"
    if asked.type == "storage_save" and value is None and asked.tags not in memory.working:
        return "the action has no value, and neither has working memory"
    if asked.type == "storage_load":
        value = memory.stored(asked.tags)
    if asked.type in ("working_memory_add", "storage_load") and not fits(asked.tags, value):
        return "the value alone exceeds the hard limit"
    return None


def value_of(asked: AskedAction) -> str | None:
    """Return the value that an action has; an element that is left empty has none."""
    return asked.value if asked.value and asked.value.strip() else None


def _search(memory: Memory, asked: AskedAction) -> ActionResult:
    words = " ".join(filter(None, (asked.tags.replace("_", " "), value_of(asked))))
    found = tuple(match.tag for match in memory.search(words, MOST_FOUND))
    if not found:
        none = "no memory in storage contains any of these words"
        return ActionResult(asked.type, asked.tags, "missing", none)
    return ActionResult(asked.type, asked.tags, found=found)


def _missing(memory: Memory, asked: AskedAction) -> str:
    if asked.type != "storage_load":
        return f"there is no {asked.tags!r} in working memory"
    close = [match.tag for match in memory.search(asked.tags.replace("_", " "), 3)]
    near = f"; storage has {', '.join(close)}" if close else ""
    return f"there is no {asked.tags!r} in storage{near}"


# Actions of an application


class ActionRefusedError(PrismError, ValueError):
    """An action cannot be carried out now; the agent's next prompt says why."""


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)


@dataclass(frozen=True)
class OwnAction:
    """An action of an application.

    Args:
        name: Its name, which a reply gives as the type.
        description: What it does.
        model: Its fields.
        function: Carries it out, given the agent and the fields.
        takes_world: Whether it is given the world, too.
        is_outside: Whether it has effects outside the agent and its world.
    """

    name: str
    description: str
    model: type[BaseModel]
    function: Callable[..., Any]
    takes_world: bool = False
    is_outside: bool = False

    @property
    def fields(self) -> Mapping[str, Any]:
        """Its fields, by name."""
        return self.model.model_fields

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of each field."""
        reference = f"#/$defs/{self.name}_{{model}}"
        return dict(self.model.model_json_schema(ref_template=reference).get("properties", {}))

    @property
    def models(self) -> Mapping[str, Any]:
        """The JSON Schema of what fields refer to."""
        models = self.model.model_json_schema().get("$defs", {})
        return {f"{self.name}_{name}": each for name, each in models.items()}

    @property
    def text(self) -> str:
        """Its description in a prompt."""
        kinds = ", ".join(
            f"{name}{'' if self.fields[name].is_required() else ' (optional)'}: {_kind_of(schema)}"
            for name, schema in self.schema.items()
        )
        return f"{self.description} Fields: {kinds or 'none'}."

    def values_of(self, asked: AskedAction) -> dict[str, Any]:
        """Return the values of its fields that a reply gives, checked.

        Raises:
            ActionRefusedError: If one is missing, unknown, or of another type.
        """
        texts = {"tags": asked.tags or None, "value": asked.value}
        values = {name: text for name, text in texts.items() if text and name in self.fields}
        values |= {name: self._data(name, value) for name, value in asked.fields.items()}
        values = {name: value for name, value in values.items() if value not in ("", None)}
        if not values and len(self.fields) == 1 and (text := asked.value or asked.tags):
            values = dict.fromkeys(self.fields, text)  # the only field has the only text
        if any(isinstance(value, str) and is_placeholder(value) for value in values.values()):
            raise ActionRefusedError(_REPEATS)
        try:
            model = self.model.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise ActionRefusedError(f"{where}: {first['msg']}") from None
        return {name: getattr(model, name) for name in model.model_fields_set}

    def _data(self, name: str, value: Any) -> Any:
        """Return a list or object that XML has as a text of JSON; other texts as they are."""
        field = self.fields.get(name)
        if isinstance(value, str) and value[:1] in "[{" and field and field.annotation is not str:
            try:
                return json.loads(value)
            except ValueError:
                return value
        return value


@overload
def action(function: FunctionT) -> FunctionT: ...


@overload
def action(*, outside: bool = False) -> Callable[[FunctionT], FunctionT]: ...


def action(function: Any = None, *, outside: bool = False) -> Any:
    """Turn a method of a `CognitiveAgent` into an action that its model can ask for by name.

    The parameters are the fields of the action, with the annotated types. The first line of the
    docstring tells the model what the action does. A parameter ``world`` receives the world in
    which the agent acts. The next prompt shows the method's result as text, or the message of an
    `ActionRefusedError`::

        class Trader(CognitiveAgent):
            @action
            def bid(self, world: Market, price: float) -> str:
                \"\"\"Offer to buy one unit at a price.\"\"\"
                return f"you are number {world.queue(self, price)} in the queue"

    Args:
        function: A plain method; one that is ``async`` is refused.
        outside: Whether it has effects outside the agent and its world, such as a file or a
            message. A run that is resumed or replayed takes its result from the journal, and does
            not carry it out again.

    Raises:
        DefinitionError: If no reply could ask for it.
    """

    def mark(method: FunctionT) -> FunctionT:
        setattr(method, _ACTION, _own_action(method, is_outside=outside))
        return method

    return mark if function is None else mark(function)


def _own_action(function: Callable[..., Any], *, is_outside: bool) -> OwnAction:
    """Read an action from a method, whose parameters after the agent are fields."""
    name = function.__name__
    parameters = dict([*inspect.signature(function).parameters.items()][1:])
    takes_world = parameters.pop("world", None) is not None
    problem = _problem_of(function, name, parameters.values())
    # the types of other parameters, such as the world's, may be imported for type checkers only
    annotations = {n: t for n, t in function.__annotations__.items() if n in parameters}
    alone = type("Fields", (), {"__annotations__": annotations})
    model: type[BaseModel] = _Fields
    try:
        hints = get_type_hints(
            alone, getattr(inspect.unwrap(function), "__globals__", {}), include_extras=True
        )
        fields: Any = {
            key: (hints.get(key, str), ... if each.default is each.empty else each.default)
            for key, each in parameters.items()
        }
        model = create_model(name, __base__=_Fields, **fields)
        model.model_json_schema()
    except (NameError, AttributeError, SyntaxError, PydanticUserError) as error:
        problem = problem or f"has a field that no reply could give: {str(error).splitlines()[0]}"
    if problem is not None:
        raise DefinitionError(f"the action {name!r} {problem}")
    description = (inspect.getdoc(function) or name).strip().splitlines()[0]
    return OwnAction(name, description, model, function, takes_world, is_outside)


def _problem_of(
    function: Callable[..., Any], name: str, parameters: Collection[inspect.Parameter]
) -> str | None:
    if not name.isidentifier() or name.startswith("_") or name in AVAILABLE_ACTIONS:
        return "needs its own name, without a leading underscore"
    if inspect.iscoroutinefunction(function):
        return "must not be async: actions happen at once"
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
        return "must name its parameters, without * and **"
    if any(each.name == "type" for each in parameters):
        return "must not have a field 'type', which names the action"
    return None


def actions_of(cls: type) -> dict[str, OwnAction]:
    """Return the actions of a class, by name."""
    names = dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))
    marks = {name: getattr(getattr(cls, name, None), _ACTION, None) for name in names}
    return {name: own for name, own in marks.items() if own is not None}


def _kind_of(schema: Mapping[str, Any]) -> str:
    options = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if options:
        return f"one of {', '.join(map(str, options))}"
    kinds = {"string": "text", "integer": "a whole number", "number": "a number", "array": "a list"}
    kind = str(schema.get("type", "data"))
    return kinds.get(kind, kind)
