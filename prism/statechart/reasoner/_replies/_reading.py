"""Reading the choice from what a model wrote, as a careful person would read it."""

# ruff: noqa: RUF001 (models write signs that look like others)

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from prism.errors import ReasonerError
from prism.statechart.reasoner._replies._names import DECORATION, Mention, Names, plain_text
from prism.statechart.reasoner._replies._objects import (
    FENCE,
    CutText,
    Members,
    excerpt,
    objects_in,
    parse_whole,
    what_is_said,
)
from prism.statechart.states import state_text

ANSWER = "\N{OBJECT REPLACEMENT CHARACTER}"
"""The replacement for an object in a text."""

CONDITION = (
    r"(?:if|when|unless|until|once|except|provided|assuming|otherwise|else|not|but|conditions?"
    r"|conditional|conditionally|depends|depending|in\W?case|as\W+long\W+as|wenn|falls|sofern"
    r"|si|sauf|se|als|mits|si\W+no|cuando|quando|если|如果|条件)"
)


def _any_of(phrases: str) -> str:
    """Return a pattern of any of some phrases, with a tilde for each space within one."""
    return rf"\b(?:{'|'.join(phrases.split())})\b".replace("~", r"\s+")


# those in other languages are for what a value means: their sentences are never harmless
_NEGATION = (
    _any_of(
        r"""not no never neither nor none cannot nothing nobody without except nicht kein\w* nie
        niemals nein pas jamais non nunca jamás não nao mai niet geen nooit ikke inte aldrig не нет
        никогда"""
    )
    + r"|n't\b|不|没|別|ない|아니|안\s"
)
_HEDGE = (
    _any_of(
        r"""if unless whether until when only once provided as~long~as maybe perhaps might could may
        said says suggest\w* earlier later but however instead rather better worse though although
        or otherwise were~i had~i wait actually sorry wrong incorrect mistake\w* kidding jok\w+
        ignore opposite regret\w* hate silly lying nobody anyone nur aber falls"""
    )
    + r"|[?❌✗✘🚫⛔~{}]"
)
_DENIAL = re.compile(rf"{_NEGATION}|{_HEDGE}", re.IGNORECASE)
_LIMIT = re.compile(_HEDGE, re.IGNORECASE)
_REFUSAL = re.compile(
    f"{_NEGATION}|"
    + _any_of(
        r"""avoid\w* block\w* cancel\w* decline\w* den(?:y|ied) deselect\w* disable\w* discard\w*
        dismiss\w* dont error\w* exclude\w* fail\w* forbid\w* ignore\w* prevent\w* refuse\w*
        reject\w* remove\w* revoke\w* skip\w* undo unselect\w*"""
    ),
    re.IGNORECASE,
)
"""The words in a tool's name with which a call says what it does not choose."""

_WORD_BEGINS = re.compile(r"_|(?<=[a-z])(?=[A-Z])")

_NOUN = (
    r"(?:next[\s_\-]*state|final[\s_\-]*answer|state|answer|choice|decision|action|selection"
    r"|response|reply|output|result|json|option|status|letter|verdict|assistant)"
)
_WEIGHED = r"(?:all\s+things\s+considered|on\s+balance|overall|in\s+the\s+end)"
_IS = r"(?:\s+(?:is|would\s+be|should\s+be|will\s+be))"
_LEAD = re.compile(
    rf"""[\W_]* (?:(?:as|based\s+on|given|since|because|considering|after)\b[^:]{{1,300}}?,\s+)?
      (?:(?:so|thus|therefore|then|okay|sure|well|and|{_WEIGHED})\b[,!:]?\s+)?
      (?:i(?:'d|\s+would)?\s+(?:think|say|guess|believe)(?:\s+that)?\s+)?
      (?: (?:(?:here(?:'s|\s+is)|this\s+is|the|my|final|best|correct|single|next|chosen|selected
          |right|preferred|requested)\s+){{0,4}} {_NOUN} (?:\s+{_NOUN}){{0,2}} [*_`"']*
          (?:\s+to\s+(?:this|the)\s+post)?
          (?:\s+in\s+(?:the\s+)?(?:requested\s+|json\s+)?(?:format|json))?
          (?: {_IS}?\s*[*_`"']*\s*(?:[:=→]|-+>?) | {_IS} )
        | (?:i\s+(?:think|believe)\s+)? (?:(?:i|we)(?:'d|'ll|\s+would|\s+will|\s+have|'ve)?
          (?:\s+(?:then|thus|therefore))? | the\s+(?:agent|user)\s+(?:would|will) | let's) \s+
          (?:(?:choose|chose|chosen|decide|decided)(?:\s+to|\s+on|\s+for)?(?:\s+go\s+with)?
            |pick(?:ed)?|select(?:ed)?|go(?:ing)?\s+(?:with|for)|opt\s+for|settle\s+(?:on|for)
            |say|return|(?:move|switch|transition)\s+to|(?:respond|reply|answer)(?:\s+with)?)
          (?:\s+the)?(?:\s+(?:next\s+)?(?:state|option|action))?:?
        | so: | return ) [\s*_`'"“”(\[]*""",
    re.VERBOSE | re.IGNORECASE,
)
_CLAIM_ENDS = re.compile(
    r"""[*_`'"”)\]]* (?: \s+state\b )? [*_`'"”)\]]* (?: \s*$ | \s*(?:[.!,;:—–](?!\w)|\() | \s+-+\s
      | \s*// | \s+(?=(?:because|since|as)\b) | \s+[^\x00-\x7f\w\s→⇒❌✗✘🚫⛔]+\s*$ )""",
    re.VERBOSE | re.IGNORECASE,
)
_FINAL = re.compile(rf"{DECORATION}(?:(?:my|the|final)\s+){{0,2}}{_NOUN}[*_]*\s*:", re.IGNORECASE)
_NAME_ENDS = re.compile(r"""[*_`'"”)\]]*(?:\s*[:(,—–]|\s+-+\s|\s*$)""")
_BECAUSE = re.compile(
    r"[\W_]*(?:(?:explanation|reason|reasoning|rationale|justification)[*_]*\s*:"
    r"|(?:this\s+is\s+)?because\b|(?:given|since)\b)",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"[\W_]*"
    + _any_of(
        r"""as based~on let~me hope this~(?:topic|post)
        this~(?:choice~|state~|action~)?(?:fits|matches|suits|reflects|aligns|makes)
        this~is~(?:the~)?(?:best|natural|consistent|in~line)
        (?:the|my)~(?:post|topic|user|agent|interests?|persona\w*)
        (?:it|we)(?:'s|'re|~is|~are) (?:i'm|i~am)~(?:an?|interested|passionate|drawn|tired)
        i~(?:chose|choose|picked|care|like|love|want|will)"""
    ),
    re.IGNORECASE,
)
_MANNERS = re.compile(
    rf"""{DECORATION} (?:\d+|{_NOUN})? !*{DECORATION} | {DECORATION} confidence\W+[\d.]+\s*%?
      | {DECORATION} (?:sure(?:\s+thing)?|okay|ok
      |alright|certainly|absolutely|of\s+course|got\s+it|understood|thanks|thank\s+you|great
      |{_WEIGHED}
      |let\s+me\s+know\s+if\s+you\s+(?:need|have)\s[\w\s]+) !*{DECORATION}""",
    re.VERBOSE | re.IGNORECASE,
)
_SENTENCE_ENDS = re.compile(r"(?<=[.!?…。！？])[*_`'\")\]]*\s+")
_LABEL_ENDS_LINE = re.compile(r"([:=][*_]*)\s*\n\s*")
_DECORATION = re.compile(DECORATION)


def named_in(given: str, names: Names) -> Any | None:
    """Return the one option that a value names, alone or before what it means."""
    option = names.spelled(given)
    if option is not None or isinstance(given, CutText):
        return option

    plain = plain_text(given)[:1_000].lstrip("-•*_`'\"(<[ ")
    mention = names.at(plain, 0)
    if mention is None or not _NAME_ENDS.match(plain, mention.end):
        return None

    named = {other.option for other in names.mentions(plain, with_labels=mention.is_label)}
    # an option may mean one thing or another; what ends with "or" was to name another option
    gloss = re.sub(r"\bor\b(?=\s+\w)", " ", plain[mention.end :], flags=re.IGNORECASE)

    return None if named - {mention.option} or _DENIAL.search(gloss) else mention.option


def chosen_in(text: str, names: Names, answers: Sequence[Any]) -> Any | None:
    """Return the one option that a text chooses; None if a reader could doubt it.

    A last line that is labelled as the answer settles it. Else it must say its choice in a sentence
    of its own, and all other sentences must be English, name no other option, and neither deny nor
    ask nor make a condition.

    Args:
        text: What the model said, as `plain_text` returns it.
        names: The options.
        answers: The options for which `ANSWER` stands in the text.
    """
    lines = [line for line in _LABEL_ENDS_LINE.sub(r"\1 ", text).splitlines() if line.strip()]
    labelled = [_labelled(line, names, answers) for line in lines]
    options = [*answers, *(option for option in labelled if option is not None)]
    if any(option != options[0] for option in options):
        return None
    if labelled and labelled[-1] is not None:
        return labelled[-1]

    return _claimed_in(text, lines, names, next(iter(answers), None))


def _claimed_in(text: str, lines: list[str], names: Names, answer: Any | None) -> Any | None:
    """Return the one option that sentences of a text choose; None if there is a doubt."""
    claims = list(_claims(lines, names, answer))
    if not claims or None in claims:
        return None

    options = [claim.option for claim in claims if claim is not None]
    by_label = any(claim is not None and claim.is_label for claim in claims)
    options += [other.option for other in names.mentions(text, with_labels=by_label)]

    return options[0] if all(option == options[0] for option in options) else None


def _labelled(line: str, names: Names, answers: Sequence[Any]) -> Any | None:
    """Return the option that a line of its own gives as the answer."""
    label = _FINAL.match(line)
    if label is None or any(names.mentions(label[0])):
        return None

    value = line[label.end() :].strip("*_` ")
    return next(iter(answers), None) if value == ANSWER else names.spelled(value)


def _claims(lines: list[str], names: Names, answer: Any | None) -> Iterator[Mention | None]:
    """Yield what each sentence chooses; None for one that leaves a doubt about the choice."""
    for number, line in enumerate(lines):
        sentences = _SENTENCE_ENDS.split(line)
        for place, sentence in enumerate(sentences):
            is_first = place == 0 and (number == 0 or answer is not None)
            claim = _claim(sentence, names, answer, is_first, len(sentences) == 1)
            lead, rest = "", sentence
            if claim is not None:
                lead, rest = sentence[: claim.start], sentence[claim.end :]
                yield claim
            if ANSWER in lead + rest or _DENIAL.search(lead) or not _is_harmless(rest, names):
                yield None


def _claim(
    sentence: str, names: Names, answer: Any | None, is_first: bool, is_alone: bool
) -> Mention | None:
    """Return where a sentence names what it chooses."""
    option = names.spelled(sentence) if is_alone else None
    if option is not None:
        return Mention(0, len(sentence), option, not any(names.mentions(sentence)))

    for lead in (_LEAD.match(sentence), _DECORATION.match(sentence) if is_first else None):
        if lead is not None:
            place = lead.end()
            mention = names.at(sentence, place)
            if sentence.startswith(ANSWER, place):
                mention = Mention(place, place + len(ANSWER), answer)
            if mention is not None and _CLAIM_ENDS.match(sentence, mention.end):
                return mention

    return None


def _is_harmless(sentence: str, names: Names) -> bool:
    """Return True if words beside a choice are manners or a reason, and leave no doubt."""
    words = names.without(sentence)
    if _BECAUSE.match(words):
        return not _LIMIT.search(words)

    return bool(_MANNERS.fullmatch(words) or (_REASON.match(words) and not _DENIAL.search(words)))


_ANSWER_KEYS = frozenset(
    {
        *("nextstate", "action", "answer", "choice", "chosenstate", "decision", "finalanswer"),
        *("newstate", "next", "option", "output", "response", "result", "selectedoption"),
        *("selectedstate", "selection", "state", "target", "targetstate"),
    }
)
_WRAPPERS = frozenset(
    {
        *("args", "arguments", "data", "json", "parameters", "properties", "command"),
        *("function", "toolcall", "toolcalls"),
    }
)
_TOOL_NAMES = frozenset({"name", "function", "tool", "toolname"})
_TOOL_KEYS = _TOOL_NAMES | {"value", "id", "label"}
_REASONS = re.compile(
    r"reason|explanation|rationale|why|because|thought|text|content|message|post|description"
    r"|analysis|context|justification|thinking|input|argument|param|args|query"
)
_CONDITIONAL_KEY = re.compile(rf"\W*(?:(?:only\W*)?{CONDITION}|only)(?![^\W_])", re.IGNORECASE)
_CONDITIONAL_TEXT = re.compile(
    rf"\W*(?:only\W*)?{CONDITION}(?!\w)|\b(?:only\s+(?:if|when)|unless)\b", re.IGNORECASE
)
_VERDICTS = {
    **dict.fromkeys(("valid", "chosen", "accepted", "confirm", "confirmed", "enabled"), False),
    **dict.fromkeys(("rejected", "negated", "denied", "cancelled", "canceled"), True),
}
_SEPARATORS = re.compile(r"[\W_]+")
_MOST_NESTING = 6


def answered_by(whole: Any, names: Names, key: str) -> Any:
    """Return the one option that data names; None if it answers nothing.

    Raises:
        ReasonerError: If it names several, none of the options, or one under a condition.
    """
    values = list(_values(whole, names, _folded(key), 0))
    if not values:
        return None
    if _has_condition(whole, names, _folded(key)):
        raise ReasonerError(f"the reply sets a condition: {excerpt(whole)}")

    named = [_named(value, names) for value in values]
    for value, option in zip(values, named, strict=True):
        if option is None:
            listing = ", ".join(names.texts)
            raise ReasonerError(f"the reply names {excerpt(value)}, which is not one of {listing}")
    if any(option != named[0] for option in named):
        several = ", ".join(dict.fromkeys(map(str, values)))
        raise ReasonerError(f"the reply names several options: {excerpt(several)}")

    return named[0]


def _values(value: Any, names: Names, key: str, depth: int) -> Iterator[Any]:
    """Yield the answers in data: a text, or the values of its lists and keys."""
    value = _parsed(value)
    if not isinstance(value, list) or depth == _MOST_NESTING:
        yield value
    else:
        inside = _under_keys(value, names, key) if isinstance(value, Members) else value
        for each in inside:
            yield from _values(each, names, key, depth + 1)


def _under_keys(members: Members, names: Names, key: str) -> list[Any]:
    """Return what an object holds under the key asked for, a tool's name, or an answer's key."""
    keyed = [(_folded(each), _parsed(value)) for each, value in members]
    own = _under(keyed, {key})
    # a key that is an option itself holds something else, such as the text of a reply
    free = [(each, value) for each, value in keyed if names.spelled(each) is None]
    if own or not free:
        return own or _only_truth(members)

    return _under_usual_keys(free, names)


def _under_usual_keys(keyed: list[tuple[str, Any]], names: Names) -> list[Any]:
    """Return the values under keys that models use in place of the requested one."""
    # a response may hold the words of a post beside a state, and a tool may be called by any name
    naming = _naming(keyed, _TOOL_KEYS | _ANSWER_KEYS, names)
    inside = [each for each in _under(keyed, _WRAPPERS | _ANSWER_KEYS) if isinstance(each, list)]
    texts = [each for each in _under(keyed, _ANSWER_KEYS) if isinstance(each, str)]

    found = naming + inside or texts
    # the state beside the end of a transition may be its beginning
    return found + _naming(keyed, {"to"}, names) if found else []


def _naming(keyed: list[tuple[str, Any]], keys: Container[str], names: Names) -> list[Any]:
    """Return the values under some keys that name an option."""
    return [value for value in _under(keyed, keys) if _named(value, names) is not None]


def _under(keyed: list[tuple[str, Any]], keys: Container[str]) -> list[Any]:
    return [value for each, value in keyed if each in keys]


def _only_truth(members: Members) -> list[str]:
    """Return the one option that is true where each has a truth value."""
    are_truths = len(members) > 1 and all(isinstance(value, bool) for _, value in members)
    chosen = [each for each, value in members if value is True]
    return chosen if are_truths and len(chosen) == 1 else []


def _parsed(value: Any) -> Any:
    """Return a value, or the data that it is the text of."""
    inner = parse_whole(value) if isinstance(value, str) and "{" in value else None
    return value if inner is None else inner


def _named(value: Any, names: Names) -> Any | None:
    """Return the option that a value names; what is no text and no number names none."""
    if isinstance(value, int | float):
        value = str(value).lower()

    return named_in(value, names) if isinstance(value, str) else None


def _has_condition(value: Any, names: Names, asked: str) -> bool:
    """Return True if a key of it, a tool's name or a text under an unknown key is a condition."""
    if isinstance(value, Members):
        return any(_is_condition(each, inner, names, asked) for each, inner in value)

    return isinstance(value, list) and any(_has_condition(item, names, asked) for item in value)


def _is_condition(key: str, value: Any, names: Names, asked: str) -> bool:
    value = _parsed(value)
    if value is None or value in ("", []):
        return False

    folded = _folded(key)
    if _VERDICTS.get(folded) is value or _CONDITIONAL_KEY.match(key.replace("_", " ")):
        return True
    if folded == "value" and value is False:
        return _named(value, names) is None
    if isinstance(value, str):
        return _limits(folded, value, names, asked)

    return _has_condition(value, names, asked)


def _limits(folded: str, text: str, names: Names, asked: str) -> bool:
    """Return True for a tool whose name refuses what it is given, or a text with a condition."""
    if folded in _TOOL_NAMES:
        words = _WORD_BEGINS.sub(" ", text)
        return names.spelled(text) is None and _REFUSAL.search(words) is not None

    known = folded in {asked, *_ANSWER_KEYS, *_TOOL_KEYS} or _REASONS.search(folded)
    return not known and bool(_CONDITIONAL_TEXT.search(text))


def _folded(key: str) -> str:
    return _SEPARATORS.sub("", key).casefold()


MOST_REPLY_CHARACTERS = 10_000
"""How long what a model says may be, without its thoughts, where it is not JSON as a whole."""

_TAG = re.compile(
    r"</?(?:answer|final_answer|output|response|tool_call|next_state|state|choice|decision|json|end)>"
    r"|<\|start_header_id\|>assistant<\|end_header_id\|>|<\|python_(?:start|end|tag)\|>",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\$*\\boxed\{(?:\\text\{)?([^{}]*)\}?\}\$*")
_CALL = re.compile(
    r"""<(?:function=|invoke\s+name=["'])([^"'<>]{1,200})["']?>.*?(?:</(?:function|invoke)>|$)""",
    re.DOTALL,
)
_TRACE = re.compile(r"\n\s*(?:Action\s+Input|Observation):")
_CLOSES = re.compile(r"[\s}\])]*[)\]};]")


def parse_reasoner_response(response_text: str, options: list[Any]) -> Any:
    """Read the chosen state from a model's reply, tolerating common flaws.

    The reply may have thoughts (``<think>`` and the like), may wrap its JSON in code fences or put
    it behind a label or a usual lead-in, may get quotes, commas and braces wrong, and may answer in
    a plain sentence that names one option only. The state may be written in any case, with spaces
    or hyphens, or as a member of its enum. Replies with words that could deny or limit the answer
    are refused, and so is a condition among its keys. A state outside the options is never
    accepted.

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
    whole = parse_whole(reply.strip("\ufeff \t\r\n"))
    names = Names(options, labels)
    option = answered_by(whole, names, key) if whole is not None else _said(reply, names, key)
    if option is None:
        raise ReasonerError(
            f"no JSON object with {key!r} in the reply {excerpt(reply)}, nor a plain answer"
        )

    return option


def _said(reply: str, names: Names, key: str) -> Any | None:
    """Return the option that the objects of a reply name, or else its words."""
    # behind the act that it chose, a model that acts by itself goes on with what came of it
    said = _TRACE.split(what_is_said(reply).replace(ANSWER, " "), maxsplit=1)[0]
    if len(said) > MOST_REPLY_CHARACTERS:
        raise ReasonerError(
            f"the reply {excerpt(reply)} is longer than {MOST_REPLY_CHARACTERS} characters"
        )

    answers: list[Any] = []
    words = _TAG.sub("\n", FENCE.sub("\n", "".join(_words(said, names, key, answers))))
    words = plain_text(_BOXED.sub(r"\1", words).replace("\\_", "_"))
    option = chosen_in(words, names, answers)
    if option is None and any(each != answers[0] for each in answers):
        raise ReasonerError(f"the reply {excerpt(reply)} names several options")
    if answers and option is None:
        raise ReasonerError(
            f"the reply {excerpt(reply)} has words around its answer that may retract it"
        )

    return option if answers or option is not None else names.spelled(words)


def _words(said: str, names: Names, key: str, answers: list[Any]) -> Iterator[str]:
    """Yield a text with `ANSWER` for each object or call that answers, and keep their options."""
    read_until = 0
    for start, end, option in _objects(said, names, key):
        before = said[read_until:start].rstrip("{([")
        if not answers or before.strip():
            yield from (before, " ", ANSWER)
        answers.append(option)
        ends = _CLOSES.match(said, end)
        read_until = end if ends is None else ends.end()

    yield said[read_until:]


def _objects(said: str, names: Names, key: str) -> Iterator[tuple[int, int, Any]]:
    """Yield where objects and calls answer, and what."""
    calls = [(*call.span(), names.spelled(call[1])) for call in _CALL.finditer(said)]
    if any(option is not None for _, _, option in calls):
        yield from calls
        return

    for found in objects_in(said):
        option = answered_by(found.members, names, key)
        if option is not None and not found.has_comment:
            yield found.start, found.end, option


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
        raise ReasonerError(f"the reply has {excerpt(given)} instead of probabilities")

    _require_chances(given, texts)
    total = sum(given[text] for text in texts)
    if abs(total - 1) > ROUNDING:
        raise ReasonerError(f"the reply's probabilities sum to {total:g} instead of 1")

    return {text: given[text] / total for text in texts}


def _require_chances(given: Mapping[Any, Any], texts: Sequence[str]) -> None:
    """Refuse an option without a probability, and a probability without an option."""
    for text in texts:
        value = given.get(text)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise ReasonerError(
                f"the reply gives {text!r} the probability {excerpt(value)}, "
                "which is not a number from 0 to 1"
            )

    stranger = next((text for text in given if text not in texts), None)
    if stranger is not None:
        raise ReasonerError(
            f"the reply gives a probability to {excerpt(stranger)}, which is not one of "
            f"{', '.join(texts)}"
        )


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
    reason = next((text for text in map(_reason_among, _members_in(reply)) if text), None)
    if reason is None:
        return None

    printable = "".join(sign if sign.isprintable() else " " for sign in reason)
    line = " ".join(printable.split())

    return (
        line if len(line) <= most_characters else f"{line[: most_characters - 1]}{_ELLIPSIS}"
    ) or None


def _members_in(reply: str) -> list[Members]:
    """Return the objects in a reply, the last one first."""
    whole = parse_whole(reply)
    if whole is not None:
        return [whole] if isinstance(whole, Members) else []

    return [found.members for found in objects_in(what_is_said(reply))][::-1]


def _reason_among(members: Members) -> str | None:
    named = {key.casefold(): value for key, value in members}
    return next(
        (value for key in _KEYS if isinstance(value := named.get(key), str) and value.strip()), None
    )
