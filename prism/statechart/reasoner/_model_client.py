"""What a reasoner needs of a client, whatever stands behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from prism.statechart.reasoner._cost import Cost


class TextReply(Protocol):
    """A reply to a conversation."""

    @property
    def text(self) -> str:
        """What the model wrote."""


class ChoiceReply(Protocol):
    """A reply to decision questions."""

    @property
    def answers(self) -> Mapping[str, Mapping[str, Any]]:
        """By the name of the question, its ``probabilities`` by option, or None."""


class ModelClient(Protocol):
    """A client with slots of its own, such as `prism.llm.OllamaPool`; others are adapted to it.

    It adds to the cost of a request what it sends and reads, and says through it when the request
    has a slot (`Cost.admitted`) and whether it waits for one while nobody is served
    (`Cost.stalled`).

    A method that also takes ``lacks`` is given a function that returns how many of the answers that
    were asked for a reply lacks, so that what one server answers badly can be put to another.
    """

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        format: dict[str, Any] | None,  # noqa: A002 - as Ollama names it
        cost: Cost,
    ) -> TextReply:
        """Send a conversation; the reply follows a JSON schema, if there is one."""
        ...

    async def systemone(
        self, state: str, questions: Mapping[str, Mapping[str, Any]], *, cost: Cost
    ) -> ChoiceReply:
        """Put choice questions about one state to a decision model.

        Raises:
            DecisionsUnsupportedError: If the server or the model takes none.
        """
        ...

    async def offers_decisions(self) -> bool:
        """Return True if server and model take decision questions, or if only one can tell."""
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said.

    Args:
        text: Text of a chat reply.
        answers: Probabilities of a decision reply, by question and then by option.
    """

    text: str = ""
    answers: Mapping[str, Any] = field(default_factory=dict)
