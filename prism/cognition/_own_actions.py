"""Actions that an application gives its agents, beside those of the memory."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from prism.cognition._replies import AskedAction
from prism.cognition._settings import AVAILABLE_ACTIONS
from prism.errors import DefinitionError, PrismError

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_MARK = "_prism_action"


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


@dataclass(frozen=True, slots=True)
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

    @property
    def told(self) -> str:
        """Its description in a prompt."""
        kinds = ", ".join(
            f"{name}{'' if name in self.required else ' (optional)'}: {_kind_of(wanted)}"
            for name, wanted in self.fields.items()
        )
        return f"{self.description} Fields: {kinds or 'none'}."

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of each field."""
        return {name: _adapter(wanted).json_schema() for name, wanted in self.fields.items()}

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

        return {name: _checked(name, value, self.fields[name]) for name, value in given.items()}

    def _given(self, asked: AskedAction) -> dict[str, Any]:
        given = dict(asked.fields)
        for name, text in (("tags", asked.tags or None), ("value", asked.value)):
            if text is not None and name in self.fields:
                given.setdefault(name, text)

        return given or self._given_by(asked.value or asked.tags)

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
    parameters = {
        each.name: each for each in list(inspect.signature(function).parameters.values())[1:]
    }
    if problem := _problem_of(function, name, parameters.values()):
        raise DefinitionError(f"the action {name!r} {problem}")

    takes_world = parameters.pop("world", None) is not None
    try:
        hints = get_type_hints(function)
    except NameError:  # of a class that is not defined yet: what can be looked up is
        hints = dict(function.__annotations__)

    return OwnAction(
        name,
        (inspect.getdoc(function) or name).strip().splitlines()[0],
        {field: hints.get(field, str) for field in parameters},
        tuple(field for field, each in parameters.items() if each.default is each.empty),
        function,
        takes_world,
    )


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
    found: dict[str, OwnAction] = {}
    for base in reversed(cls.__mro__):
        for name, member in vars(base).items():
            own = getattr(member, _MARK, None)
            if own is not None:
                found[name] = own
            elif name in found:  # overridden by what is none
                del found[name]
    for function in given:
        own = getattr(function, _MARK, None) or own_action(function)
        if own.name in found:
            raise DefinitionError(f"there are two actions {own.name!r}: rename one")
        found[own.name] = own

    return found


def _kind_of(wanted: Any) -> str:
    kinds = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    if wanted in kinds:
        return kinds[wanted]

    try:
        schema = _adapter(wanted).json_schema()
    except Exception:
        return str(getattr(wanted, "__name__", wanted))
    options = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    return f"one of {', '.join(map(str, options))}" if options else str(schema.get("type", "data"))


def _checked(name: str, value: Any, wanted: Any) -> Any:
    """Return a value as the type that is wanted.

    Raises:
        ActionRefusedError: If it is none.
    """
    from pydantic import ValidationError

    if wanted is str and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    data = _as_data(value) if isinstance(value, str) and wanted is not str else value
    problem = ""
    for each in (value, data):
        try:
            return _adapter(wanted).validate_python(each)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]

    raise ActionRefusedError(f"{name} must be {_kind_of(wanted)}, got {value!r}: {problem}")


def _adapter(wanted: Any) -> Any:
    # only whoever has such actions waits for pydantic
    from prism.files._declarations import adapter

    return adapter(wanted)


def _as_data(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text
