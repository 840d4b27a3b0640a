"""A writer that writes from a script, and fails the test on an unexpected call."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism.statechart import BaseWriter, TextCall, Written
from prism.statechart.reasoner._texts import or_fallback, read_as

Text = str | Mapping[str, Any] | Written
"""A text; an object, which is written as JSON; or a whole answer, such as a failure."""

CallMatcher = str | Callable[[TextCall], object]
"""Which calls a rule answers: by agent id, key, the part of it behind a colon, or a predicate."""

TextScript = (
    Sequence[Text] | Mapping[CallMatcher, Text | Sequence[Text]] | Callable[[TextCall], Text]
)
"""Texts in their order; rules, a `CallMatcher` and its text or list of texts; or a function."""


@dataclass(slots=True)
class _Rule:
    matcher: CallMatcher | None
    texts: deque[Text] | Text | Callable[[TextCall], Text]
    used: bool = False

    def expects(self, call: TextCall) -> bool:
        if isinstance(self.texts, deque) and not self.texts:
            return False
        if self.matcher is None:
            return True
        if callable(self.matcher):
            return bool(self.matcher(call))

        # of a workflow the part behind the turn, which is the step
        names = (call.agent_id, call.key, call.key.partition(":")[2])
        return self.matcher in names

    def next(self, call: TextCall) -> Text:
        self.used = True
        if isinstance(self.texts, deque):
            return self.texts.popleft()
        return self.texts(call) if callable(self.texts) else self.texts

    def left_over(self) -> str | None:
        if callable(self.texts):
            return None

        name = "" if self.matcher is None else f"{_name_of(self.matcher)}: "
        if isinstance(self.texts, deque):
            return name + ", ".join(map(_shown, self.texts)) if self.texts else None
        return None if self.used else name + _shown(self.texts)


class ScriptedWriter(BaseWriter):
    """Writes from a script; it needs no model, and works wherever a writer does.

    Each text of the script is what one request brings: where a call cannot use it, the next one is
    taken, as long as the call may be asked again.

    Args:
        script: The texts, or objects that are written as JSON, or a `Written` to give as it is. A
            list is used in its order. A mapping holds rules, of which the first that matches is
            used: its keys are an agent's id, the key of a call, the part of it behind a colon (of a
            workflow, the step), or a predicate on the `TextCall`; its values one text for every
            such call, or a list of texts in their order. A function is asked for every text.

    Attributes:
        calls: Everything it was asked.
        complaints: Calls that it failed on; `assert_used_up` reports these again, should an
            application have swallowed them.
    """

    def __init__(self, script: TextScript) -> None:
        super().__init__()
        self.calls: list[TextCall] = []
        self.complaints: list[str] = []
        self._rules = _rules_of(script)

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Answer text calls from the script.

        Raises:
            AssertionError: If no text is left for one of them; shows the prompt.
        """
        __tracebackhide__ = True
        return list(map(self._written, calls))

    def left_over(self) -> list[str]:
        """List the texts and rules that nothing was asked for."""
        return [text for rule in self._rules if (text := rule.left_over()) is not None]

    def assert_used_up(self) -> None:
        """Check that the script was followed to its end.

        Raises:
            AssertionError: If a call was not expected, or there are texts that nothing was asked
                for.
        """
        __tracebackhide__ = True
        if self.complaints:
            raise AssertionError("\n\n".join(self.complaints))

        if left := self.left_over():
            asked = f"{len(self.calls)} call{'s' * (len(self.calls) != 1)}"
            raise AssertionError(f"after {asked} the script has texts left over: {'; '.join(left)}")

    def _written(self, call: TextCall) -> Written:
        __tracebackhide__ = True
        self.calls.append(call)
        for _ in range(call.most_requests or 1):
            text = self._next(call)
            if isinstance(text, Written):
                return or_fallback(call, text)

            found = read_as(call, text if isinstance(text, str) else json.dumps(text), "script")
            if not found.has_failed:
                break

        return or_fallback(call, found)

    def _next(self, call: TextCall) -> Text:
        __tracebackhide__ = True
        rule = next((rule for rule in self._rules if rule.expects(call)), None)
        if rule is not None:
            return rule.next(call)

        complaint = (
            f"call {len(self.calls)}, {call.key!r} of agent {call.agent_id!r}: "
            f"the script has no text for it\nprompt:\n{call.prompt}"
        )
        self.complaints.append(complaint)
        raise AssertionError(complaint)


class WriterMaker:
    """Makes scripted writers, and checks at the end of a test whether all are used up."""

    def __init__(self) -> None:
        self._made: list[ScriptedWriter] = []

    def __call__(self, script: TextScript) -> ScriptedWriter:
        """Make a writer that writes from a script: see `ScriptedWriter`."""
        self._made.append(ScriptedWriter(script))
        return self._made[-1]

    def assert_used_up(self) -> None:
        """Check every writer that was made: see `ScriptedWriter.assert_used_up`."""
        __tracebackhide__ = True
        for writer in self._made:
            writer.assert_used_up()


def _rules_of(script: TextScript) -> list[_Rule]:
    if callable(script):
        return [_Rule(None, script)]

    if isinstance(script, str | Written) or not isinstance(script, (Mapping, Sequence)):
        is_list = isinstance(script, Iterable) and not isinstance(script, str)
        mend = "list(...) of it" if is_list else f"[{script!r}]"
        raise TypeError(
            "a script must be a list of texts, a mapping of rules or a function, "
            f"got {script!r}: write {mend}"
        )

    if not isinstance(script, Mapping):
        return [_Rule(None, deque(script))]

    return [
        _Rule(key, text if isinstance(text, str | Mapping | Written) else deque(text))
        for key, text in script.items()
    ]


def _name_of(matcher: CallMatcher) -> str:
    return matcher if isinstance(matcher, str) else getattr(matcher, "__name__", repr(matcher))


def _shown(text: Text) -> str:
    shown = text if isinstance(text, str) else repr(text)
    return shown if len(shown) <= 60 else shown[:57] + "..."
