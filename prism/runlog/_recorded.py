"""The answers in a log, to repeat them or to avoid paying for them again."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import orjson

from prism.errors import InputError, ReplayError
from prism.reasoner._questions import Source
from prism.reasoner._router import EarlierAnswers
from prism.reasoner._spending import COST_KEYS, KNOWN_COST_KEYS
from prism.reasoner._texts import TextSource, fallback_text, read_as
from prism.runlog._reader import last_run, locate_log, read_blocks
from prism.runlog._writer import writable
from prism.statechart import Cost, Decision, Question, TextCall, Written, identify
from prism.statechart.names import agent_name
from prism.statechart.social import ACTS, FEEDS_OF_ACTS
from prism.statechart.states import state_text
from prism.telemetry.events import (
    DECISION,
    RUN_ENDED,
    RUN_STARTED,
    SCHEMA_VERSION,
    TEXT_WRITTEN,
)

_ASKED_BY = {
    DECISION: ("agent_id", "state", "trigger", "options", "context"),
    TEXT_WRITTEN: ("agent_id", "key"),
}
"""The keys of an answer's event that identify the question."""

_ANSWER_KEYS = ("chosen", "source", "reason", "probabilities")
_TEXT_KEYS = ("prompt_hash", "text", "source", "reason")

_OF_A_MODEL = ("model", "cache")
_TAKEN_INSTEAD = ("template", "fallback")
_SAME_RUN = "replay with the files and options of the recorded run"
_MAY_HAVE_STOPPED = " (which may have been stopped before: its log has no run.ended)"


class RecordedAnswers(EarlierAnswers):
    """The decisions and texts in the log of an earlier run, in order.

    Questions are the same if their agent, state, trigger, options and context are, and text calls
    if their agent and key are. As `EarlierAnswers` of a `Router`, the log answers until the runs
    diverge. From the first question that differs from the log (in its agent, subject, prompt or
    model), all questions are left to the router.

    Args:
        log: The log, plain or compressed with gzip, or the folder of the run.
        verbatim: Report answers exactly as in the log; by default their source is ``replay``.
        of: The events to keep.

    Raises:
        InputError: If the log cannot be read, is empty, has two runs or a newer schema, or has a
            line that is not an event; the message names the line.
    """

    def __init__(
        self,
        log: PathLike[str] | str,
        *,
        verbatim: bool = False,
        of: Sequence[str] = tuple(_ASKED_BY),
    ) -> None:
        self._path = locate_log(log)
        self._verbatim = verbatim
        self._answers: dict[bytes, deque[dict[str, Any]]] = defaultdict(deque)
        # by agent: whether it could choose among all acts, in the order of its answers
        self._acts: dict[str, deque[bool | None]] = defaultdict(deque)
        self._policy_acts = False
        self._start: dict[str, Any] = {}
        self._has_ended = False
        self._is_parted = False
        for event in _events(self._path):
            self._read(event, of)

        self._known_models = {each["for"] for each in self.models("decisions")}

    def _read(self, event: dict[str, Any], of: Sequence[str]) -> None:
        name = event.get("event")
        if name == RUN_STARTED:
            self._start = event
        self._has_ended |= name == RUN_ENDED
        if name not in of:
            return

        self._answers[_key_of_event(event)].append(event)
        if name == DECISION:
            offers = _offers_acts(event)
            self._acts[event["agent_id"]].append(offers)
            self._policy_acts |= bool(offers) and event["source"] == "policy"

    # As earlier answers of a router

    @property
    def chooses_acts(self) -> bool:
        """Whether agents of the feed chose among all acts."""
        return self._start.get("chart") in FEEDS_OF_ACTS

    def chooses_acts_for(self, agent: Any) -> bool | None:
        """Return whether an agent chooses among all acts in its next decision."""
        return None if self._is_parted else self.recorded_acts(agent)

    def models(self, asked_for: str) -> list[dict[str, Any]]:
        """Return the models asked for ``decisions`` or ``texts``, from the log."""
        told = self._start.get("models", [])
        return [each for each in told if each.get("asked") == asked_for]

    def remember(self, event: Mapping[str, Any]) -> None:
        """Skip an answer that a run took from this log before it was interrupted.

        Args:
            event: The answer's event, ``reasoner.decision`` or ``text.written``.
        """
        recorded = self._answers.get(_key_of_event(event))
        if not recorded or recorded[0] != event:
            self._is_parted = True
        if recorded:
            recorded.popleft()
        if event["event"] == DECISION:
            self._go_on(event["agent_id"])

    def answer_to(
        self,
        asked: Question | TextCall,
        prompt_hash: Callable[[], str | None],
        switched_to: str | None,
    ) -> Decision | Written | None:
        """Return the answer of the log, unless the runs have diverged."""
        if self._is_parted or self._differs(asked, prompt_hash, switched_to):
            self._is_parted = True
            return None

        return self.decision(asked) if isinstance(asked, Question) else self.text(asked)

    def _differs(
        self,
        asked: Question | TextCall,
        prompt_hash: Callable[[], str | None],
        switched_to: str | None,
    ) -> bool:
        """Return whether something differs from the log."""
        recorded = self._answers.get(_key_of(asked))
        if not recorded:
            return True

        same = prompt_hash()
        # a policy gets no prompt
        if "prompt_hash" in recorded[0] and same is not None and recorded[0]["prompt_hash"] != same:
            return True

        is_put_to_another = switched_to is not None and switched_to not in self._known_models
        return isinstance(asked, Question) and is_put_to_another

    # Answers that must exist

    def recorded_acts(self, agent: Any) -> bool | None:
        """Return whether an agent could choose among all acts; None if unknown."""
        recorded = self._acts.get(agent_name(agent))
        if not recorded:
            return None

        return self._policy_acts if recorded[0] is None else recorded[0]

    def decision(self, question: Question) -> Decision:
        """Return the decision on a question.

        Raises:
            ReplayError: If the log has no such decision, or it is not among the options.
        """
        recorded = self._answers.get(_key_of(question))
        agent = agent_name(question.agent)
        if not recorded:
            options = ", ".join(map(state_text, question.options))
            raise ReplayError(
                f"{self._path} holds no (further) decision of agent {agent!r} in "
                f"{state_text(question.state)!r} on {question.trigger!r} among {options} about "
                f"{identify(question.context)}: replay with the population, posts, seed, rounds "
                f"and ticks of the recorded run{self._why_short()}"
            )

        event = recorded.popleft()
        self._go_on(agent)
        decision = _decision_in(event, question)
        if decision is None:
            raise ReplayError(
                f"{self._path}: agent {agent!r} chose {event['chosen']!r}, "
                "which is not among its options"
            )
        if self._verbatim:
            return replace(decision, decision_id=event.get("decision_id"))

        return replace(decision, source="replay")

    def text(self, call: TextCall) -> Written:
        """Return the text for a call, whose prompt must be that of the log.

        Raises:
            ReplayError: If the log has no such text, or the run would not produce it now.
        """
        recorded = self._answers.get(_key_of(call))
        what = f"text {call.key!r} of agent {call.agent_id!r}"
        if not recorded:
            raise ReplayError(
                f"{self._path} holds no (further) {what}: {_SAME_RUN}{self._why_short()}"
            )

        event = recorded[0]
        if event["prompt_hash"] != call.prompt_hash:
            raise ReplayError(
                f"{self._path} holds the {what} for another prompt ({event['prompt_hash']}, now "
                f"{call.prompt_hash}): {_SAME_RUN}, or ask the model again"
            )

        recorded.popleft()
        text_id = event.get("text_id") if self._verbatim else None
        was_cut = event.get("cut", False)
        return replace(self._written(call, event, what), text_id=text_id, was_cut=was_cut)

    def _written(self, call: TextCall, event: Mapping[str, Any], what: str) -> Written:
        """Return the result of a call from the log."""
        text, source, reason = event["text"], event["source"], event["reason"]
        cost = _cost_of(event)
        was_declined = event.get("declined", False)
        if source == "failed":
            return Written(text, source, None, reason, cost, was_declined=was_declined)
        if source in _TAKEN_INSTEAD:
            if fallback_text(call) != text:
                raise ReplayError(
                    f"{self._path}: the fallback for the {what} differs from the "
                    f"present {fallback_text(call)!r}: {_SAME_RUN}"
                )
            return Written(text, source, call.fallback, reason, cost, was_declined=was_declined)

        written = read_as(call, text, source if self._verbatim else "replay", cost)
        if written.has_failed:
            raise ReplayError(
                f"{self._path}: the {what} was valid when it was written, but no longer is "
                f"({written.reason}): replay with the files of the recorded run, or ask the "
                "model again"
            )

        return written

    def _go_on(self, agent: str) -> None:
        if recorded := self._acts.get(agent):
            recorded.popleft()

    def _why_short(self) -> str:
        """Return what the log lacks, as far as it tells."""
        logged = self._start.get("logged_agents")
        if logged is not None:
            return f" (which logged only {logged} of {self._start['agents']} agents)"

        return "" if self._has_ended else _MAY_HAVE_STOPPED


class UnfinishedAnswers(EarlierAnswers):
    """The answers that a stopped run got from a model after its last checkpoint.

    The rounds after it are repeated and ask the same questions. The earlier answers are reused, so
    nobody pays for them twice.

    Args:
        events: The decisions and texts, in the order of the log.
    """

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        self._answers: dict[bytes, deque[Mapping[str, Any]]] = defaultdict(deque)
        for event in events:
            if event.get("source") in _OF_A_MODEL and "prompt_hash" in event:
                self._answers[_key_of_event(event)].append(event)

    @classmethod
    def behind(cls, log: Path, kept: int) -> UnfinishedAnswers:
        """Read the part of a log after some bytes; an incomplete last line is ignored.

        Args:
            log: The log.
            kept: Its bytes up to the last checkpoint.
        """
        found = []
        for block in read_blocks(log, begin=kept):
            for line in block.data.splitlines():
                try:
                    event = _parse(log, 0, line)
                except InputError:
                    break
                if event.get("event") in _ASKED_BY:
                    found.append(event)

        return cls(found)

    def answer_to(
        self,
        asked: Question | TextCall,
        prompt_hash: Callable[[], str | None],
        switched_to: str | None,
    ) -> Decision | Written | None:
        """Return the answer to the same question in the same prompt, once."""
        del switched_to  # the repeated rounds have the same treatments
        waiting = self._answers.get(_key_of(asked))
        same = prompt_hash() if waiting else None
        event = next((each for each in waiting or () if each["prompt_hash"] == same), None)
        if not waiting or event is None:
            return None

        waiting.remove(event)
        if isinstance(asked, Question):
            return _decision_in(event, asked)

        written = read_as(asked, event["text"], event["source"], _cost_of(event))
        return None if written.has_failed else written


def _decision_in(event: Mapping[str, Any], question: Question) -> Decision | None:
    """Return the decision in an event; None if it is not among the options."""
    chosen = [option for option in question.options if state_text(option) == event["chosen"]]
    if not chosen:
        return None

    return Decision(
        chosen[0],
        event["source"],
        event["reason"],
        event["probabilities"],
        _cost_of(event),
        said=event.get("said"),
        prompt_hash=event.get("prompt_hash"),
        question_kind=event.get("question_kind"),
        option_mass=event.get("option_mass"),
        rotation=event.get("rotation"),
        rotations_apart=event.get("rotations_apart"),
        sampling_seed=event.get("sampling_seed"),
    )


def _cost_of(event: Mapping[str, Any]) -> Cost | None:
    """Return the cost of a logged decision; None if no model was asked."""
    if "latency" not in event:
        return None

    known = {name: event[name] for name in KNOWN_COST_KEYS if name in event}
    return Cost(**{name: event[name] for name in COST_KEYS}, **known)


def _offers_acts(event: Mapping[str, Any]) -> bool | None:
    """Return whether an agent of the feed could choose among all acts; None if unknown."""
    if not ACTS.isdisjoint(event.get("options", ())):
        return True
    if event["source"] in ("model", "cache") or event.get("prompt_hash") is not None:
        # options that it could not repeat were left out
        return True

    return None


def _events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a log of one run, every line of which must be valid."""
    number, has_run, begins = 0, False, last_run(path).line
    for block in read_blocks(path):
        if block.fault is not None:
            raise InputError(f"{block.fault}; repeat the run", path=path, line=block.first_line)

        for number, line in enumerate(BytesIO(block.data), start=block.first_line):
            if number < begins:
                continue
            event = _parse(path, number, line)
            if event.get("event") == DECISION:
                _check_answer(path, number, event, _ANSWER_KEYS, "decision")
            elif event.get("event") == TEXT_WRITTEN:
                _check_answer(path, number, event, _TEXT_KEYS, "text")
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
    wanted = (*_ASKED_BY[event["event"]], *keys, *(COST_KEYS if "latency" in event else ()))
    missing = [name for name in wanted if name not in event]
    if missing:
        raise InputError(f"is missing from a {kind}", path=path, line=number, field=missing[0])

    sources = get_args(Source if kind == "decision" else TextSource)
    if event["source"] not in sources:
        problem = f"is {event['source']!r}, not one of {', '.join(sources)}"
        raise InputError(problem, path=path, line=number, field="source")

    if kind == "text" and event["source"] != "failed" and not isinstance(event["text"], str):
        raise InputError("is no text", path=path, line=number, field="text")


def _key_of_event(event: Mapping[str, Any]) -> bytes:
    name = event["event"]
    return _key(name, *(event[key] for key in _ASKED_BY[name]))


def _key_of(asked: Question | TextCall) -> bytes:
    if isinstance(asked, TextCall):
        return _key(TEXT_WRITTEN, asked.agent_id, asked.key)

    options = [state_text(option) for option in asked.options]
    agent, state = agent_name(asked.agent), state_text(asked.state)
    return _key(DECISION, agent, state, asked.trigger, options, identify(asked.context))


def _key(*parts: Any) -> bytes:
    try:
        return _dump(parts)
    except TypeError:  # the log describes values that JSON cannot represent
        return _dump([writable(part) for part in parts])


def _dump(parts: Sequence[Any]) -> bytes:
    return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=str)
