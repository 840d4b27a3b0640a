"""The shape of a workflow file, from which both the loader and the published schema are made."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from prism.files.declarations import Declaration, WholeNumber

MOST_RETRIES = 100

Text = Annotated[str, Field(min_length=1)]
Texts = Text | Annotated[list[Text], Field(min_length=1)]
Expression = str | bool
OnFailure = Literal["retry", "skip", "fail"]
StepKind = Literal["llm", "code", "transition"]
Retries = Annotated[WholeNumber, Field(ge=0, le=MOST_RETRIES)]
Version = str | int | float

# for editors: what other programs read beside prism's keys is no mistake
_OF_OTHERS = ConfigDict(json_schema_extra={"additionalProperties": True})


class TransitionFile(Declaration):
    """A transition that the workflow allows."""

    source: Texts = Field(alias="from", description='Source state or states; "*" for any.')
    target: Text = Field(alias="to", description="Target state.")
    condition: Expression | None = Field(
        None, description="Expression over the context; none: always."
    )


Shorthand = Annotated[str, Field(pattern=r"^\s*\S.*->\s*\S")]


class StateMachineFile(Declaration):
    """The states and what may follow what."""

    states: Annotated[list[Text], Field(min_length=1)]
    initial_state: Text | None = Field(None, description="Initial state; by default the first one.")
    final_states: list[Text] = Field(
        [], description="States in which an agent is done; no transition leaves them."
    )
    transitions: list[TransitionFile | Shorthand] = Field(
        [], description='Also "a->b". Without any, every state may follow every other.'
    )


class StepFile(Declaration):
    """A step: one that asks a model, runs code, or lets a model choose the next state."""

    model_config = _OF_OTHERS

    name: Text
    type: StepKind = "code"
    in_state: Texts | None = Field(None, description="State or states it runs in; none: any.")
    run_if: Expression | None = Field(
        None, description="Expression over the context; none: always."
    )
    prompt: Text | None = Field(None, description="What an llm or transition step asks.")
    code: str | None = Field(None, description="Python, which runs in a sandbox.")
    output: Literal["text"] | dict[str, Any] | None = Field(
        None,
        description="text, or a JSON Schema of the reply; by default reasoning and an action.",
    )
    transition_to: Text | None = Field(None, description="State that follows the step.")
    transition_map: Annotated[dict[Text, Text], Field(min_length=1)] | None = Field(
        None, description="State that follows each answer to a transition step."
    )
    on_failure: OnFailure | None = None
    max_retries: Retries | None = Field(None, description="Requests beyond the first, in all.")

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
    """A fragment that is added to the prompts of steps."""

    name: Text | None = None
    type: Literal["trait", "behavior", "goal"] | None = None
    version: Version | None = None
    description: str | None = None
    inject_into: list[Text] = Field([], description="Names of the steps whose prompts it joins.")
    prompt_fragment: Text
    requires_context: list[Text] = Field([], description="Variables that it needs.")


Components = list[Text] | dict[Text, ComponentFile]


class ComponentsFile(Declaration):
    """Names of components, each a file of its own, or the components themselves by name."""

    model_config = _OF_OTHERS

    traits: Components = Field([])
    behaviors: Components = Field([])
    goals: Components = Field([])


class FailuresFile(Declaration):
    """What follows a failure where a step does not say."""

    default_on_failure: OnFailure | None = None
    max_retries: Retries | None = None
    default_max_retries: Retries | None = None


class _Level(FailuresFile):
    """What may stand in a workflow, or beside it."""

    name: Text | None = None
    version: Version | None = None
    description: str | None = None
    components: ComponentsFile | Text | None = None
    error_handling: FailuresFile | None = None


class WorkflowFile(_Level):
    """A workflow, which may be the whole file."""

    state_machine: StateMachineFile | None = Field(
        None, description="By default a single state, active, in which every step runs."
    )
    steps: Annotated[list[StepFile], Field(min_length=1)]


class AgentFile(_Level):
    """A file that has a workflow under its key, and what goes with it."""

    model_config = _OF_OTHERS

    workflow: WorkflowFile
