"""Scripts of stand-ins: the replies to each caller, and whether a test has used them up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

AskedT = TypeVar("AskedT")
GivenT = TypeVar("GivenT")
MadeT = TypeVar("MadeT", bound="Scripted[Any, Any]")


@dataclass(slots=True)
class Rule(Generic[AskedT, GivenT]):
    """The replies of a script to the calls that match.

    Args:
        matcher: Which calls; None for all.
        given: One reply for every call, or several in their order.
        used: Whether any reply was given.
    """

    matcher: Any
    given: deque[GivenT] | GivenT
    used: bool = False

    def next(self) -> GivenT:
        """Return the next reply."""
        self.used = True
        return self.given.popleft() if isinstance(self.given, deque) else self.given

    def left(self) -> list[GivenT]:
        """Return the unused replies; a function leaves none."""
        if isinstance(self.given, deque):
            return list(self.given)
        return [] if self.used or callable(self.given) else [self.given]


class Scripted(Generic[AskedT, GivenT]):
    """What stand-ins that follow a script have in common.

    Args:
        rules: The rules of the script.
        kinds: What is asked, and what it is given, such as ``question`` and ``answers``.
        expects: Whether a rule with a matcher is for a call.
        name_of: Returns a matcher as text.
        shown: Returns a reply as text.

    Attributes:
        complaints: Messages about failures; `assert_used_up` reports them again in case the
            application has swallowed them.
    """

    def __init__(
        self,
        rules: list[Rule[AskedT, GivenT]],
        kinds: tuple[str, str],
        *,
        expects: Callable[[Any, AskedT], bool],
        name_of: Callable[[Any], str],
        shown: Callable[[GivenT], str],
    ) -> None:
        super().__init__()
        self.complaints: list[str] = []
        self._asked: list[AskedT] = []
        self._rules = rules
        self._asked_as, self._given_as = kinds
        self._expects, self._name_of, self._shown = expects, name_of, shown

    def left_over(self) -> list[str]:
        """List the unused replies of the script by rule."""
        left = ((rule.matcher, rule.left()) for rule in self._rules)
        return [
            ("" if matcher is None else f"{self._name_of(matcher)}: ")
            + ", ".join(map(self._shown, given))
            for matcher, given in left
            if given
        ]

    def assert_used_up(self) -> None:
        """Check that the script was followed to its end.

        Raises:
            AssertionError: If there was an unexpected call, or a reply is left over.
        """
        __tracebackhide__ = True
        if self.complaints:
            raise AssertionError("\n\n".join(self.complaints))

        if left := self.left_over():
            asked = f"{len(self._asked)} {self._asked_as}{'s' * (len(self._asked) != 1)}"
            raise AssertionError(
                f"after {asked} the script has {self._given_as} left over: {'; '.join(left)}"
            )

    def _rule_for(self, asked: AskedT) -> Rule[AskedT, GivenT] | None:
        """Return the first rule that matches a call and has a reply left."""
        for rule in self._rules:
            is_open = not isinstance(rule.given, deque) or bool(rule.given)
            if is_open and (rule.matcher is None or self._expects(rule.matcher, asked)):
                return rule

        return None

    def _complain(self, complaint: str) -> AssertionError:
        self.complaints.append(complaint)
        return AssertionError(complaint)


class Maker(Generic[MadeT]):
    """Makes scripted stand-ins, and checks at the end of a test that all scripts are used up."""

    def __init__(self) -> None:
        self._made: list[MadeT] = []

    def assert_used_up(self) -> None:
        """Check all that were made: see `Scripted.assert_used_up`."""
        __tracebackhide__ = True
        for made in self._made:
            made.assert_used_up()


def rules_of(script: Any, single: tuple[type, ...], wanted: str) -> list[Rule[Any, Any]]:
    """Return the rules of a script.

    Args:
        script: A list of replies in their order, or a mapping of rules.
        single: The types of a single reply, as opposed to a list of several.
        wanted: A description of valid scripts, for the message.

    Raises:
        TypeError: If it is neither.
    """
    if isinstance(script, str) or not isinstance(script, (Mapping, Sequence)):
        is_list = isinstance(script, Iterable) and not isinstance(script, str)
        mend = "list(...) of it" if is_list else f"[{script!r}]"
        raise TypeError(f"a script must be {wanted}, got {script!r}: write {mend}")

    if not isinstance(script, Mapping):
        return [Rule(None, deque(script))]

    return [
        Rule(key, given if isinstance(given, single) else deque(given))
        for key, given in script.items()
    ]


def named_by(function: Callable[..., Any]) -> str:
    """Return the name of a predicate in reports."""
    return getattr(function, "__name__", repr(function))
