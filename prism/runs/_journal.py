"""The journal of a run: what models and outside actions answered, one line as each arrives.

It is all that a run cannot make again. To resume a run is to carry it out again from its beginning
with these answers, and to ask only where they end. A replay never asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from shutil import copyfile
from typing import Any

from prism.errors import ReplayError
from prism.reasoner._router import Router, all_of, record_of
from prism.reasoner._spending import COST_KEYS, KNOWN_COST_KEYS
from prism.reasoner._texts import Effect, fallback_text, read_as
from prism.runlog import PromptLog, SimulatedClock, read_answers
from prism.runlog._prompts import ANSWERS_NAME
from prism.runlog._reader import locate_log
from prism.runs._options import Repeats
from prism.statechart import Budget, Cost, Decision, Question, TextCall, Written, identify
from prism.statechart.names import agent_name
from prism.statechart.states import state_text

_HOW_ASKED = ("prompt_hash", "question_kind", "option_mass", "rotation", "sampling_seed")
_EFFECT = "effect"
_AGAIN = "again"
_FROM = "from"
"""The key of an answer that was taken from the journal of another run."""


class Journal:
    """The answers of a run by agent and number.

    Args:
        path: The file to which new answers are appended; None to keep none.
        clock: The run's clock, for round and tick of each line.
        repeats: The earlier run whose answers are taken first, if any.

    Attributes:
        earlier: The answers that need not be asked for, by id.
        unread: The ids of those that have not been taken yet.
        spent: The calls and tokens that the run has paid for before it was stopped.
        asks: Whether somebody is asked where the journal has no answer.

    Raises:
        InputError: If a line cannot be read, or another process is writing the file.
    """

    def __init__(
        self,
        path: Path | None = None,
        clock: SimulatedClock | None = None,
        repeats: Repeats | None = None,
    ) -> None:
        self.asks: bool = repeats is None or repeats.asks
        self.earlier: dict[str, dict[str, Any]] = {}
        self.spent: Counter[str] = Counter()
        self._path, self._clock, self._repeats = path, clock, repeats
        self._file: PromptLog | None = None
        self._numbers: Counter[str] = Counter()
        self._pending: dict[int, str] = {}
        self._has_parted = False
        if repeats is not None:
            self._take_over(locate_log(repeats.run).parent / ANSWERS_NAME, repeats)
        self._to_copy: set[str] = {*self.earlier} if self.asks else set()
        if path is not None and path.exists():
            own = _answers_in(path, None, self.spent)
            self.earlier |= own
            self._to_copy -= own.keys()
            self._file = PromptLog(path, clock)
        self.unread: set[str] = {*self.earlier}

    def _take_over(self, recorded: Path, repeats: Repeats) -> None:
        """Take the answers of the run that this one repeats."""
        if self.asks or self._path is None:
            found = _answers_in(recorded, repeats.until, Counter())
            self.earlier = {key: {**line, _FROM: str(repeats.run)} for key, line in found.items()}
        elif recorded.exists() and not self._path.exists():
            # a replay takes them all
            PromptLog(self._path).close()
            copyfile(recorded, self._path)

    # Taking answers

    def answer_to(
        self, asked: Question | TextCall, prompt_hash: Callable[[], str | None]
    ) -> Decision | Written | None:
        """Return the answer to a question, if there is one.

        Raises:
            ReplayError: If it is to another question, or missing where nothing may be asked.
        """
        agent_id = asked.agent_id if isinstance(asked, TextCall) else agent_name(asked.agent)
        self._numbers[agent_id] += 1
        answer_id = f"{agent_id}:{self._numbers[agent_id]}"
        line = self._find(answer_id, digest_of(asked), prompt_hash)
        if line is not None:
            return _decision(line, asked) if isinstance(asked, Question) else _written(line, asked)
        if not self.asks:
            raise _missing(f"answer {answer_id} (to {_subject(asked)})")
        self._pending[id(asked)] = answer_id
        return None

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

    def id_of(self, asked: Question | TextCall) -> str:
        """Return the id of an answer that is being asked for."""
        return self._pending.pop(id(asked))

    def _find(
        self, answer_id: str, digest: str, prompt_hash: Callable[[], str | None] | None = None
    ) -> dict[str, Any] | None:
        """Return an earlier answer, unless the run has parted from the one that it repeats."""
        line = self.earlier.get(answer_id)
        if line is None:
            return None
        # an effect is looked up more than once
        self.unread.discard(answer_id)
        may_part = self._repeats is not None and self._repeats.asks
        if _FROM not in line:
            # its own were asked for before it was stopped
            self._has_parted |= may_part
        elif self._has_parted or (may_part and self._differs(line, digest, prompt_hash)):
            self._has_parted = True
            return None
        if line["digest"] != digest:
            raise ReplayError(
                f"answer {answer_id} in {self._path or 'the journal'} is to another question "
                f"(round {line.get('round')}, tick {line.get('tick')}): the run does not do the "
                "same as before: restore its code and files, or begin another run"
            )
        if answer_id in self._to_copy:
            # so that the folder has all that the run cannot make again
            self._to_copy.remove(answer_id)
            self.add(line)
        return line

    def _differs(
        self, line: Mapping[str, Any], digest: str, prompt_hash: Callable[[], str | None] | None
    ) -> bool:
        """Return whether a run that may part from another asks otherwise than that one."""
        was = line.get("prompt_hash")
        if line["digest"] != digest or was is None or prompt_hash is None:
            return bool(line["digest"] != digest)
        assert self._repeats is not None
        return self._repeats.until is None and prompt_hash() not in (None, was)

    # Adding answers

    def add(self, line: dict[str, Any]) -> None:
        """Append an answer, which is in the operating system's hands when this returns."""
        if self._file is None and self._path is not None:
            self._file = PromptLog(self._path, self._clock)
        if self._file is not None:
            self._file.keep(line)

    def do_again(self) -> None:
        """Let the current round be done again when the run is resumed, with its effects only.

        Its answers stay in the file, and what they have cost counts.
        """
        number = 0 if self._clock is None else self._clock.round
        self.add({"id": f"round {number}", "digest": _AGAIN, "kind": _AGAIN, "round": number})

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _missing(what: str) -> ReplayError:
    problem = "the run was stopped before, or does not do the same as then"
    return ReplayError(f"the journal has no {what}: {problem}")


def _answers_in(path: Path, until: int | None, spent: Counter[str]) -> dict[str, dict[str, Any]]:
    """Return the answers of a journal by id, without those of rounds that are done again.

    Args:
        path: The journal.
        until: The round from which on none is wanted, in the journal of another run.
        spent: Receives the calls and tokens that were paid for.
    """
    found: dict[str, dict[str, Any]] = {}
    if not path.exists():
        return found
    for line in read_answers(path):
        if _FROM not in line:
            tokens = (line.get("input_tokens") or 0) + (line.get("output_tokens") or 0)
            spent.update(calls=line.get("attempts_made", 0), tokens=tokens)
        if line.get("kind") == _AGAIN:
            found = {
                answer_id: each
                for answer_id, each in found.items()
                if each.get("kind") == _EFFECT or each.get("round", 0) < line["round"]
            }
        elif until is None or line.get("round", 0) < until:
            found[line["id"]] = line
    return found


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
        if hasattr(part, "records"):
            part.records = True

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

    async def answer(self, asked: Sequence[Any]) -> list[Any]:
        """Ask questions or text calls, and keep each answer."""
        ids = [self._journal.id_of(each) for each in asked]
        return await all_of(map(self._one, asked, ids))

    async def _one(self, asked: Question | TextCall, answer_id: str) -> Any:
        (answer,) = await self.part.answer([asked])
        what = _of_decision(answer) if isinstance(answer, Decision) else _of_text(answer)
        about = {**record_of(answer_id, asked, answer), "digest": digest_of(asked)}
        self._journal.add({**about, **what, **_of_cost(answer.cost)})
        name = "decision_id" if isinstance(answer, Decision) else "text_id"
        return replace(answer, **{name: answer_id})


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


def _of_decision(decision: Decision) -> dict[str, Any]:
    how = {name: value for name in _HOW_ASKED if (value := getattr(decision, name)) is not None}
    return {"chosen": state_text(decision.chosen), "probabilities": decision.probabilities, **how}


def _of_text(written: Written) -> dict[str, Any]:
    how = {"cut": written.was_cut, "declined": written.was_declined}
    return {"text": written.text, **{name: True for name, is_so in how.items() if is_so}}


def _of_cost(cost: Cost | None) -> dict[str, Any]:
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


def journalled(asker: Any, journal: Journal) -> None:
    """Let a run's reasoner or writer take answers from a journal, and add to it.

    Args:
        asker: The reasoner or writer of a run; None if there is none.
        journal: The journal.
    """
    if isinstance(asker, Router):
        asker.journal = journal
        for name, part in asker.parts.items():
            asker.parts[name] = JournalledPart(part, journal)


def restore_spending(budget: Budget | None, journal: Journal) -> None:
    """Count what earlier answers have spent, so that a budget holds over kills."""
    if budget is not None and journal.asks:
        budget.add(retries=journal.spent["calls"], tokens=journal.spent["tokens"])
