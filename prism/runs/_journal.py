"""The journal of a run: what models and outside actions answered, one line as each arrives.

It is all that a run cannot make again. To resume a run is to carry it out again from its beginning
with these answers, and to ask only where they end. A replay never asks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from prism.errors import ReplayError
from prism.files.durable import write_durably
from prism.reasoner import Budget, Cost, Decision, Question, TextCall, Written
from prism.reasoner.asking import all_of
from prism.reasoner.questions import QUESTION_KEYS, Parts
from prism.reasoner.requests import COST_KEYS, OPTIONAL_COST_KEYS, known_of
from prism.reasoner.texts import Effect, fallback_text, read_as
from prism.runlog import SimulatedClock
from prism.runlog.reader import ANSWERS_NAME, locate_log, read_journal
from prism.runlog.writer import open_lines
from prism.runs._models import CALL, FROM, LOADED, Spent, asking_in
from prism.runs.options import Repeats
from prism.statechart import identify
from prism.statechart.names import agent_name
from prism.statechart.states import state_text

_HOW = ("prompt_hash", "failure", *QUESTION_KEYS)
_COST = (*COST_KEYS, *OPTIONAL_COST_KEYS)
_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
_EFFECT = "effect"
_AGAIN = "again"
_BY_ANOTHER = "by_another"


class Journal:
    """The answers of a run by agent and number.

    Only the user who runs prism may read the file. Each line is in the operating system's hands as
    soon as it is added.

    Args:
        path: The file to which new answers are appended; None to keep none.
        clock: The run's clock, for round and tick of each line.
        repeats: The earlier run whose answers are taken first, if any.

    Attributes:
        earlier: The answers that need not be asked for, by id.
        unread: The ids of those that have not been taken yet.
        spent: What the run has paid for, also before it was stopped.
        asks: Whether somebody is asked where the journal has no answer.
        budget: The budget of the run, whose calls are noted when they are sent.

    Raises:
        InputError: If a line cannot be read.
    """

    def __init__(
        self,
        path: Path | None = None,
        clock: SimulatedClock | None = None,
        repeats: Repeats | None = None,
    ) -> None:
        self.asks: bool = repeats is None or repeats.asks
        self.earlier: dict[str, dict[str, Any]] = {}
        self.spent: Spent = Spent()
        self.budget: Budget | None = None
        self._path, self._clock = path, clock or SimulatedClock()
        self._file: BinaryIO | None = None
        self._numbers: Counter[str] = Counter()
        if repeats is not None and (path is None or not path.exists() or not path.stat().st_size):
            recorded = locate_log(repeats.run).parent / ANSWERS_NAME
            self.earlier = _answers_in(recorded, repeats.until, Spent())
            for each in self.earlier.values():
                if each["kind"] in repeats.by_others:
                    each[_BY_ANOTHER] = True
            if self.earlier and path is not None:
                # the folder has all that the run cannot make again
                open_lines(path, 0o600).close()
                lines = ({**each, FROM: str(repeats.run)} for each in self.earlier.values())
                write_durably(path, b"".join(map(_as_line, lines)))
        elif path is not None:
            self.earlier = _answers_in(path, None, self.spent)
        self.unread: set[str] = {*self.earlier}
        self._kept = len(self.earlier)

    # Taking answers

    def new_id(self, question: Question | TextCall) -> str:
        """Return the id of the answer to an agent's next question."""
        name = question.agent_id if isinstance(question, TextCall) else agent_name(question.agent)
        self._numbers[name] += 1
        return f"{name}:{self._numbers[name]}"

    def answer_to(self, question: Question | TextCall, answer_id: str) -> Decision | Written | None:
        """Return the answer of this id to a question, if there is one.

        Raises:
            ReplayError: If it is to another question, or missing where nothing may be asked.
        """
        line = self._find(answer_id, digest_of(question))
        if line is None and self.asks:
            return None
        if line is None:
            raise _missing(f"answer {answer_id} (to {_subject(question)})")
        if isinstance(question, TextCall):
            return _written(line, question)
        return _decision(line, question)

    def may_answer_again(self, answer_id: str) -> bool:
        """Return whether an earlier answer is also that to equal questions that are still to come.

        It is not where nobody is asked, so that none needs to be recognized, or if another model
        gave it.
        """
        return self.asks and _BY_ANOTHER not in self.earlier[answer_id]

    async def once(self, key: str, effect: Effect, interrupted: Any) -> Any:
        """Carry out an effect on the outside world, unless the journal says that it has begun.

        Raises:
            ReplayError: If it has not, where nothing may be done.
        """
        line = {"digest": _EFFECT, "kind": _EFFECT}
        begun, ended = self._find(f"{key}:begun", _EFFECT), self._find(key, _EFFECT)
        if ended is not None:
            return ended["result"]
        if not self.asks:
            raise _missing(f"result of {key}")
        if begun is None:
            self.add({"id": f"{key}:begun", **line})
        # of an effect that a kill has interrupted, nobody knows whether it has happened
        result = await effect() if begun is None else interrupted
        self.earlier[key] = {"id": key, **line, "result": result}
        self.add(self.earlier[key])
        return result

    def _find(self, answer_id: str, digest: str) -> dict[str, Any] | None:
        """Return an earlier answer.

        Raises:
            ReplayError: If it is to another question.
        """
        line = self.earlier.get(answer_id)
        if line is None:
            return None
        # an effect is looked up more than once
        self.unread.discard(answer_id)
        if line["digest"] != digest:
            raise ReplayError(
                f"answer {answer_id} in {self._path or 'the journal'} is to another question "
                f"(round {line.get('round')}, tick {line.get('tick')}): the run does not do the "
                "same as before: restore its code and files, or begin another run"
            )
        return line

    # Adding answers

    def add(self, line: dict[str, Any]) -> None:
        """Append an answer, and count what it has cost."""
        self.spent.add(line)
        if self._path is None:
            return
        if self._file is None:
            self._file = open_lines(self._path, 0o600)
        at: dict[str, Any] = {"round": self._clock.round, "tick": self._clock.tick}
        if self.budget is not None and self.budget.seconds:
            at["seconds"] = round(self.budget.seconds, 3)
        self._file.write(_as_line({"id": line["id"], **at, **line}))
        self._file.flush()

    def pay_from(self, budget: Budget) -> None:
        """Count what earlier processes have spent, and note every further call before it is sent.

        So a budget holds over kills, and counts the requests that were under way.
        """
        spent = self.spent
        budget.add(retries=spent.calls, tokens=spent.tokens, seconds=spent.seconds)
        budget.on_call = lambda: self.add({"id": CALL, "kind": CALL})
        self.budget = budget

    def add_loading(self, cost: Cost) -> None:
        """Note what loading a model has cost."""
        self.add({"id": LOADED, "kind": LOADED, "cost": known_of(cost, _COST)})

    def do_again(self) -> None:
        """Let the current round be done again when the run is resumed, with its effects only.

        Its answers stay in the file, and what they have cost counts.
        """
        self.add({"id": f"round {self._clock.round}", "digest": _AGAIN, "kind": _AGAIN})

    def undo(self) -> None:
        """Let no resumed run take the answers of this process, which did something else.

        They stay in the file, and what they have cost counts.
        """
        if self._file is not None:
            self.add({"id": _AGAIN, "kind": _AGAIN, "round": 0, "kept": self._kept})

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _as_line(record: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(record, default=str, option=_OPTIONS)
    except TypeError:
        # a model may have written half a surrogate pair, which UTF-8 cannot represent
        text = json.dumps(record, default=str, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace") + b"\n"


def _missing(what: str) -> ReplayError:
    problem = "the run was stopped before it, or does something else now"
    return ReplayError(f"the journal has no {what}: {problem}")


def _answers_in(path: Path, until: int | None, spent: Spent) -> dict[str, dict[str, Any]]:
    """Return the answers of a journal by id, without those of rounds that are done again.

    Args:
        path: The journal.
        until: The round from which on none is wanted, in the journal of another run.
        spent: Receives what was paid for.
    """
    answers: dict[str, dict[str, Any]] = {}
    for line in read_journal(path) if path.exists() else ():
        kind = line.get("kind")
        spent.add(line)
        if kind in (CALL, LOADED):
            continue
        if kind == _AGAIN:
            answers = {
                answer_id: each
                for number, (answer_id, each) in enumerate(answers.items())
                if each.get("kind") == _EFFECT
                or each.get("round", 0) < line["round"]
                or number < line.get("kept", 0)
            }
        else:
            answers[line["id"]] = line
    end = inf if until is None else until
    return {key: each for key, each in answers.items() if each.get("round", 0) < end}


def has_answers(path: Path) -> bool:
    """Return whether a journal has more than requests."""
    kinds = (each.get("kind") for each in read_journal(path)) if path.exists() else ()
    return any(kind not in (CALL, LOADED) for kind in kinds)


class Wrapped:
    """A reasoner or a writer with something else done to what it answers.

    Args:
        part: The reasoner or writer.
    """

    def __init__(self, part: Any) -> None:
        self.part = part

    def __getattr__(self, name: str) -> Any:
        """Return anything else of the reasoner or writer."""
        if name == "part":
            raise AttributeError(name)
        return getattr(self.part, name)


class JournalledPart(Wrapped):
    """A reasoner or a writer whose answers are kept in a journal, each as it arrives.

    Args:
        part: The reasoner or writer.
        journal: The journal.
    """

    def __init__(self, part: Any, journal: Journal) -> None:
        super().__init__(part)
        self._journal = journal

    @property
    def is_repeating(self) -> bool:
        """Whether answers of an earlier process are left."""
        return bool(self._journal.unread)

    async def window(self) -> int | None:
        """Return the smallest window of the servers, as it was when the run began."""
        window: int | None = await self.once("window", self.part.window)
        return window

    async def once(self, key: str, effect: Effect, interrupted: Any = None) -> Any:
        """Carry out an effect on the outside world, unless the journal says that it has begun."""
        return await self._journal.once(key, effect, interrupted)

    async def answer(self, questions: Sequence[Any]) -> list[Any]:
        """Answer questions or text calls, as before or anew."""
        ids = [self._journal.new_id(each) for each in questions]
        earlier = [*map(self._earlier, questions, ids)]
        open_ones = [each for each, answer in enumerate(earlier) if answer is None]
        new = await all_of(self._one(questions[each], ids[each]) for each in open_ones)
        for each, answer in zip(open_ones, new, strict=True):
            earlier[each] = answer
        return earlier

    def _earlier(self, question: Any, answer_id: str) -> Any:
        """Return the answer of the journal, if there is one."""
        answer = self._journal.answer_to(question, answer_id)
        if answer is not None and self._journal.may_answer_again(answer_id):
            self.part.skip(question, answer)
        elif isinstance(answer, Decision):
            self.part.skip(question)
        return answer

    async def _one(self, question: Question | TextCall, answer_id: str) -> Any:
        """Ask a question, and keep its answer."""
        (answer,) = await self.part.answer([question])
        line: dict[str, Any] = {"id": answer_id, "digest": digest_of(question)}
        if isinstance(question, TextCall):
            line |= {"kind": "text", "prompt": question.prompt, "reply": answer.text}
        else:
            line |= {"kind": "decision", "prompt": answer.prompt, "reply": answer.reply}
            line["chosen"] = state_text(answer.chosen)
            line["probabilities"] = answer.probabilities
        line |= known_of(answer, _HOW)
        line |= {"source": answer.source, "reason": answer.reason}
        if (cost := answer.cost) is not None:
            line["cost"] = known_of(cost, _COST)
            if cost.repairs:
                line["repairs"] = cost.repairs
        self._journal.add(line)
        name = "decision_id" if isinstance(answer, Decision) else "text_id"
        return replace(answer, **{name: answer_id})


def _subject(question: Question | TextCall) -> str:
    if isinstance(question, TextCall):
        return f"the text {question.key!r}"
    return f"{question.trigger!r} in {state_text(question.state)!r}"


def digest_of(question: Question | TextCall) -> str:
    """Return the digest of a question, which tells whether a run still asks the same."""
    if isinstance(question, TextCall):
        return f"text {question.key} {question.prompt_hash}"
    parts = (
        state_text(question.state),
        question.trigger,
        *map(state_text, question.options),
        question.prompt or "",
        "" if question.context is None else str(identify(question.context)),
    )
    return blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _decision(line: Mapping[str, Any], question: Question) -> Decision:
    options = {state_text(each): each for each in question.options}
    return Decision(
        options[line["chosen"]],
        line["source"],
        line["reason"],
        line["probabilities"],
        _cost_of(line),
        decision_id=line["id"],
        **_how(line),
    )


def _written(line: Mapping[str, Any], call: TextCall) -> Written:
    """Return the result of a text call, read again from the text."""
    cost, source, text = _cost_of(line), line["source"], line["reply"]
    if source in ("model", "cache"):
        written = read_as(call, text, source, cost)
    else:
        value = None if source == "failed" else call.fallback
        text = text if source == "failed" else fallback_text(call)
        written = Written(text, source, value, line["reason"], cost)
    return replace(written, text_id=line["id"], **_how(line))


def _how(line: Mapping[str, Any]) -> dict[str, Any]:
    return {name: line[name] for name in _HOW if name in line}


def _cost_of(line: Mapping[str, Any]) -> Cost | None:
    return Cost(**line["cost"]) if "cost" in line else None


def take_from(journal: Journal, askers: Iterable[Any]) -> None:
    """Let what asks a model in a run take answers from a journal as far as it goes, and add to it.

    Args:
        journal: The journal.
        askers: The reasoner and the writer of the run; None for one that it lacks.
    """
    asking = asking_in(askers)
    if asking and journal.asks:
        # all share one
        journal.pay_from(asking[0].budget)
    for router in (each for each in askers if isinstance(each, Parts)):
        # a policy decides in the same way again
        for name, part in router.parts.items():
            if part in asking:
                router.parts[name] = JournalledPart(part, journal)
