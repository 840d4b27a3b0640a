"""Answers in plain words: a bare option, a labelled line, a sentence that chooses."""

# ruff: noqa: RUF001 (models write signs that look like others)

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from prism.statechart.reasoner._replies._options import NEGATION, Mention, Options
from prism.statechart.reasoner._replies._remarks import (
    is_quoted,
    is_ruled_out,
    is_taken_back,
    lead_of,
    sentence_around,
)

_LABEL_TEXT = r"next[\s_\-]*state|final[\s_\-]*answer|state|answer|choice|decision|action|selection"
_LABEL = re.compile(
    rf"""^[\W_]{{0,6}} (?:(?:my|the|final|best|chosen|selected)\s+){{0,2}}
         (?:{_LABEL_TEXT}|option|status) [\W_]{{0,4}}?
         (?:\s+(?:is|would\ be|should\ be|will\ be))? [ \t]*(?:[:=→]|->) (?P<value>[^\n]*) $
      | <(?P<tag>{_LABEL_TEXT})>(?P<element>[^<]*)</(?P=tag)>
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)

_CHOOSING = re.compile(
    r"""(?: \b(?:I|we)(?:'d|'ll|'m|\ would|\ will|\ am|\ have|\ shall|'ve)?
            (?:\ (?:\w+ly|then|thus|therefore))?
          | \bthe\ (?:agent|user)\ (?:would|will|should) | \blet's )
        \ (?: (?:choose|chose|chosen|choosing|decide|decided)(?:\ to|\ on|\ for)?
            | pick(?:ed)?|select(?:ed)?|go(?:ing)?\ (?:with|for)|went\ with|opt(?:ed)?\ for
            | settle(?:d)?\ (?:on|for)|prefer|(?:move|switch|transition)\ to )
        (?:\ the)?(?:\ (?:next\ )?(?:state|option|action))?:?\s*
      | \b(?:(?:my|the)\ )?
          (?:next[\ _]state|answer|choice|decision
            |(?:best|right|preferred|my)\ (?:option|state|action))
        \ (?:is|would\ be|should\ be|will\ be):?\s*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_DECORATION = re.compile(r"[*_`'\"(\[]*")
_ENDS_CHOICE = re.compile(
    r"[*_`'\")\]]*(?:\s*$|\s*[.!,;:\n—–(]|\s+-|\s+(?:because|since|as|over|rather|instead|for|given|"
    r"here|now|state)\b)",
    re.IGNORECASE,
)
_NOT_MINE = re.compile(
    r"\b(?:if|unless|whether|said|says|told|tells|wrote|asked|asks|maybe|perhaps|might|could|"
    r"almost|about to|used to|or|wrong|incorrect|invalid|bad|mistake)\b|\?",
    re.IGNORECASE,
)
_PASSED_OVER = re.compile(
    r"(?:\bover|\brather than|\binstead of|\bnot|\bthan)\s+(?:the\s+)?[*_`'\"]*$", re.IGNORECASE
)
_BOXED = re.compile(r"\$*\\boxed\{(?:\\text\{)?([^{}]*)\}?\}\$*")


def claims_in(text: str, options: Options) -> Iterator[Mention]:
    """Yield where a text says which option it chooses, in labelled lines and in sentences."""
    for label in _LABEL.finditer(text):
        value = label["element"] if label["value"] is None else label["value"]
        if not value.strip() and label["value"] is not None:
            value = text[label.end() :].lstrip().partition("\n")[0]

        option = options.named(value)
        if option is not None:
            is_label = not any(options.mentions(value))
            yield Mention(label.start(), label.end(), option, is_label)

    mentions = {mention.start: mention for mention in options.mentions(text)}
    for choosing in _CHOOSING.finditer(text):
        decoration = _DECORATION.match(text, choosing.end())
        assert decoration is not None  # it may be empty
        place = decoration.end()
        mention = mentions.get(place) or options.labels.chosen(text, place)
        if mention is not None and _is_meant(text, choosing.start(), mention):
            yield Mention(choosing.start(), mention.end, mention.option, mention.is_label)


def read_words(text: str, options: Options) -> Any | None:
    """Return the option that a reply without JSON chooses; None if a reader could doubt it."""
    text = _BOXED.sub(r"\1", text).replace("\\_", "_")
    option = options.spelled(text)
    if option is not None:
        return option
    if is_taken_back(text):
        return None

    mentions = list(options.mentions(text))
    claims = list(claims_in(text, options))
    if claims:
        if any(claim.is_label for claim in claims):
            mentions += options.labels.anywhere(text)
        return _claimed(text, claims, mentions)

    found = _first_or_last(text, options)
    # an answer that is a label alone stands beside other labels
    named = {mention.option for mention in mentions or options.labels.anywhere(text)}

    return found if named == {found} else None


def _claimed(text: str, claims: list[Mention], mentions: list[Mention]) -> Any | None:
    """Return the option that all claims name, unless another one is named after them."""
    option = claims[0].option
    if any(claim.option != option for claim in claims):
        return None

    said_until = max(claim.end for claim in claims)
    others = [
        mention
        for mention in mentions
        if mention.start >= said_until
        and mention.option != option
        and not _PASSED_OVER.search(text[max(0, mention.start - 40) : mention.start])
    ]

    return None if others else option


def _first_or_last(text: str, options: Options) -> Any | None:
    """Return the option that stands alone at the beginning or at the end."""
    lines = text.strip().splitlines()
    first = options.named(lines[0]) if lines else None
    if first is not None or len(lines) < 2:
        return first

    last = lines[-1]
    lead = lead_of(text.rstrip()[: -len(last.rstrip())])

    return None if is_ruled_out(lead) or is_quoted(lead) else options.named(last)


def _is_meant(text: str, start: int, mention: Mention) -> bool:
    """Return True if a sentence that chooses is meant so, and ends or goes on with its reason."""
    if not _ENDS_CHOICE.match(text, mention.end):
        return False

    begin, end = sentence_around(text, start, mention.end)
    lead = text[begin:start]
    if is_quoted(lead) or is_ruled_out(lead):
        return False

    whole = text[begin : mention.start] + text[mention.end : end]

    return not NEGATION.search(whole) and not _NOT_MINE.search(whole)
