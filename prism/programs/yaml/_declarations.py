"""The shape of a workflow file, from which both the loader and the published schema are made."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, JsonValue, Tag

from prism.files.declarations import Declaration, WholeNumber, schema_of

SCHEMA_NAME = "workflow.schema.json"

MOST_RETRIES = 100
_SHORTHAND = r"^\s*\S.*->\s*\S"


def _shorthand(text: str) -> str:
    if re.search(_SHORTHAND, text) is None:
        raise ValueError(f'{text[:60]!r} is not a transition: write it as "a->b"')
    return text


_KINDS = {str: "<text>", list: "<list>", dict: "<mapping>", bool: "<truth>"}


def _kind(*kinds: type) -> Discriminator:
    """Choose an alternative by the value's type, so that an error speaks of that one only."""

    def tag(value: Any) -> str:
        found = next((kind for kind in kinds if type(value) is kind), kinds[0])
        return _KINDS[found]

    return Discriminator(tag)


Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[
    Annotated[Text, Tag("<text>")] | Annotated[list[Text], Field(min_length=1), Tag("<list>")],
    _kind(str, list),
]
OnFailure = Literal["retry", "skip", "fail"]
Retries = Annotated[WholeNumber, Field(ge=0, le=MOST_RETRIES)]
Expression = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[bool, Tag("<truth>")], _kind(str, bool)
]
Shorthand = Annotated[
    str, AfterValidator(_shorthand), Field(json_schema_extra={"pattern": _SHORTHAND})
]
Version = str | int | float


class TransitionDeclaration(Declaration):
    """A transition that the workflow allows."""

    source: Texts = Field(alias="from", description='Source state or states; "*" for any.')
    target: Text = Field(alias="to", description="Target state.")
    condition: Expression | None = Field(
        None, description="Expression over the context; none: always."
    )


AnyTransition = Annotated[
    Annotated[TransitionDeclaration, Tag("<mapping>")] | Annotated[Shorthand, Tag("<text>")],
    _kind(dict, str),
]


class StateMachineDeclaration(Declaration):
    """The states and what may follow what."""

    states: Annotated[list[Text], Field(min_length=1)]
    initial_state: Text | None = Field(None, description="Initial state; by default the first one.")
    final_states: list[Text] = Field(
        [], description="States in which an agent is done; no transition leaves them."
    )
    transitions: list[AnyTransition] = Field(
        [],
        description='Also written as "a->b"; without any transitions, every state may follow '
        "every other.",
    )


_HAS_TARGET: list[JsonValue] = [
    {"required": ["transition_map"], "properties": {"transition_map": {"type": "object"}}},
    {"required": ["transition_to"], "properties": {"transition_to": {"type": "string"}}},
]
"""One of the two that a transition step needs, in the published schema."""


class StepDeclaration(Declaration):
    """What every step has; keys that other engines read are ignored, with a note."""

    model_config = ConfigDict(extra="ignore")

    name: Text
    in_state: Texts | None = Field(None, description="State or states it runs in; none: any.")
    run_if: Expression | None = Field(
        None, description="Expression over the context; none: always."
    )
    transition_to: Text | None = Field(None, description="State that follows the step.")
    on_failure: OnFailure | None = None
    max_retries: Retries | None = Field(None, description="Requests beyond the first, in all.")


AnyOutput = Annotated[
    Annotated[Literal["text"], Tag("<text>")] | Annotated[dict[str, Any], Tag("<mapping>")],
    _kind(str, dict),
]


class LlmStepDeclaration(StepDeclaration):
    """A step that asks a model for an action, a text or data."""

    type: Literal["llm"]
    prompt: Text
    output: AnyOutput | None = Field(
        None,
        description="text, or a JSON Schema; by default reasoning and an action.",
    )


class CodeStepDeclaration(StepDeclaration):
    """A step of Python, which runs in a sandbox."""

    type: Literal["code"] = "code"
    code: str


class TransitionStepDeclaration(StepDeclaration):
    """A step in which a model chooses the next state."""

    # the reader says so itself, in its own words
    model_config = ConfigDict(extra="ignore", json_schema_extra={"anyOf": _HAS_TARGET})

    type: Literal["transition"]
    prompt: Text | None = None
    transition_map: Annotated[dict[Text, Text], Field(min_length=1)] | None = Field(
        None, description="State that follows each answer."
    )


def _step_kind(value: Any) -> str:
    """Return which kind of step a value is meant to be, for the reader of documents."""
    return f"<{value.get('type', 'code')}>" if isinstance(value, dict) else "<code>"


AnyStep = Annotated[
    Annotated[LlmStepDeclaration, Tag("<llm>")]
    | Annotated[CodeStepDeclaration, Tag("<code>")]
    | Annotated[TransitionStepDeclaration, Tag("<transition>")],
    Discriminator(
        _step_kind,
        custom_error_type="step_type",
        custom_error_message="type must be 'llm', 'code' or 'transition'",
    ),
]


class ComponentDeclaration(Declaration):
    """A fragment that is added to the prompts of steps."""

    name: Text | None = None
    type: Literal["trait", "behavior", "goal"] | None = None
    version: Version | None = None
    description: str | None = None
    inject_into: list[Text] = Field([], description="Names of the steps whose prompts it joins.")
    prompt_fragment: Text
    requires_context: list[Text] = Field([], description="Variables that it needs.")


Components = Annotated[
    Annotated[list[Text], Tag("<list>")]
    | Annotated[dict[Text, ComponentDeclaration], Tag("<mapping>")],
    _kind(list, dict),
]


class ComponentsDeclaration(Declaration):
    """Names of components, each a file of its own, or the components themselves by name."""

    traits: Components = Field([])
    behaviors: Components = Field([])
    goals: Components = Field([])
    folder: Text | None = Field(
        None, description="Where their files are; by default beside the workflow."
    )
    phases: Any = Field(None, description="Ignored.", deprecated=True)


class ErrorHandlingDeclaration(Declaration):
    """What follows a failure where a step does not say."""

    default_on_failure: OnFailure | None = None
    max_retries: Retries | None = None
    default_max_retries: Retries | None = None


class WorkflowDeclaration(Declaration):
    """The workflow proper."""

    state_machine: StateMachineDeclaration | None = Field(
        None, description="By default a single state, active, in which every step runs."
    )
    steps: Annotated[list[AnyStep], Field(min_length=1)]
    components: ComponentsDeclaration | None = None
    error_handling: ErrorHandlingDeclaration | None = None
    default_on_failure: OnFailure | None = None
    default_max_retries: Retries | None = None


class NamedWorkflowDeclaration(WorkflowDeclaration):
    """A file that is a workflow."""

    name: Text | None = None
    version: Version | None = None
    description: str | None = None


_OF_OTHERS = ConfigDict(extra="ignore")
"""Of what others than prism read, too, unknown keys are left out."""


class OuterComponentsDeclaration(ComponentsDeclaration):
    """Components that stand beside a workflow."""

    model_config = _OF_OTHERS


class OuterErrorHandlingDeclaration(ErrorHandlingDeclaration):
    """What follows a failure, beside a workflow."""

    model_config = _OF_OTHERS


AnyComponents = Annotated[
    Annotated[OuterComponentsDeclaration, Tag("<mapping>")] | Annotated[Text, Tag("<text>")],
    _kind(dict, str),
]


class AgentDeclaration(Declaration):
    """A file that has a workflow under its key, and what goes with it."""

    model_config = _OF_OTHERS

    name: Text | None = None
    version: Version | None = None
    description: str | None = None
    workflow: WorkflowDeclaration
    components: AnyComponents | None = Field(
        None, description="Components, or the folder of those that the workflow names."
    )
    error_handling: OuterErrorHandlingDeclaration | None = None
    default_on_failure: OnFailure | None = None
    default_max_retries: Retries | None = None


def document_kind(value: Any) -> str:
    """Return which kind of file a value is meant to be."""
    return "<agent>" if isinstance(value, dict) and "workflow" in value else "<workflow>"


AnyDocument = Annotated[
    Annotated[AgentDeclaration, Tag("<agent>")]
    | Annotated[NamedWorkflowDeclaration, Tag("<workflow>")],
    Discriminator(document_kind),
]


def workflow_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of workflow files."""
    return schema_of(AnyDocument, title="A prism workflow")
