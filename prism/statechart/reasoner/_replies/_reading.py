"""Reading the choice, its probabilities and its reason from what a model wrote.

The choice is read as a careful person would read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism.errors import ReasonerError
from prism.statechart.reasoner._replies._claims import claims_in, read_words
from prism.statechart.reasoner._replies._objects import (
    FoundObject,
    Members,
    excerpt,
    objects_in,
    what_is_said,
)
from prism.statechart.reasoner._replies._options import Options, plain_text
from prism.statechart.reasoner._replies._remarks import (
    is_corrected,
    is_preferred,
    is_qualified,
    is_quoted,
    is_ruled_out,
    is_taken_back,
    lead_of,
    sentence_around,
)
from prism.statechart.states import state_text

MOST_REPLY_CHARACTERS = 10_000
"""How much of a reply is searched, from its end, where it is not JSON as a whole."""

_OTHER_KEYS = frozenset(
    {
        "nextstate",
        *("action", "answer", "choice", "chosenstate", "decision", "finalanswer", "newstate"),
        *("next", "option", "output", "response", "result", "selectedoption", "selectedstate"),
        *("selection", "state", "target", "targetstate"),
    }
)
_NESTED_KEYS = _OTHER_KEYS | {"name", "value", "id", "label"}
_WRAPPERS = frozenset(
    {
        *("action", "answer", "args", "arguments", "data", "decision", "finalanswer", "json"),
        *("output", "parameters", "properties", "response", "result"),
    }
)
_SEPARATORS = re.compile(r"[\W_]+")
_WORD = re.compile(r"\w")
_PLACEHOLDER = re.compile(r"\s*(?:<[^>]*>|\.{3}|…)?\s*")
_FENCE = re.compile(r"(?:```|~~~)[A-Za-z]*")
_MOST_NESTING = 6


@dataclass(frozen=True, slots=True)
class _Answer:
    """What an object in a reply answers.

    Args:
        found: The object.
        values: What stands where the state belongs.
        before: The text between it and the answer before.
    """

    found: FoundObject
    values: Sequence[Any]
    before: str


def parse_reasoner_response(response_text: str, options: list[Any]) -> Any:
    """Read the chosen state from a model's reply, as a careful person would.

    The reply may wrap its JSON in code fences, other text or thoughts (``<think>`` and the like),
    may get quotes, commas and braces wrong, and may answer in plain words. The state may be
    written in any case, with spaces or hyphens, or as a member of its enum. A reply that names
    several options, rules one out or takes its answer back is refused unless it is clear what
    holds. A state outside the options is never accepted.

    Args:
        response_text: The raw reply.
        options: The states to choose from.

    Returns:
        One of the options.

    Raises:
        ReasonerError: (a ValueError) if the reply names no option, or not clearly one.
    """
    return read_choice(response_text, options)


def read_choice(
    response_text: str,
    options: Sequence[Any],
    *,
    key: str = "next_state",
    labels: Mapping[str, Any] | None = None,
) -> Any:
    """Read a choice from a model's reply: see `parse_reasoner_response`.

    Args:
        response_text: The raw reply.
        options: What there was to choose from: states, or texts.
        key: Under which key the answer was asked for.
        labels: Options by the letters or numbers under which they were offered.

    Returns:
        One of the options.

    Raises:
        ReasonerError: (a ValueError) if the reply names no option, or not clearly one.
    """
    reply = str(response_text)
    whole = parse_strictly(reply.strip("\ufeff \t\r\n"))
    for option in options:
        # what servers that keep to the schema send
        if whole == [(key, state_text(option))]:
            return option

    known = Options(options, key=key, labels=labels)
    if whole is not None:
        return _of_values(reply, known, list(_values_of_whole(whole, known)))

    said = what_is_said(reply)
    text = said[-MOST_REPLY_CHARACTERS:]
    dropped = said[: -len(text)].casefold() if len(said) > len(text) else ""
    if any(key.replace("_", separator) in dropped for separator in ("_", " ", "-", "")):
        raise ReasonerError(
            f"the reply {excerpt(reply)} goes on for more than {MOST_REPLY_CHARACTERS} characters "
            "after its first answer"
        )

    text, answers = _answers_in(text, known)
    if answers:
        return _of_answers(reply, text, known, answers)

    option = None if dropped else read_words(plain_text(_FENCE.sub("", text)), known)
    if option is None:
        raise ReasonerError(
            f"no JSON object with {key!r} in the reply {excerpt(reply)}, nor a plain answer"
        )

    return option


def parse_strictly(text: str) -> Any:
    """Return the value of a text that is JSON as a whole, objects as `Members`; None if it is not.

    A null is None, too: it says as little.
    """
    try:
        return json.loads(text, object_pairs_hook=Members)
    except (ValueError, RecursionError):  # ValueError also for a number of too many digits
        return None


def _of_values(reply: str, known: Options, values: Sequence[Any]) -> Any:
    """Return the one option that all values name."""
    if not values:
        raise ReasonerError(f"no JSON object with {known.key!r} in the reply {excerpt(reply)}")

    named = [known.named(_text_of(value)) for value in values]
    for value, option in zip(values, named, strict=True):
        if option is None:
            listing = ", ".join(known.texts)
            raise ReasonerError(f"the reply names {excerpt(value)}, which is not one of {listing}")

    if any(option != named[0] for option in named):
        several = ", ".join(dict.fromkeys(map(str, values)))
        raise ReasonerError(f"the reply names several options: {excerpt(several)}")

    return named[0]


def _of_answers(reply: str, text: str, known: Options, answers: Sequence[_Answer]) -> Any:
    """Return the option that the objects in a reply name, if its words do not deny it."""
    own = [answer for answer in answers if _is_own(answer)]
    if not own:
        raise ReasonerError(f"the reply {excerpt(reply)} rules its answer out, or quotes it")

    last = own[-1]
    if is_corrected(last.before) and len(own) > 1:
        own = [last]

    option = _of_values(reply, known, [value for answer in own for value in answer.values])
    after = text[last.found.end :]
    for answer in reversed(answers):
        if answer.found.start > last.found.start:
            after = text[last.found.end : answer.found.start]

    if _is_denied(plain_text(_FENCE.sub("", after)), option, known):
        raise ReasonerError(f"the reply {excerpt(reply)} puts its answer in doubt")

    words = plain_text(_words_around(text, answers))
    if any(claim.option != option for claim in claims_in(words, known)):
        raise ReasonerError(f"the reply {excerpt(reply)} says something else in words")

    return option


def _is_own(answer: _Answer) -> bool:
    if all(isinstance(value, str) and _PLACEHOLDER.fullmatch(value) for value in answer.values):
        return False

    lead = lead_of(plain_text(_FENCE.sub("", answer.before)))
    return not is_ruled_out(lead) and not is_quoted(lead)


def _is_denied(after: str, option: Any, known: Options) -> bool:
    """Return True if what follows an answer takes it back, or puts another option beside it."""
    if is_qualified(after) or is_taken_back(after):
        return True

    for mention in known.mentions(after):
        begin, end = sentence_around(after, mention.start, mention.end)
        sentence = after[begin : mention.start] + after[mention.end : end]
        is_beside = not _WORD.search(after, 0, mention.start)
        if mention.option != option and (is_beside or is_preferred(sentence)):
            return True

    return False


def _answers_in(text: str, known: Options) -> tuple[str, list[_Answer]]:
    """Return the answers in a text, and the text with spaces for all objects without an answer."""
    answers: list[_Answer] = []
    said: list[str] = []
    read_until = 0

    for found in objects_in(text):
        values = list(_values_of(found.members, known))
        said.append(text[read_until : found.start])
        read_until = found.end
        if values:
            answers.append(_Answer(found, values, "".join(said)))
            said.clear()
        else:
            said.append(" " * (found.end - found.start))

    # the answers keep their places: what is behind the last one is looked at later
    behind = "".join((*said, text[read_until:]))
    before = text[: answers[-1].found.end] if answers else ""

    return before + behind if answers else text, answers


def _words_around(text: str, answers: Sequence[_Answer]) -> str:
    """Return a reply without its objects and fences."""
    rest = text[answers[-1].found.end :]
    return _FENCE.sub("", "\n".join((*(answer.before for answer in answers), rest)))


def _values_of_whole(whole: Any, known: Options) -> Iterator[Any]:
    """Yield the answers in a reply that is JSON: an object, a text, or a list of either."""
    if isinstance(whole, Members):
        yield from _values_of(whole, known)
    elif isinstance(whole, list):
        for item in whole:
            yield from _values_of_whole(item, known)
    elif isinstance(whole, int | float):
        yield whole
    elif isinstance(whole, str):
        inner = parse_strictly(whole) if whole.lstrip().startswith(("{", "[")) else None
        if inner is None:
            yield whole
        else:
            yield from _values_of_whole(inner, known)


def _values_of(members: Members, known: Options, depth: int = 0) -> Iterator[Any]:
    """Yield what an object gives as the next state."""
    named = [(_folded(key), value) for key, value in members]
    own = [value for key, value in named if key == _folded(known.key)]
    if own:
        for value in own:
            yield from _nested(value, known, depth)
        return

    # a key that is an option itself holds something else, such as the text of a reply
    free = [(key, value) for key, value in named if known.named(key) is None]
    found = [inner for key, value in free for inner in _values_under(key, value, known, depth)]
    naming = [value for value in found if known.named(_text_of(value)) is not None]

    # a response may hold the words of a post beside a state
    yield from naming or found
    if not free:
        yield from _chosen_among(members)


def _values_under(key: str, value: Any, known: Options, depth: int) -> Iterator[Any]:
    """Yield what stands under another key than the one that was asked for."""
    inner = parse_strictly(value) if isinstance(value, str) and "{" in value else value
    objects = [inner] if isinstance(inner, Members) else inner
    if key in _WRAPPERS and _are_objects(objects) and depth < _MOST_NESTING:
        for each in objects:
            yield from _values_of(each, known, depth + 1)
    elif key in _OTHER_KEYS and (isinstance(value, str | list) or _is_number_of(value, known)):
        yield from _nested(value, known, depth)


def _nested(value: Any, known: Options, depth: int) -> Iterator[Any]:
    """Yield the answers in a value: itself, or what is in its list or object."""
    if depth >= _MOST_NESTING or not isinstance(value, list):
        yield value
    elif not isinstance(value, Members):
        for item in value:
            yield from _nested(item, known, depth + 1)
    else:
        keyed = [(_folded(key), inner) for key, inner in value]
        own = _folded(known.key)
        inside = [inner for key, inner in keyed if key == own or key in _NESTED_KEYS]
        for inner in inside or [value]:
            yield from _nested(inner, known, _MOST_NESTING if not inside else depth + 1)


def _chosen_among(members: Members) -> list[str]:
    """Return the one option that is true where each has a truth value."""
    are_truths = len(members) > 1 and all(isinstance(value, bool) for _, value in members)
    chosen = [key for key, value in members if value is True]
    return chosen if are_truths and len(chosen) == 1 else []


def _folded(key: str) -> str:
    return _SEPARATORS.sub("", key).casefold()


def _is_number_of(value: Any, known: Options) -> bool:
    """Return True if a value is a number under which an option was offered."""
    return type(value) is int and known.named(str(value)) is not None


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Members) for item in value)


def _text_of(value: Any) -> str:
    """Return the text of a value that can name an option; what is no such value names none."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()

    return str(value) if isinstance(value, int | float) else ""


ROUNDING = 0.05
"""How far from one the sum of probabilities may be, as rounding makes it."""


def read_probabilities(given: Any, options: list[Any]) -> dict[str, float]:
    """Check a decision model's probabilities, and make them sum to one.

    Args:
        given: Probability of every option by its text; other entries are refused.
        options: The states to choose from.

    Returns:
        The probabilities, in the options' order.

    Raises:
        ReasonerError: (a ValueError) if one is missing, is not a number from 0 to 1 or belongs to
            no option, or if they do not sum to one.
    """
    texts = [state_text(option) for option in options]
    if not isinstance(given, Mapping):
        raise ReasonerError(f"the reply has no probabilities but {excerpt(given)}")

    for text in texts:
        value = given.get(text)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise ReasonerError(
                f"the reply gives {text!r} the probability {excerpt(value)}, "
                "which is not a number from 0 to 1"
            )

    strangers = [text for text in given if text not in texts]
    if strangers:
        raise ReasonerError(
            f"the reply weighs {excerpt(strangers[0])}, which is not one of {', '.join(texts)}"
        )

    total = sum(given[text] for text in texts)
    if abs(total - 1) > ROUNDING:
        raise ReasonerError(f"the reply's probabilities sum to {total:g} instead of 1")

    return {text: given[text] / total for text in texts}


_KEYS = ("reason", "reasons", "reasoning", "explanation", "rationale", "why", "because")
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def read_reason(reply: str, most_characters: int) -> str | None:
    """Return the reason in a reply on one line, without what a terminal or a log would obey.

    Args:
        reply: The raw reply.
        most_characters: How long it may be; what is longer is cut.

    Returns:
        The reason; None if there is none.
    """
    reason = next((text for text in map(_reason_among, _objects(reply)) if text), None)
    if reason is None:
        return None

    printable = "".join(sign if sign.isprintable() else " " for sign in reason)
    line = " ".join(printable.split())

    return (
        line if len(line) <= most_characters else f"{line[: most_characters - 1]}{_ELLIPSIS}"
    ) or None


def _objects(reply: str) -> list[dict[str, Any]]:
    """Return the objects in a reply, the last one first."""
    try:
        whole = json.loads(reply)
    except (ValueError, RecursionError):
        return [dict(found.members) for found in objects_in(what_is_said(reply))][::-1]

    return [whole] if isinstance(whole, dict) else []


def _reason_among(members: dict[str, Any]) -> str | None:
    named = {key.casefold(): value for key, value in members.items()}
    return next(
        (value for key in _KEYS if isinstance(value := named.get(key), str) and value.strip()), None
    )
