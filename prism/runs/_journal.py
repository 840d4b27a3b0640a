"""The journal of a run: what models and outside actions answered, one line as each arrives.

It is all that a run cannot make again. To resume a run is to carry it out again from its beginning
with these answers, and to ask only where they end. A replay never asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from typing import Any

from prism.errors import ReplayError
from prism.reasoner._recording import record_of
from prism.reasoner._router import Router, all_of
from prism.reasoner._spending import COST_KEYS, KNOWN_COST_KEYS
from prism.reasoner._texts import Effect, fallback_text, read_as
from prism.runlog import SimulatedClock
from prism.runlog._prompts import as_line, open_answers, read_answers
from prism.statechart import (
    BaseReasoner,
    BaseWriter,
    Budget,
    Cost,
    Decision,
    Question,
    TextCall,
    Written,
    identify,
)
from prism.statechart.names import agent_name
from prism.statechart.states import state_text

_HOW_ASKED = ("said", "prompt_hash", "question_kind", "option_mass", "rotation", "sampling_seed")
_WRITTEN = ("text", "source", "reason")
_EFFECT = "effect"
_AGAIN = "again"


class Journal:
    """The answers of a run by agent and number.

    Args:
        path: The file to which new answers are appended; None to keep none.
        recorded: The journal of an earlier run, whose answers are taken first.
        clock: The run's clock, for round and tick of each line.
        until: The round from which on the earlier run's answers are not taken; None for no such
            round.

    Attributes:
        path: The file, if any.
        earlier: The answers that need not be asked for, by id.
        until: The round from which on none of the earlier run are taken, if any.
        own: The ids of those that this run asked for before it was stopped.
        unread: The ids of the earlier answers that have not been taken yet.

    Raises:
        InputError: If a line cannot be read, or another process is writing the file.
    """

    def __init__(
        self,
        path: Path | None = None,
        recorded: Path | None = None,
        clock: SimulatedClock | None = None,
        until: int | None = None,
    ) -> None:
        self.path = path
        self.until = until
        self.earlier: dict[str, dict[str, Any]] = {}
        self.own: set[str] = set()
        self._numbers: Counter[str] = Counter()
        self._spent: Counter[str] = Counter()
        self._clock = clock
        self._file: FileIO | None = None
        for source in (recorded, path):
            if source is not None and source.exists():
                end = until if source != path else None
                lines = {
                    answer_id: line
                    for answer_id, line in self._answers_in(source).items()
                    if end is None or line.get("round", 0) < end
                }
                self.earlier |= lines
                self.own = {*lines} if source == path else set()
        self.unread: set[str] = {*self.earlier}
        if path is not None and path.exists():
            self._file = open_answers(path)

    def _answers_in(self, source: Path) -> dict[str, dict[str, Any]]:
        """Return the answers of a journal by id, without those of rounds that are done again."""
        found: dict[str, dict[str, Any]] = {}
        for line in read_answers(source):
            self._spent.update(
                calls=line.get("attempts_made", 0),
                tokens=(line.get("input_tokens") or 0) + (line.get("output_tokens") or 0),
            )
            if line.get("kind") == _AGAIN:
                found = {
                    answer_id: each
                    for answer_id, each in found.items()
                    if each.get("kind") == _EFFECT or each.get("round", 0) < line["round"]
                }
            else:
                found[line["id"]] = line
        return found

    def do_again(self) -> None:
        """Let the current round be done again when the run is resumed, with its effects only.

        Its answers stay in the file, and what they have cost counts.
        """
        number = 0 if self._clock is None else self._clock.round
        self.add({"id": f"round {number}", "digest": _AGAIN, "kind": _AGAIN, "round": number})

    def next_id(self, agent_id: str) -> str:
        """Return the id of an agent's next answer."""
        self._numbers[agent_id] += 1
        return f"{agent_id}:{self._numbers[agent_id]}"

    def find(self, answer_id: str, asked: str) -> dict[str, Any] | None:
        """Return an earlier answer, if there is one.

        Raises:
            ReplayError: If it answers another question.
        """
        line = self.earlier.get(answer_id)
        # an effect is looked up more than once
        self.unread.discard(answer_id)
        if line is not None and line["digest"] != asked:
            raise ReplayError(
                f"answer {answer_id} in {self.path or 'the journal'} is to another question "
                f"(round {line.get('round')}, tick {line.get('tick')}): the run does not do the "
                "same as before: restore its code and files, or begin another run"
            )
        return line

    def add(self, line: dict[str, Any]) -> None:
        """Append an answer, which is in the operating system's hands when this returns."""
        at = {} if self._clock is None else {"round": self._clock.round, "tick": self._clock.tick}
        whole = {"id": line["id"], **at, **line}
        self.earlier[line["id"]] = whole
        if self.path is not None:
            if self._file is None:
                self._file = open_answers(self.path)
            self._file.write(as_line(whole))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    # What was spent

    def spent(self) -> tuple[int, int]:
        """Return the calls and tokens of the earlier answers."""
        return self._spent["calls"], self._spent["tokens"]


class JournalAnswers:
    """The answers of a journal, for a `Router`, which need not be asked for again.

    Args:
        journal: The journal.
        asks: Whether other questions may be asked.
        may_part: Whether answers to other questions are asked for instead of refused.
    """

    def __init__(self, journal: Journal, *, asks: bool, may_part: bool) -> None:
        self.journal = journal
        self._asks, self._may_part = asks, may_part
        self._has_parted = False
        self._pending: dict[int, str] = {}

    def answer_to(
        self, asked: Question | TextCall, prompt_hash: Callable[[], str | None]
    ) -> Decision | Written | None:
        """Return the answer of the journal, if it has one.

        Raises:
            ReplayError: If it is to another question, or missing where nothing may be asked.
        """
        answer_id = self.journal.next_id(_agent_of(asked))
        line = self._line(answer_id, digest_of(asked))
        if line is not None and self._is_worded_otherwise(line, prompt_hash):
            self._has_parted, line = True, None
        if line is not None:
            return _decision(line, asked) if isinstance(asked, Question) else _written(line, asked)
        if not self._asks:
            raise ReplayError(
                f"the journal has no answer {answer_id} (to {_subject(asked)}): the run was "
                "stopped before, or does not do the same as then"
            )
        self._pending[id(asked)] = answer_id
        return None

    async def once(self, key: str, effect: Effect, interrupted: Any) -> Any:
        """Carry out an effect on the outside world, unless the journal says that it has begun.

        Raises:
            ReplayError: If it has not, where nothing may be done.
        """
        line = {"digest": _EFFECT, "kind": _EFFECT}
        begun, ended = self._line(f"{key}:begun", _EFFECT), self._line(key, _EFFECT)
        if ended is not None:
            return ended["result"]
        if not self._asks:
            raise ReplayError(f"the journal has no result of {key}: the run was stopped before")
        if begun is None:
            self.journal.add({"id": f"{key}:begun", **line})
        # of an effect that a kill has interrupted, nobody knows whether it has happened
        result = await effect() if begun is None else interrupted
        self.journal.add({"id": key, **line, "result": result})
        return result

    def id_of(self, asked: Question | TextCall) -> str:
        """Return the id of an answer that is being asked for."""
        return self._pending.pop(id(asked))

    def _is_worded_otherwise(
        self, line: Mapping[str, Any], prompt_hash: Callable[[], str | None]
    ) -> bool:
        """Return whether a run that may part from another asks in other words than that one."""
        told = line.get("prompt_hash")
        is_free = self._may_part and self.journal.until is None
        return is_free and told is not None and prompt_hash() not in (None, told)

    def _line(self, answer_id: str, digest: str) -> dict[str, Any] | None:
        if answer_id in self.journal.own:
            # asked by this run before it was stopped: it has parted from the one that it repeats
            self._has_parted = self._may_part
            return self.journal.find(answer_id, digest)
        if self._has_parted:
            return None
        try:
            return self.journal.find(answer_id, digest)
        except ReplayError:
            if not self._may_part:
                raise
            self._has_parted = True
            return None


class JournalledPart(BaseReasoner, BaseWriter):
    """A reasoner or a writer whose answers are kept in a journal, each as it arrives.

    Args:
        part: The reasoner or writer.
        answers: The journal, and what it has answered.
    """

    def __init__(self, part: Any, answers: JournalAnswers) -> None:
        super().__init__()
        self._part, self._answers = part, answers
        self.concurrency: int = getattr(part, "concurrency", 0)
        if hasattr(part, "records"):
            part.records = True

    def __getattr__(self, name: str) -> Any:
        """Return anything else of the reasoner or writer."""
        if name.startswith("__") or name == "_part":
            raise AttributeError(name)
        return getattr(self._part, name)

    @property
    def part(self) -> Any:
        """The reasoner or writer."""
        return self._part

    @property
    def chooses_acts(self) -> bool:
        """Whether agents of the feed choose among all acts."""
        return bool(self._part.chooses_acts)

    @property
    def sends_schemas(self) -> bool:
        """Whether the schema of a text goes to its server."""
        return bool(getattr(self._part, "sends_schemas", False))

    @property
    def is_repeating(self) -> bool:
        """Whether answers of an earlier process are left."""
        return bool(self._answers.journal.unread)

    async def window(self) -> int | None:
        """Return the smallest window of the servers, as it was when the run began."""
        window: int | None = await self.once("window", self._part.window)
        return window

    async def once(self, key: str, effect: Effect, interrupted: Any = None) -> Any:
        """Carry out an effect on the outside world, unless the journal says that it has begun."""
        return await self._answers.once(key, effect, interrupted)

    async def answer(self, asked: Sequence[Any]) -> list[Any]:
        """Ask questions or text calls, and keep each answer."""
        ids = [self._answers.id_of(each) for each in asked]
        return await all_of(
            self._one(each, answer_id) for each, answer_id in zip(asked, ids, strict=True)
        )

    def prompt_hash(self, question: Question) -> str | None:
        """Return the hash of a question's prompt."""
        found: str | None = self._part.prompt_hash(question)
        return found

    def skip(self, asked: Any, answer: Any = None) -> None:
        """Let the part know of a question or text call that was answered elsewhere."""
        self._part.skip(asked, answer)

    async def _one(self, asked: Question | TextCall, answer_id: str) -> Any:
        (answer,) = await self._part.answer([asked])
        told = _told_decision(answer) if isinstance(answer, Decision) else _told_text(answer)
        record = record_of(answer_id, asked, answer)
        self._answers.journal.add({**record, "digest": digest_of(asked), **told})
        return _with_id(answer, answer_id)


def _agent_of(asked: Question | TextCall) -> str:
    return asked.agent_id if isinstance(asked, TextCall) else agent_name(asked.agent)


def _subject(asked: Question | TextCall) -> str:
    if isinstance(asked, TextCall):
        return f"the text {asked.key!r}"
    return f"{asked.trigger!r} in {state_text(asked.state)!r}"


def digest_of(asked: Question | TextCall) -> str:
    """Return the digest of a question, which tells whether a run still asks the same."""
    if isinstance(asked, TextCall):
        return f"text {asked.key} {asked.prompt_hash}"
    parts = (
        state_text(asked.state),
        asked.trigger,
        *map(state_text, asked.options),
        asked.prompt or "",
        "" if asked.context is None else str(identify(asked.context)),
    )
    return blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _told_decision(decision: Decision) -> dict[str, Any]:
    how = {name: value for name in _HOW_ASKED if (value := getattr(decision, name)) is not None}
    return {
        "chosen": state_text(decision.chosen),
        "source": decision.source,
        "reason": decision.reason,
        "probabilities": decision.probabilities,
        **how,
        **_cost_told(decision.cost),
    }


def _told_text(written: Written) -> dict[str, Any]:
    return {
        **{name: getattr(written, name) for name in _WRITTEN},
        **({"cut": True} if written.was_cut else {}),
        **({"declined": True} if written.was_declined else {}),
        **_cost_told(written.cost),
    }


def _cost_told(cost: Cost | None) -> dict[str, Any]:
    if cost is None:
        return {}
    known = {name: getattr(cost, name) for name in (*COST_KEYS, *KNOWN_COST_KEYS)}
    attempts = known.pop("attempts")
    return {
        "attempts_made": attempts,
        **{key: each for key, each in known.items() if each is not None},
    }


def _cost_in(line: Mapping[str, Any]) -> Cost | None:
    if "attempts_made" not in line:
        return None
    known = {name: line[name] for name in (*COST_KEYS, *KNOWN_COST_KEYS) if name in line}
    return Cost(**{**known, "attempts": line["attempts_made"]})


def _decision(line: Mapping[str, Any], question: Question) -> Decision:
    options = {state_text(each): each for each in question.options}
    how = {name: line[name] for name in _HOW_ASKED if name in line}
    return Decision(
        options[line["chosen"]],
        line["source"],
        line["reason"],
        line["probabilities"],
        _cost_in(line),
        decision_id=line["id"],
        **how,
    )


def _written(line: Mapping[str, Any], call: TextCall) -> Written:
    """Return the result of a text call, read again from the text."""
    cost, source = _cost_in(line), line["source"]
    if source in ("model", "cache"):
        written = read_as(call, line["text"], source, cost)
    else:
        value = None if source == "failed" else call.fallback
        text = line["text"] if source == "failed" else fallback_text(call)
        written = Written(
            text, source, value, line["reason"], cost, was_declined=line.get("declined", False)
        )
    return replace(written, text_id=line["id"], was_cut=line.get("cut", False))


def _with_id(answer: Any, answer_id: str) -> Any:
    if isinstance(answer, Decision):
        return replace(answer, decision_id=answer_id)
    return replace(answer, text_id=answer_id)


def journalled(asker: Any, journal: Journal, *, asks: bool = True, may_part: bool = False) -> None:
    """Let a run's reasoner or writer take answers from a journal, and add to it.

    Args:
        asker: The reasoner or writer of a run; None if there is none.
        journal: The journal.
        asks: Whether anything may be asked.
        may_part: Whether answers to other questions are asked for instead of refused.
    """
    if isinstance(asker, Router):
        answers = JournalAnswers(journal, asks=asks, may_part=may_part)
        asker.journal = answers
        for name, part in asker.parts.items():
            asker.parts[name] = JournalledPart(part, answers)


def restore_spending(budget: Budget | None, journal: Journal) -> None:
    """Count what earlier answers have spent, so that a budget holds over kills."""
    if budget is not None:
        calls, tokens = journal.spent()
        budget.add(retries=calls, tokens=tokens)
