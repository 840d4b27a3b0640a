"""The actions that a reply can ask for: the specification's, and methods of a subclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, overload

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
)

from prism.errors import DefinitionError, PrismError
from prism.programs._layer import ProgramAgent, Step
from prism.programs.thinking._memory import Memory, as_tag, to_text
from prism.programs.thinking._replies import ActionRequest, clean
from prism.reasoner.replies import quoted

ActionOutcome = Literal["done", "missing", "refused"]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_INTERRUPTED = "the run was stopped in the middle of it, and does not repeat it"
_ACTION = "_prism_action"
_USUAL = ("tags", "value")


class ActionRefusedError(PrismError, ValueError):
    """An action cannot be carried out now; the agent's next prompt says why."""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result of an action that a reply asked for.

    Args:
        type: The kind of action; empty if the reply does not say.
        tags: The memory that it concerns.
        outcome: ``done``, ``missing`` if there is no such memory, or ``refused``.
        reason: Why it was not done, or had no effect.
        answer: The result of an action of the application.
        matches: Tags of the memories that a search found, best first.
        fields: What the reply asked for, by name.
    """

    type: str
    tags: str
    outcome: ActionOutcome = "done"
    reason: str | None = None
    answer: str | None = None
    matches: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, without empty keys."""
        return {key: each for key, each in asdict(self).items() if each not in (None, "", (), {})}


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)


@dataclass(frozen=True)
class Action:
    """An action of an agent.

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
        return {name: each for name, each in self.model.model_fields.items() if name != "type"}

    def text(self, description: str | None = None) -> str:
        """Return what a prompt says of it.

        Args:
            description: What it does, instead of its own description.
        """
        sentence = (description or self.description).rstrip(".")
        return f"{self.name}: {sentence}. Fields: {self._listed_fields or 'none'}."

    @cached_property
    def _listed_fields(self) -> str:
        """The fields and their types, kept since each cycle builds several prompts."""
        schema = self.model.model_json_schema()
        parts, defs = schema["properties"], schema.get("$defs", {})
        return ", ".join(
            f"{name}{'' if each.is_required() else ' (optional)'}: {_kind_of(parts[name], defs)}"
            for name, each in self.fields.items()
        )

    def values_of(self, request: ActionRequest) -> dict[str, Any]:
        """Return the values of its fields that a reply gives, checked.

        Raises:
            ActionRefusedError: If one is missing, unknown, or of another type.
        """
        fields = request.fields.items()
        filled = {key: each for key, each in fields if each is not None and str(each).strip()}
        values = {key: filled[key] for key in filled if key in self.fields or key not in _USUAL}
        if not values and len(self.fields) == 1 and filled:
            # the only field has the only text
            values = dict.fromkeys(self.fields, filled.get("value", filled.get("tags")))
        try:
            model = self.model.model_validate({"type": self.name, **values})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            problem = f"{where}: {first['msg']}, got {quoted(first['input'])}"
            raise ActionRefusedError(problem) from None
        return {name: getattr(model, name) for name in values}


@lru_cache(maxsize=64)
def schema_of(models: tuple[type[BaseModel], ...]) -> dict[str, Any]:
    """Return the JSON Schema of one of several actions, with what they refer to in ``$defs``."""
    either: Any = Union[models]  # noqa: UP007 - of a tuple
    schema = TypeAdapter(either).json_schema()
    definitions = schema.get("$defs", {})
    # not every server follows a reference to an action
    actions = [definitions.pop(each["$ref"].rpartition("/")[2]) for each in schema.get("anyOf", ())]
    return {**schema, "anyOf": actions} if actions else schema


@overload
def action(function: FunctionT) -> FunctionT: ...


@overload
def action(*, outside: bool = False) -> Callable[[FunctionT], FunctionT]: ...


def action(function: Any = None, *, outside: bool = False) -> Any:
    """Turn a method of a `CognitiveAgent` into an action that its model can ask for by name.

    The parameters are the fields of the action, with the annotated types. The first line of the
    docstring tells the model what the action does. A parameter ``world`` receives the world in
    which the agent acts. The next prompt shows the method's result as text, or the message of an
    `ActionRefusedError`. An action called ``run``, or as another method of the agent, does not
    replace that method::

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

    def decorate(method: FunctionT) -> FunctionT:
        setattr(method, _ACTION, _action_of(method, is_outside=outside))
        return method

    return decorate if function is None else decorate(function)


def _action_of(function: Callable[..., Any], *, is_outside: bool) -> Action:
    """Read an action from a method, whose parameters after the agent are fields."""
    name = function.__name__
    parameters = dict([*inspect.signature(function).parameters.items()][1:])
    takes_world = parameters.pop("world", None) is not None
    problem = _problem_of(function, parameters.values())
    model: type[BaseModel] = _Fields
    try:
        fields: Any = {
            key: (
                str if each.annotation is each.empty else each.annotation,
                ... if each.default is each.empty else each.default,
            )
            for key, each in parameters.items()
        }
        # the first field, which a model names first
        kind: Any = {"type": (Literal[name], ...)}
        module = function.__module__
        model = create_model(name, __base__=_Fields, __module__=module, **{**kind, **fields})
        model.model_json_schema()
    except (NameError, AttributeError, SyntaxError, PydanticUserError) as error:
        problem = problem or f"has a field that no reply could give: {str(error).splitlines()[0]}"
    if problem is not None:
        raise DefinitionError(f"the action {name!r} {problem}")
    description = (inspect.getdoc(function) or name).strip().splitlines()[0]
    return Action(name, description, model, function, takes_world, is_outside)


def _problem_of(
    function: Callable[..., Any], parameters: Collection[inspect.Parameter]
) -> str | None:
    if inspect.iscoroutinefunction(function):
        return "must not be async: actions happen at once"
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
        return "must name its parameters, without * and **"
    if any(each.name == "type" for each in parameters):
        return "must not have a field 'type', which names the action"
    return None


def actions_of(cls: type[Acting]) -> dict[str, Action]:
    """Return the actions of a class, by name."""
    names = dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))
    actions = {name: getattr(getattr(cls, name, None), _ACTION, None) for name in names}
    return {**{name: each for name, each in actions.items() if each is not None}, **cls._apart}


def _kind_of(part: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    schema = {**definitions.get(part.get("$ref", "").rpartition("/")[2], {}), **part}
    options = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if options:
        return f"one of {', '.join(map(str, options))}"
    return str(part.get("description", schema.get("type", "data")))


# What a thinking agent can do


def _one_tag(value: Any) -> Any:
    words = value if isinstance(value, list) else [value]
    return as_tag(clean(" ".join(each for each in words if isinstance(each, str))))


Tag = Annotated[
    str, BeforeValidator(_one_tag), Field(min_length=1, description="an identifier without spaces")
]
Content = Annotated[str, BeforeValidator(lambda value: clean(to_text(value))), Field(min_length=1)]


class Acting(ProgramAgent[Step]):
    """Carries out the actions of a program.

    Attributes:
        memory: The agent's memory.
        world: The world in which the agent is acting; None outside of one.
    """

    memory: Memory
    world: Any
    _pager: Any
    _apart: ClassVar[Mapping[str, Action]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Keep methods of the agent whose name an action has, such as ``run``."""
        super().__init_subclass__(**options)
        for name, value in [*vars(cls).items()]:
            hidden = getattr(super(cls, cls), name, value)
            if hasattr(value, _ACTION) and not hasattr(hidden, _ACTION):
                cls._apart = {**cls._apart, name: getattr(value, _ACTION)}
                delattr(cls, name)

    async def _do(self, request: ActionRequest) -> ActionResult:
        """Carry out an action; one with outside effects at most once in a run and its repetitions.

        Raises:
            ActionRefusedError: If there is no such action, a field is wrong, there is no world, or
                the action refuses.
        """
        offered = self._pager.form.offered
        chosen = offered.get(request.type)
        if chosen is None:
            what = f"{request.type!r} is no action" if request.type else "the action has no type"
            raise ActionRefusedError(f"{what} that can be carried out: {', '.join(offered)}")
        fields = chosen.values_of(request)
        if chosen.takes_world:
            if self.world is None:
                raise ActionRefusedError("the agent is in no world")
            fields["world"] = self.world
        if not chosen.is_outside:
            return _result_of(request, chosen.function(self, **fields))

        async def effect() -> Any:
            try:
                return {"answer": _result_of(request, chosen.function(self, **fields)).answer}
            except ActionRefusedError as error:
                return {"refused": str(error)}

        key = f"{self.memory.cycle + 1}:{chosen.name}"
        outcome = await self.once(key, effect, {"refused": _INTERRUPTED})
        if "refused" in outcome:
            raise ActionRefusedError(outcome["refused"])
        return _result_of(request, outcome["answer"])

    @action
    def working_memory_add(self, tags: Tag, value: Content) -> ActionResult:
        """Add a memory to working memory."""
        self._require_room(tags, value)
        before = self._values(tags)
        self.memory.add(tags, value)
        return self._done("working_memory_add", tags, before)

    @action
    def working_memory_remove(self, tags: Tag) -> ActionResult:
        """Remove a memory from working memory."""
        if self.memory.remove(tags):
            return ActionResult("working_memory_remove", tags)
        missing = f"there is no {tags!r} in working memory"
        return ActionResult("working_memory_remove", tags, "missing", missing)

    @action
    def storage_load(self, tags: Tag) -> ActionResult:
        """Copy a memory from storage to working memory."""
        memory = self.memory
        self._require_room(tags, memory.stored(tags))
        before = self._values(tags)
        if memory.load(tags):
            return self._done("storage_load", tags, before)
        close = [match.tag for match in memory.search(tags.replace("_", " "), 3)]
        near = f"; storage has {', '.join(close)}" if close else ""
        missing = f"there is no {tags!r} in storage{near}"
        return ActionResult("storage_load", tags, "missing", missing)

    @action
    def storage_save(self, tags: Tag, value: Content = "") -> ActionResult:
        """Save a memory to storage, by default the one in working memory."""
        before = self._values(tags)
        if not self.memory.save(tags, value or None):
            raise ActionRefusedError("the action has no value, and neither has working memory")
        return self._done("storage_save", tags, before)

    @action
    def storage_search(self, tags: Tag) -> ActionResult:
        """Find memories in storage by a few words."""
        matches = tuple(each.tag for each in self.memory.search(tags.replace("_", " "), 5))
        if matches:
            return ActionResult("storage_search", tags, matches=matches)
        none = "no memory in storage contains any of these words"
        return ActionResult("storage_search", tags, "missing", none)

    def _require_room(self, tag: str, value: Any) -> None:
        if not self._pager.has_room_for(tag, value):
            raise ActionRefusedError("the value alone exceeds the hard limit")

    def _values(self, tag: str) -> tuple[Any, Any]:
        return self.memory.working.get(self.memory.tag_of(tag)), self.memory.stored(tag)

    def _done(self, kind: str, tag: str, before: tuple[Any, Any]) -> ActionResult:
        self.memory.touch([tag])
        reason = "it has changed nothing" if self._values(tag) == before else None
        return ActionResult(kind, tag, reason=reason)


def _result_of(request: ActionRequest, answer: Any) -> ActionResult:
    if isinstance(answer, ActionResult):
        return answer
    return ActionResult(request.type, request.tags, answer=None if answer is None else str(answer))
