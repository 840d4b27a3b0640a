"""The shape of a workflow file and of its components."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from prism.files.declarations import Declaration, WholeNumber

OnFailure = Literal["retry", "skip", "fail"]
StepKind = Literal["llm", "code", "transition"]

_Text = Annotated[str, Field(min_length=1)]
_Version = str | int | float


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _as_source(value: Any) -> Any:
    # YAML reads a bare `false` as a truth value
    return (None if value else "False") if isinstance(value, bool) else value


_Texts = Annotated[list[_Text], BeforeValidator(_as_list), Field(min_length=1)]
_Expression = Annotated[str | None, BeforeValidator(_as_source)]
_Retries = Annotated[WholeNumber, Field(ge=0, le=100)]


class TransitionFile(Declaration):
    """A transition that the workflow allows: a mapping, or ``a -> b``."""

    source: _Texts = Field(alias="from")
    target: _Text = Field(alias="to")
    condition: _Expression = None

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        source, arrow, target = value.partition("->")
        if not arrow:
            raise ValueError("must be 'a -> b' or a mapping of from and to")
        return {"from": source.strip(), "to": target.strip()}


class StateMachineFile(Declaration):
    """The states and what may follow what."""

    states: Annotated[list[_Text], Field(min_length=1)]
    initial_state: _Text | None = None
    transitions: list[TransitionFile] = Field(default=[])


class StepFile(Declaration):
    """A step: one that asks a model, runs code, or lets a model choose the next state."""

    name: _Text
    type: StepKind = "code"
    in_state: _Texts | None = None
    run_if: _Expression = None
    prompt: _Text | None = None
    code: str | None = None
    output: Literal["text"] | dict[str, Any] | None = None
    reply_tokens: Annotated[WholeNumber, Field(ge=1)] | None = None
    transition_to: _Text | None = None
    transition_map: Annotated[dict[_Text, _Text], Field(min_length=1)] | None = None
    on_failure: OnFailure | None = None
    max_retries: _Retries | None = None

    @model_validator(mode="after")
    def _has_its_part(self) -> Self:
        parts: dict[str, tuple[str, Any]] = {
            "llm": ("'prompt'", self.prompt),
            "code": ("'code'", self.code),
            "transition": (
                "'transition_map' or 'transition_to'",
                self.transition_map or self.transition_to,
            ),
        }
        name, part = parts[self.type]
        if part is None:
            raise ValueError(f"a step of type {self.type} needs {name}")
        return self


class ComponentFile(Declaration):
    """A fragment that is added to the prompts of the steps in ``inject_into``."""

    name: _Text | None = None
    type: Literal["trait", "behavior", "goal"] | None = None
    version: _Version | None = None
    description: str | None = None
    inject_into: list[_Text] = Field(default=[])
    prompt_fragment: _Text
    requires_context: list[_Text] = Field(default=[])


_Components = list[_Text] | dict[_Text, ComponentFile]


class ComponentsFile(Declaration):
    """Names of components, each a file of its own, or the components themselves by name."""

    traits: _Components = Field(default=[])
    behaviors: _Components = Field(default=[])
    goals: _Components = Field(default=[])


class FailuresFile(Declaration):
    """What follows a failure where a step does not say."""

    default_on_failure: OnFailure | None = None
    max_retries: _Retries | None = None
    default_max_retries: _Retries | None = None


class LevelFile(FailuresFile):
    """What may stand in a workflow, or beside it."""

    name: _Text | None = None
    version: _Version | None = None
    description: str | None = None
    components: ComponentsFile | _Text | None = None
    error_handling: FailuresFile | None = None


class WorkflowFile(LevelFile):
    """A workflow, which may be the whole file."""

    state_machine: StateMachineFile = StateMachineFile(states=["active"])
    steps: Annotated[list[StepFile], Field(min_length=1)]


class AgentFile(LevelFile):
    """A file that has a workflow under its key, and what goes with it."""

    workflow: WorkflowFile
