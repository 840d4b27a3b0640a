"""Reading what a model's reply asks for: XML, JSON, or a tool call that its server cut out.

Anything else asks for nothing. A reply that could mean two things is refused, and so is one that is
cut off: what is stored must be what the model wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from prism.cognition._memory._values import to_text
from prism.cognition._settings import AVAILABLE_ACTIONS, WITH_VALUE
from prism.reasoner._texts import whole_characters

MOST_CHARACTERS = 200_000
"""How much of a reply is read."""

_MOST_MARKS = 1_000
"""How many marks are looked at; a reply with more repeats itself without end."""

_THOUGHT = "(?i:think|thinking|thoughts?|reasoning|reflection|scratchpad)>"
_MESSAGE = r"\b[^<]{0,40}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>"
_SAID = re.compile(rf"</{_THOUGHT}|<\|channel\|>\s{{0,9}}final{_MESSAGE}")
_MARK = re.compile(
    rf"""(?=[<{{\[]) (?:
        (?P<agent><agent\b)
      | (?P<loose></?(?:agent|action|next_state|thinking_log|type|tags|value)\b)
      | (?P<said>{_SAID.pattern})
      | (?P<thought><{_THOUGHT} | <\|channel\|>)
      | (?P<turn><\|(?:im_end|eot_id|endoftext|end_of_text|end_of_turn|end|return)\|>
            | </s> | <end_of_turn>)
      | (?P<comment><!--)
      | (?P<data>(?:\[\s{{0,20}})?\{{\s{{0,20}}(?:["'}}] | \w{{1,40}}\s{{0,20}}:))
    )""",
    re.VERBOSE,
)
# thoughts that no tags enclose: those of servers that drop special tokens, or print
_UNTAGGED = re.compile(
    r"\A\s*+(?:analysis.*assistantfinal|Thinking\.\.\..*?\.\.\.done thinking\.)", re.DOTALL
)
_INSIDE = re.compile(r"<!\[CDATA\[|\]\]>|</agent\s{0,20}>")
# what XML would take for markup, and is none
_BARE = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)|<(?![A-Za-z/!?])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_WORD = re.compile(r"\W*+(\w+(?:-\w+)*+)\s*+([|/]?)")

_FENCE = "`~ \n"
_KEYS = ("next_state", "thinking_log", "action")
_PARTS = ("type", "tags", "value")
_ARGUMENTS = ("arguments", "parameters")


@dataclass(frozen=True, slots=True)
class AskedAction:
    """The request in a reply, not yet checked against the available actions.

    Attributes:
        type: The leading word of the type, in lower case; empty if there is none.
        tags: The identifier: stripped, each run of spaces an underscore; empty if there is none.
        value: The text to store; None if there is none. JSON values other than text are compact
            JSON.
        fields: What else the action has, by name, as an action of the application may need it;
            tags and value, too, if they are lists or objects.
    """

    type: str
    tags: str
    value: str | None
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class AgentReply:
    """The reply of a model.

    Attributes:
        next_state: The leading word of ``next_state``, in lower case; None if there is none.
        thinking_log: The thought to keep, stripped; None if there is none.
        action: What to do; None if nothing is asked for. Not to be carried out if `is_truncated`.
        is_truncated: Whether the reply ended before what it says was closed.
        defects: Why it is not read, or what of it is not.
        surplus: The defect of a reply with several actions; None if it does not have several.
    """

    next_state: str | None = None
    thinking_log: str | None = None
    action: AskedAction | None = None
    is_truncated: bool = False
    defects: tuple[str, ...] = ()
    surplus: str | None = None


class _UnreadError(ValueError):
    """A part of a reply is not read.

    Args:
        problem: Why not.
        is_truncated: Whether it is cut off.
    """

    def __init__(self, problem: str, *, is_truncated: bool = False) -> None:
        super().__init__(problem)
        self.is_truncated = is_truncated


class _OpenAnswer(dict[str, Any]):
    """What stands in an answer of which only the last closing tag is missing."""


_Answer = dict[str, Any] | _UnreadError
"""What stands in an answer by its name, or why it is not read."""


def read_reply(text: str) -> AgentReply:
    """Return what a reply says; never raises, whatever the text is.

    An answer is an agent element of XML, whose bare ``&`` and ``<`` stand for themselves, an object
    of JSON, or a tool call. Of several elements the last counts, of several actions in one answer
    the first. Thoughts before the answer, and what a model writes after the end of its turn, do not
    count.

    Args:
        text: The reply; what is beyond 200,000 characters is not read.
    """
    if len(text) > MOST_CHARACTERS:
        # what counts comes behind the thoughts, which are what makes replies so long
        text = _SAID.split(text[: 10 * MOST_CHARACTERS])[-1][:MOST_CHARACTERS]
    clean = _UNTAGGED.sub("", _text_of(text))
    try:
        return _reply_of(_answer_in(clean))
    except _UnreadError as error:
        return AgentReply(is_truncated=error.is_truncated, defects=(str(error),))
    except RecursionError:
        return AgentReply(defects=("the reply is nested too deeply",))


def _answer_in(text: str) -> dict[str, Any]:
    answers: list[_Answer] = []
    has_data = False
    for kind, answer in _answers(text):
        if kind == "said":  # what precedes it is a thought
            answers, has_data = [], False
        elif kind == "turn" and answers:
            break
        elif kind == "data" and has_data:
            raise _UnreadError("an object stands beside another answer: reply with one")
        elif answer is not None:
            has_data |= kind != "agent"
            answers.append(answer)

    if not answers:
        raise _UnreadError("there is no agent element and no object with its keys")
    if isinstance(answers[-1], _UnreadError):
        raise answers[-1]

    return answers[-1]


def _answers(text: str) -> Iterator[tuple[str, _Answer | None]]:
    """Yield the marks of a text outside of thoughts, with the answer that begins at each."""
    position = 0
    for _ in range(_MOST_MARKS):
        if (mark := _MARK.search(text, position)) is None:
            return
        kind, position, answer = str(mark.lastgroup), mark.end(), None
        if kind in ("thought", "comment"):
            ended = _SAID.search(text, position) if kind == "thought" else None
            end = text.find("-->", position) if ended is None else ended.start()
            if end < 0 or (kind == "thought" and ended is None):
                return
            position = end
        elif kind in ("agent", "data"):
            read = _element if kind == "agent" else _object
            answer, position = read(text, mark.start())
        elif kind == "loose":
            answer = _UnreadError("there are tags that belong to no agent element")
        yield kind, answer

    raise _UnreadError("the reply repeats itself without end")


def _reply_of(answer: dict[str, Any]) -> AgentReply:
    if any(part in answer for part in _PARTS):
        raise _UnreadError("parts of the action stand outside of it")

    thought, asked = answer.get("thinking_log"), answer.get("action")
    if isinstance(thought, list) and all(isinstance(line, str) for line in thought):
        thought = "\n".join(thought)
    surplus = None
    if isinstance(asked, list) and asked:
        surplus = f"{len(asked)} actions; the first is read" if len(asked) > 1 else None
        asked = asked[0]

    return AgentReply(
        _word(answer.get("next_state")) or None,
        None if thought is None else _text_of(thought).strip() or None,
        _action_of(asked) if isinstance(asked, dict) else None,
        is_truncated=isinstance(answer, _OpenAnswer),
        defects=() if surplus is None else (surplus,),
        surplus=surplus,
    )


def _action_of(asked: Mapping[str, Any]) -> AskedAction:
    kind, tags, value = _word(asked.get("type")), asked.get("tags"), asked.get("value")
    more = {name: given for name, given in asked.items() if name not in _PARTS}
    if kind in WITH_VALUE and value is None and more:
        raise _UnreadError(f"the action has no value, but {', '.join(more)}")

    words = [each for each in (tags if isinstance(tags, list) else [tags]) if isinstance(each, str)]
    data = {name: asked.get(name) for name in _PARTS[1:]}
    fields = {**more, **{name: it for name, it in data.items() if isinstance(it, list | dict)}}
    return AskedAction(
        kind,
        "_".join(_text_of(" ".join(words)).split()),
        None if value is None else _text_of(value),
        {} if kind in AVAILABLE_ACTIONS else fields,
    )


def _text_of(given: Any) -> str:
    """Return a text that can be written as UTF-8, without control characters."""
    return _CONTROLS.sub("", whole_characters(to_text(given)))


def _word(given: Any) -> str:
    """Return the leading word of a text, in lower case; nothing if it offers a choice."""
    found = _WORD.match(given) if isinstance(given, str) else None
    return "" if found is None or found[2] else found[1].replace("-", "_").lower()


# --- XML ------------------------------------------------------------------------------------------


def _element(text: str, start: int) -> tuple[_Answer, int]:
    """Return what an agent element says, and where it ends."""
    is_literal = False
    for inside in _INSIDE.finditer(text, start):
        if inside[0] == "]]>":
            is_literal = False
        elif inside[0] == "<![CDATA[":
            is_literal = True
        elif not is_literal:
            try:
                return _agent_of(_parsed(text[start : inside.end()])), inside.end()
            except _UnreadError as error:
                return error, inside.end()

    try:
        whole = text[start:].rstrip(_FENCE) + "</agent>"
        return _OpenAnswer(_agent_of(_parsed(whole))), len(text)
    except _UnreadError:
        return _UnreadError("the agent element is not closed", is_truncated=True), len(text)


def _parsed(text: str) -> Element:
    """Parse an element; signs that are no markup are mended if there are no others to mistake."""
    # comments, too, would be dropped without a word
    texts = [text] if "<![CDATA[" in text else [text, _BARE.sub(_escaped, text)]
    problem = ""
    for each in texts:
        builder = ElementTree.TreeBuilder(insert_comments=True, insert_pis=True)
        try:
            return ElementTree.fromstring(each, ElementTree.XMLParser(target=builder))
        except (ElementTree.ParseError, ValueError) as error:
            problem = str(error)

    raise _UnreadError(f"the agent element is not XML ({problem}): write &lt; for < in a text")


def _escaped(sign: re.Match[str]) -> str:
    return "&amp;" if sign[0] == "&" else "&lt;"


def _agent_of(element: Element) -> dict[str, Any]:
    actions = [_leaves_of(each) for each in element if each.tag == "action"]
    agent = _leaves_of(element, but="action")
    return {**agent, "action": actions} if actions else agent


def _leaves_of(element: Element, but: str = "") -> dict[str, Any]:
    """Return the texts of the elements in an element, which holds no more than these."""
    found: dict[str, Any] = {}
    for part in element:
        if part.tag == but:
            continue
        if not isinstance(part.tag, str) or len(part) or part.attrib or part.tag in found:
            raise _UnreadError(f"{element.tag} holds markup that is none of its elements, or twice")
        found[part.tag] = part.text or ""

    stray = (element.text or "") + "".join(part.tail or "" for part in element)
    if stray.strip() or (element.attrib and not but):
        raise _UnreadError(f"{element.tag} holds text that stands in none of its elements")

    return found


# --- JSON -----------------------------------------------------------------------------------------


def _object(text: str, start: int) -> tuple[_Answer | None, int]:
    """Return what an object, or a list of tool calls, says, and where it ends."""
    try:
        data, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        is_cut = not text.rstrip(_FENCE).endswith(("}", "]"))
        return _UnreadError(f"the JSON is not valid: {error}", is_truncated=is_cut), len(text)

    try:
        return _agent_in(data), end
    except _UnreadError as unread:
        return unread, end


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if twice := [key for key, value in pairs if found[key] != value]:
        raise ValueError(f"the key {twice[0]!r} stands there twice")

    return found


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_pairs)


def _agent_in(data: Any) -> dict[str, Any] | None:
    """Return the object with the keys of an agent, also as the action that a tool call asks for."""
    if isinstance(data, list):
        first = _agent_in(data[0])
        return (
            first
            if first is None or len(data) == 1
            else {**first, "action": [first.get("action"), *data[1:]]}
        )
    agent = data.get("agent", data) if isinstance(data, dict) else None
    if not isinstance(agent, dict):
        return None
    if agent is not data or any(key in data for key in _KEYS):
        return agent

    name, given = data.get("name"), next((data[key] for key in _ARGUMENTS if key in data), None)
    if "name" not in data or given is None:
        return None
    if isinstance(given, str):
        given = _decoded(given or "{}")
    if not isinstance(name, str) or not isinstance(given, dict):
        raise _UnreadError("the tool call has no name, or no arguments")
    given = given.get("agent", given) if isinstance(given.get("agent", given), dict) else given
    if any(key in given for key in _KEYS):
        return given

    # a tool called action has the type among its arguments
    kind = given.get("type", name) if name == "action" else name
    return {"action": {**given, "type": kind}}


def _decoded(text: str) -> Any:
    try:
        return json.loads(text, strict=False, object_pairs_hook=_pairs)
    except ValueError:
        raise _UnreadError("the arguments of the tool call are not JSON") from None
