"""Keeping prompts and replies: records with ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from prism.reasoner._messages import Reply
from prism.reasoner._questions import Decision, Question, known
from prism.reasoner._requests import Request
from prism.reasoner._spending import Attempt, Outcome
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


class Recording:
    """The records of questions that are asked together.

    Args:
        record: Keeps the records.
        questions: The questions.
    """

    def __init__(self, record: PromptRecord, questions: Sequence[Question]) -> None:
        self._record = record
        self._questions = questions
        # before anything is awaited, so that ids do not depend on which answer comes first
        self._ids = [record.new_id(agent_name(question.agent)) for question in questions]
        self._id_of = dict(zip(map(id, questions), self._ids, strict=True))
        self._asked: dict[int, dict[str, Any]] = {}
        self._earlier: dict[int, list[Attempt]] = {}

    def stored(self, request: Request, reply: Reply | None) -> None:
        """Add a reply that an earlier run stored, or None for a request that is not sent."""
        self._asked[id(request.question)] = {**_asked(request, reply), "attempts": []}

    def answered(self, request: Request, outcome: Outcome[Reply]) -> None:
        """Add the result of a request; its attempts belong to the first decision it served."""
        place = id(request.question)
        asked = _asked(request, outcome.result)
        attempts = self._earlier.pop(place, []) + self._own_attempts(outcome, place)
        if outcome.record_id != self._id_of[place]:
            asked["same_request_as"] = outcome.record_id

        # a question may be asked in several rotations
        self._asked.setdefault(place, {**asked, "attempts": []})["attempts"] += _plain(attempts)

    def failed(self, request: Request, outcome: Outcome[Reply]) -> None:
        """Add a request that is replaced by another one."""
        place = id(request.question)
        self._earlier.setdefault(place, []).extend(self._own_attempts(outcome, place))

    def keep(self, decisions: Sequence[Decision]) -> list[Decision]:
        """Keep a record of each decision; return the decisions with their ids."""
        kept = []
        for own, question, decision in zip(self._ids, self._questions, decisions, strict=True):
            self._record.keep(
                {
                    "id": own,
                    "kind": "decision",
                    **place_of(question),
                    **_question(question),
                    **self._asked.get(id(question), {"prompt": None, "attempts": []}),
                    "chosen": state_text(decision.chosen),
                    "source": decision.source,
                    "reason": decision.reason,
                    "probabilities": decision.probabilities,
                    **known(option_mass=decision.option_mass),
                }
            )
            kept.append(replace(decision, decision_id=own))

        return kept

    def _own_attempts(self, outcome: Outcome[Reply], place: int) -> list[Attempt]:
        """Return the attempts of a request to the first caller, and none to others."""
        if outcome.record_id is not None:
            return []

        outcome.record_id = self._id_of[place]
        return outcome.cost.trail or []


def record_text(record: PromptRecord, text_id: str, call: TextCall, written: Written) -> Written:
    """Keep a record of a text; return the text with its id."""
    trail = None if written.cost is None else written.cost.trail
    record.keep(
        {
            "id": text_id,
            "kind": "text",
            **place_of(call),
            "agent_id": call.agent_id,
            "key": call.key,
            "prompt": call.prompt,
            "schema": call.schema,
            "reply": written.text,
            "attempts": _plain(trail or []),
            "source": written.source,
            "reason": written.reason,
        }
    )

    return replace(written, text_id=text_id)


def place_of(asked: Question | TextCall) -> dict[str, int]:
    """Return round and tick of a question, if it has its own."""
    return {} if asked.instant is None else dict(zip(("round", "tick"), asked.instant, strict=True))


def _question(question: Question) -> dict[str, Any]:
    return {
        "agent_id": agent_name(question.agent),
        "state": state_text(question.state),
        "trigger": question.trigger,
        "options": [state_text(option) for option in question.options],
        "context": identify(question.context),
    }


def _asked(request: Request, reply: Reply | None) -> dict[str, Any]:
    """Return the prompt of a question, and the reply."""
    text = None if reply is None else reply.text
    return {"asked": request.kind, "prompt": request.text, "reply": text}


def _plain(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    return [attempt.to_dict() for attempt in attempts]
