"""A writer that writes from a script, and fails the test on an unexpected call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prism.reasoner._texts import or_fallback, read_as
from prism.statechart import BaseWriter, TextCall, Written
from prism.testing._scripts import Maker, Rule, Scripted, named_by, rules_of

Text = str | Mapping[str, Any] | Written
"""A text; an object, which is written as JSON; or a whole answer, such as a failure."""

CallMatcher = str | Callable[[TextCall], object]
"""Which calls a rule answers: by agent id, key, the part of it behind a colon, or a predicate."""

TextScript = (
    Sequence[Text] | Mapping[CallMatcher, Text | Sequence[Text]] | Callable[[TextCall], Text]
)
"""Texts in their order; rules, a `CallMatcher` and its text or list of texts; or a function."""


class ScriptedWriter(Scripted[TextCall, Any], BaseWriter):
    """A writer that writes from a script, without a model.

    ``left_over()`` lists unused texts and rules; ``assert_used_up()``
    raises an AssertionError if there are any, or a call was not expected.

    Each text of the script is the reply to one request. If a call cannot use it and may be
    repeated, the next text is used.

    Args:
        script: The texts, or objects that are written as JSON, or a `Written` to give as it is. A
            list is used in its order. A mapping holds rules, of which the first that matches is
            used: its keys are an agent's id, the key of a call, the part of it behind a colon (of a
            workflow, the step), or a predicate on the `TextCall`; its values one text for every
            such call, or a list of texts in their order. A function is asked for every text.

    Attributes:
        calls: Everything it was asked.
        complaints: Calls that it failed on; ``assert_used_up`` reports them again in case the
            application has swallowed them.
    """

    def __init__(self, script: TextScript) -> None:
        wanted = "a list of texts, a mapping of rules or a function"
        single = (str, Mapping, Written)
        super().__init__(
            [Rule(None, script)] if callable(script) else rules_of(script, single, wanted),
            ("call", "texts"),
            expects=_expects,
            name_of=lambda matcher: matcher if isinstance(matcher, str) else named_by(matcher),
            shown=_shown,
        )
        self.calls: list[TextCall] = self._asked

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Answer text calls from the script.

        Raises:
            AssertionError: If no text is left for one of them. The message shows the prompt.
        """
        __tracebackhide__ = True
        return list(map(self._written, calls))

    def _written(self, call: TextCall) -> Written:
        __tracebackhide__ = True
        self.calls.append(call)
        for _ in range(call.tries or 1):
            text = self._next(call)
            if isinstance(text, Written):
                return or_fallback(call, text)

            found = read_as(call, text if isinstance(text, str) else json.dumps(text), "script")
            if not found.has_failed:
                break

        return or_fallback(call, found)

    def _next(self, call: TextCall) -> Text:
        __tracebackhide__ = True
        rule = self._rule_for(call)
        if rule is not None:
            text: Any = rule.next()
            found: Text = text(call) if callable(text) else text
            return found

        raise self._complain(
            f"call {len(self.calls)}, {call.key!r} of agent {call.agent_id!r}: "
            f"the script has no text for it\nprompt:\n{call.prompt}"
        )


def _expects(matcher: CallMatcher, call: TextCall) -> bool:
    if callable(matcher):
        return bool(matcher(call))

    # in a workflow: the part after the turn, which is the step, also if it asks again
    step = call.key.partition(":")[2]
    return matcher in (call.agent_id, call.key, step, step.removesuffix(":again"))


def _shown(given: Text) -> str:
    shown = given if isinstance(given, str) else repr(given)
    return shown if len(shown) <= 60 else shown[:57] + "..."


class WriterMaker(Maker[ScriptedWriter]):
    """Makes scripted writers, and checks at the end of a test whether all are used up."""

    def __call__(self, script: TextScript) -> ScriptedWriter:
        """Make a writer that writes from a script: see `ScriptedWriter`."""
        self._made.append(ScriptedWriter(script))
        return self._made[-1]
