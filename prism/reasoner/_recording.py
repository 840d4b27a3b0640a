"""Records of prompts and replies: what was asked for a decision or a text, and what came back."""

from __future__ import annotations

from typing import Any, Protocol

from prism.reasoner._questions import Decision, Question, known
from prism.reasoner._texts import TextCall, Written
from prism.statechart.names import agent_name, identify
from prism.statechart.states import state_text


class PromptRecord(Protocol):
    """Keeps prompts and replies; `prism.runlog.PromptLog` does so in a file.

    Its exceptions end the run, so nothing is lost silently.
    """

    def new_id(self, agent_id: str) -> str:
        """Return the id of an agent's next decision or text; called when it is requested.

        Args:
            agent_id: The agent.
        """

    def keep(self, record: dict[str, Any]) -> None:
        """Keep one record, as plain data; called once for each id, when there is an answer.

        Args:
            record: ``id``, ``kind`` (``decision`` or ``text``), ``agent_id``, the question, the
                ``prompt``, the ``reply``, the choice or text, and the ``attempts``.
        """


def record_of(answer_id: str, asked: Question | TextCall, answer: Any) -> dict[str, Any]:
    """Return the record of a decision or a text as plain data.

    Args:
        answer_id: Its id.
        asked: The question or text call.
        answer: The `Decision` or `Written`.
    """
    at = {} if asked.instant is None else dict(zip(("round", "tick"), asked.instant, strict=True))
    trail = None if answer.cost is None else answer.cost.trail
    attempts = [attempt.to_dict() for attempt in trail or ()]
    told = {"source": answer.source, "reason": answer.reason}
    how = _of_text if isinstance(asked, TextCall) else _of_decision
    return {"id": answer_id, **at, **how(asked, answer), "attempts": attempts, **told}


def _of_text(call: Any, written: Written) -> dict[str, Any]:
    return {
        "kind": "text",
        "agent_id": call.agent_id,
        "key": call.key,
        "prompt": call.prompt,
        "schema": call.schema,
        "reply": written.text,
    }


def _of_decision(question: Any, decision: Decision) -> dict[str, Any]:
    return {
        "kind": "decision",
        "agent_id": agent_name(question.agent),
        "state": state_text(question.state),
        "trigger": question.trigger,
        "options": [state_text(option) for option in question.options],
        "context": identify(question.context),
        **known(asked=decision.question_kind),
        "prompt": decision.prompt,
        "reply": decision.reply,
        "chosen": state_text(decision.chosen),
        "probabilities": decision.probabilities,
        **known(option_mass=decision.option_mass),
    }
