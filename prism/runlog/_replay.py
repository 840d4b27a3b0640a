"""Answering questions and text calls with the decisions and texts of an earlier run."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, get_args

import orjson

from prism.errors import InputError, ReplayError
from prism.runlog._reader import locate_log, read_blocks
from prism.runlog._writer import writable
from prism.statechart import (
    BaseReasoner,
    BaseWriter,
    Cost,
    Decision,
    Question,
    TextCall,
    Written,
    identify,
)
from prism.statechart._identity import agent_name
from prism.statechart.reasoner._by_agent import CostsByModel
from prism.statechart.reasoner._cost import COST_KEYS, KNOWN_COST_KEYS
from prism.statechart.reasoner._questions import Source
from prism.statechart.reasoner._texts import TextSource, fallback_text, read_as
from prism.statechart.states import state_text
from prism.telemetry._loggers import EventLogger
from prism.telemetry.events import (
    DECISION,
    RUN_ENDED,
    RUN_STARTED,
    SCHEMA_VERSION,
    TEXT_WRITTEN,
)


class Parting:
    """Whether a run has parted from the one that it repeats; reasoner and writer share it."""

    is_parted: bool = False


_QUESTION_KEYS = ("agent_id", "state", "trigger", "options", "context")
_ANSWER_KEYS = ("chosen", "source", "reason", "probabilities")
_CALL_KEYS = ("agent_id", "key")
_TEXT_KEYS = ("prompt_hash", "text", "source", "reason")


class _Repeating:
    """What a reasoner and a writer have in common that answer from a log."""

    _skip_by: ClassVar[tuple[str, ...]]

    otherwise: BaseReasoner | BaseWriter | None
    _recorded: Mapping[bytes, deque[dict[str, Any]]]
    _models: list[dict[str, Any]]
    _costs: CostsByModel
    _parting: Parting

    async def close(self) -> None:
        """Close the connections of whoever answers where the log does not."""
        close = getattr(self.otherwise, "close", None)
        if close is not None:
            await close()

    def models_for(self, agents: Iterable[Any]) -> list[dict[str, Any]]:
        """Return who was asked for which agents in the earlier run, and who may be in this one.

        Args:
            agents: All agents of the run.
        """
        self._models = _together(self._models, self.otherwise, agents)
        return self._models

    @property
    def costs(self) -> CostsByModel | None:
        """What the answers so far have cost by model, if the earlier run's log told it."""
        return self._costs if self._models else None

    def _skip(self, event: Mapping[str, Any]) -> None:
        """Pass over an answer that the run took from this log before it was interrupted."""
        self._costs.add_event(event)
        recorded = self._recorded.get(_key(*(event[name] for name in self._skip_by)))
        if self.otherwise is not None and (not recorded or recorded[0] != event):
            self._parting.is_parted = True
        if recorded:
            recorded.popleft()


class ReplayReasoner(_Repeating, BaseReasoner):
    """Answers from the log of an earlier run, to repeat a run with a model without the model.

    A question is identified by its agent, state, trigger, options and context. Repeated questions
    get their answers in the order of the log.

    Args:
        log: The log, plain or compressed with gzip, or the folder of the run.
        verbatim: Report decisions exactly as in the log, so that the repeated run writes the same
            bytes. By default their source is ``replay``.
        otherwise: Who decides from the first question on that is not the one of the log: of another
            agent, about something else, in another prompt, or put to another model. By default such
            a question is an error.
        told: Who knows the prompts of questions, where ``otherwise`` is told none.
        parting: Whether the runs have parted, where a writer is to know it, too.
        logger: A structlog logger for the decisions.

    Raises:
        InputError: If the log cannot be read, is empty, has two runs or a newer schema, or has a
            line that is not an event; the message names the line.
    """

    _skip_by = _QUESTION_KEYS
    memory: Any = None

    def __init__(
        self,
        log: PathLike[str] | str,
        *,
        verbatim: bool = False,
        otherwise: BaseReasoner | None = None,
        told: BaseReasoner | None = None,
        parting: Parting | None = None,
        logger: EventLogger | None = None,
    ) -> None:
        super().__init__(logger)
        self.otherwise: BaseReasoner | None = otherwise
        self.concurrency: int = 0 if otherwise is None else otherwise.concurrency
        self.budget: Any = getattr(otherwise, "budget", None)
        self.told: Any = told or otherwise
        self.memory = getattr(self.told, "memory", self.memory)
        self._parting = parting or Parting()
        self._path = locate_log(log)
        self._verbatim = verbatim
        self._recorded, self._has_ended, self._models = _answers_in(
            self._path, DECISION, _QUESTION_KEYS, "decisions"
        )
        self._known_models = {each["for"] for each in self._models}
        self._costs = CostsByModel()

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Return the decisions of the log.

        Raises:
            ReplayError: If a question is not in the log.
        """
        decisions = []
        for question in questions:
            if self.otherwise is not None and self._differs(question):
                break
            decisions.append(self._look_up(question))

        left = questions[len(decisions) :]
        if left and self.otherwise is not None:
            decisions += await self.otherwise.answer(left)
        for decision in decisions:
            self._costs.add(decision.cost)

        return decisions

    def remember(self, decision: Mapping[str, Any]) -> None:
        """Skip a decision that the run took from this log before it was interrupted."""
        self._skip(decision)

    def _differs(self, question: Question) -> bool:
        """Return whether a question is not the one of the log; from the first on, all are not."""
        if self._parting.is_parted:
            return True

        recorded = self._recorded.get(_key_of(question))
        asker: Any = self.otherwise
        is_other = (
            not recorded
            or recorded[0].get("prompt_hash") != self._hash_of(question, recorded[0])
            or self._is_put_to_another(question)
        )
        if is_other:
            self._parting.is_parted = True
        elif recorded and recorded[0]["probabilities"] is not None:
            # whoever decided drew by them
            asker.skip(question)

        return is_other

    def _is_put_to_another(self, question: Question) -> bool:
        """Return whether it goes to a model that the earlier run has not had."""
        switch: Any = getattr(self.otherwise, "choose", None)
        is_switched = hasattr(switch, "is_switched") and switch.is_switched(question.agent)
        return is_switched and switch(question.agent) not in self._known_models

    def _hash_of(self, question: Question, event: Mapping[str, Any]) -> str | None:
        found: str | None = self.told.prompt_hash(question)
        # logs of earlier versions have none, and a policy is told nothing
        return event.get("prompt_hash") if found is None or "prompt_hash" not in event else found

    def _advice(self) -> str:
        return "replay with the population, posts, seed, rounds and ticks of the recorded run" + (
            "" if self._has_ended else _MAY_HAVE_STOPPED
        )

    def _look_up(self, question: Question) -> Decision:
        recorded = self._recorded.get(_key_of(question))
        agent = agent_name(question.agent)
        if not recorded:
            options = ", ".join(map(state_text, question.options))
            raise ReplayError(
                f"{self._path} holds no (further) decision of agent {agent!r} in "
                f"{state_text(question.state)!r} on {question.trigger!r} among {options} about "
                f"{identify(question.context)}: {self._advice()}"
            )

        event = recorded.popleft()
        chosen = next(
            (option for option in question.options if state_text(option) == event["chosen"]), None
        )
        if chosen is None:
            raise ReplayError(
                f"{self._path}: agent {agent!r} chose {event['chosen']!r}, "
                "which is not among its options"
            )

        source: Source = event["source"] if self._verbatim else "replay"

        return Decision(
            chosen,
            source,
            event["reason"],
            event["probabilities"],
            _cost_of(event),
            said=event.get("said"),
            decision_id=event.get("decision_id") if self._verbatim else None,
            prompt_hash=event.get("prompt_hash"),
        )


class ReplayWriter(_Repeating, BaseWriter):
    """Answers text calls from the log of an earlier run, to repeat it without the model.

    A call is identified by its agent and key, and its prompt has to be the one of the log. Repeated
    calls get their texts in the order of the log, failures included.

    Args:
        log: The log, plain or compressed with gzip, or the folder of the run.
        verbatim: Report texts exactly as in the log, so that the repeated run writes the same
            bytes. By default their source is ``replay``.
        otherwise: Who writes from the first call on that is not the one of the log; by default such
            a call is an error.
        parting: Whether the runs have parted, where a reasoner is to know it, too.
        logger: A structlog logger for the texts.

    Raises:
        InputError: As for `ReplayReasoner`.
    """

    _skip_by = _CALL_KEYS

    def __init__(
        self,
        log: PathLike[str] | str,
        *,
        verbatim: bool = False,
        otherwise: BaseWriter | None = None,
        parting: Parting | None = None,
        logger: EventLogger | None = None,
    ) -> None:
        super().__init__(logger)
        self.otherwise: BaseWriter | None = otherwise
        self.concurrency: int = 0 if otherwise is None else otherwise.concurrency
        self.budget: Any = getattr(otherwise, "budget", None)
        self._parting = parting or Parting()
        self._path = locate_log(log)
        self._verbatim = verbatim
        self._recorded, self._has_ended, self._models = _answers_in(
            self._path, TEXT_WRITTEN, _CALL_KEYS, "texts"
        )
        self._costs = CostsByModel()

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Return the texts of the log.

        Raises:
            ReplayError: If a call is not in the log, its prompt was another one, or its text, which
                was of use then, is not any more.
        """
        texts = []
        for call in calls:
            if self.otherwise is not None and self._differs(call):
                break
            texts.append(self._look_up(call))

        left = calls[len(texts) :]
        if left and self.otherwise is not None:
            texts += await self.otherwise.answer(left)
        for written in texts:
            self._costs.add(written.cost)

        return texts

    def remember(self, text: Mapping[str, Any]) -> None:
        """Skip a text that the run took from this log before it was interrupted.

        Args:
            text: Its event, ``text.written``.
        """
        self._skip(text)

    def _differs(self, call: TextCall) -> bool:
        """Return whether a call is not the one of the log; from the first on, all are not."""
        recorded = self._recorded.get(_key(call.agent_id, call.key))
        if not recorded or recorded[0]["prompt_hash"] != call.prompt_hash:
            self._parting.is_parted = True

        return self._parting.is_parted

    def _look_up(self, call: TextCall) -> Written:
        recorded = self._recorded.get(_key(call.agent_id, call.key))
        what = f"text {call.key!r} of agent {call.agent_id!r}"
        if not recorded:
            raise ReplayError(
                f"{self._path} holds no (further) {what}: {_SAME_RUN}"
                + ("" if self._has_ended else _MAY_HAVE_STOPPED)
            )

        event = recorded[0]
        if event["prompt_hash"] != call.prompt_hash:
            raise ReplayError(
                f"{self._path} holds the {what} for another prompt ({event['prompt_hash']}, now "
                f"{call.prompt_hash}): {_SAME_RUN}, or ask the model anew"
            )

        recorded.popleft()
        cost = _cost_of(event)
        text_id = event.get("text_id") if self._verbatim else None
        if event["source"] == "failed":
            failed = Written(event["text"], "failed", reason=event["reason"], cost=cost)
            return replace(failed, text_id=text_id)
        if event["source"] in _TAKEN_INSTEAD:
            if fallback_text(call) != event["text"]:
                raise ReplayError(
                    f"{self._path}: instead of the {what} another one was taken than the "
                    f"{fallback_text(call)!r} of now: {_SAME_RUN}"
                )
            taken = Written(event["text"], event["source"], call.fallback, event["reason"], cost)
            return replace(taken, text_id=text_id)

        source: TextSource = event["source"] if self._verbatim else "replay"
        written = read_as(call, event["text"], source, cost)
        if written.has_failed:
            raise ReplayError(
                f"{self._path}: the {what} was of use when it was written, and is not any more "
                f"({written.reason}): replay with the files of the recorded run, or ask the "
                "model anew"
            )

        return replace(written, text_id=text_id)


_TAKEN_INSTEAD = ("template", "fallback")
_SAME_RUN = "replay with the files and options of the recorded run"
_MAY_HAVE_STOPPED = " (which may have been stopped before: its log has no run.ended)"


def _together(
    recorded: list[dict[str, Any]], asker: Any, agents: Iterable[Any]
) -> list[dict[str, Any]]:
    """Return the models that a log tells, and those of whoever answers where it does not."""
    models_for = getattr(asker, "models_for", None)
    now = [] if models_for is None else models_for(agents)
    known = [each["for"] for each in recorded]
    return [*recorded, *(each for each in now if each["for"] not in known)]


def _cost_of(event: Mapping[str, Any]) -> Cost | None:
    """Return what a logged decision has cost; None if no model was to be asked."""
    if "latency" not in event:
        return None

    known = {name: event[name] for name in KNOWN_COST_KEYS if name in event}
    return Cost(**{name: event[name] for name in COST_KEYS}, **known)


def _answers_in(
    path: Path, name: str, keys: Sequence[str], asked_for: str
) -> tuple[dict[bytes, deque[dict[str, Any]]], bool, list[dict[str, Any]]]:
    """Return the answers in a log by what was asked, if its run came to an end, and its models.

    Args:
        path: The log.
        name: Name of the events that are answers.
        keys: Their keys that say what was asked.
        asked_for: What they are, as the log tells of models that agents have of their own.
    """
    recorded: dict[bytes, deque[dict[str, Any]]] = defaultdict(deque)
    has_ended = False
    models: list[dict[str, Any]] = []
    for event in _events(path):
        if event.get("event") == name:
            recorded[_key(*(event[key] for key in keys))].append(event)
        if event.get("event") == RUN_STARTED:
            told = event.get("models", [])
            models = [each for each in told if each.get("asked") == asked_for]
        has_ended |= event.get("event") == RUN_ENDED

    return recorded, has_ended, models


def _events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a log of one run, every line of which must be sound."""
    number = 0
    has_run = False
    for block in read_blocks(path):
        if block.fault is not None:
            raise InputError(f"{block.fault}; repeat the run", path=path, line=block.first_line)

        for number, line in enumerate(BytesIO(block.data), start=block.first_line):
            event = _parse(path, number, line)
            if event.get("event") == DECISION:
                _check_answer(path, number, event, (*_QUESTION_KEYS, *_ANSWER_KEYS), "decision")
            elif event.get("event") == TEXT_WRITTEN:
                _check_answer(path, number, event, (*_CALL_KEYS, *_TEXT_KEYS), "text")
            elif event.get("event") == RUN_STARTED and "agents" in event:
                _check_start(path, number, event, has_run=has_run)
                has_run = True

            yield event

    if number == 0:
        raise InputError("is empty: the run it should record wrote nothing", path=path)


def _parse(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        cut_off = not line.endswith(b"\n")
        problem = (
            "is cut off: the run it records did not end"
            if cut_off
            else "is damaged: not valid JSON"
        )
        raise InputError(f"{problem}; repeat the run", path=path, line=number) from None

    if not isinstance(event, dict):
        raise InputError("is not an event: must be a JSON object", path=path, line=number)

    return event


def _check_start(path: Path, number: int, event: dict[str, Any], *, has_run: bool) -> None:
    if has_run:
        raise InputError("begins another run: give a log that holds one", path=path, line=number)

    schema = event.get("schema")
    if not isinstance(schema, int) or schema > SCHEMA_VERSION:
        problem = (
            f"is {schema!r}, and this prism knows version {SCHEMA_VERSION}: "
            "replay it with the prism that wrote it"
        )
        raise InputError(problem, path=path, line=number, field="schema")


def _check_answer(
    path: Path, number: int, event: dict[str, Any], keys: tuple[str, ...], kind: str
) -> None:
    """Refuse a decision or a text that lacks a key, or whose origin is unknown."""
    wanted = (*keys, *(COST_KEYS if "latency" in event else ()))
    missing = [name for name in wanted if name not in event]
    if missing:
        raise InputError(f"is missing from a {kind}", path=path, line=number, field=missing[0])

    sources = get_args(Source if kind == "decision" else TextSource)
    if event["source"] not in sources:
        problem = f"is {event['source']!r}, not one of {', '.join(sources)}"
        raise InputError(problem, path=path, line=number, field="source")

    if kind == "text" and event["source"] != "failed" and not isinstance(event["text"], str):
        raise InputError("is no text", path=path, line=number, field="text")


def _key_of(question: Question) -> bytes:
    options = [state_text(option) for option in question.options]
    agent, state = agent_name(question.agent), state_text(question.state)
    return _key(agent, state, question.trigger, options, identify(question.context))


def _key(*parts: Any) -> bytes:
    try:
        return _dump(parts)
    except TypeError:  # the log has descriptions in place of values that JSON cannot represent
        return _dump([writable(part) for part in parts])


def _dump(parts: Sequence[Any]) -> bytes:
    return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=str)
