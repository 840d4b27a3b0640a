"""The letters and numbers under which the prompt of a step offers its keys."""

# ruff: noqa: RUF001 (people write signs that look like others)

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from prism.statechart.reasoner._replies._names import Names, plain_text

_MARKER = r"(?P<label>[A-Za-z]|\d{1,2})[*_]{0,2}\s*(?:[).:=\]]|->|→|\s[-–—](?=\s))"
_LABEL_ENDS = re.compile(
    rf"(?:^|[\s(\[*_\"'`>])(?:option\s+)?{_MARKER}[\s*_\"'`(\[]*$", re.IGNORECASE
)
_LINE = re.compile(
    rf"""^[\s\-*•(\[_]{{0,9}}(?:option\s+)?{_MARKER}
         [^\n]* (?:[(\[→=:]|->) [\s*_"'`]* (?P<last>[^\n()\[\]→=:>]+?) [)\]\s*_"'`.;,]*$""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_FIRST = frozenset("aA01")
_LEAST = 2
_MOST_BEFORE = 30


def offered_labels(prompt: str, keys: Sequence[str]) -> dict[str, str]:
    """Return the keys that a prompt offers under letters or numbers, by these.

    The key stands behind its label, or at the end of the label's line in brackets or behind a sign:
    ``A) CONTINUE - keep working``, ``Choose (a) continue or (b) pivot``, ``1. Move on (ship)``.
    Labels are those of a list that begins with A, 0 or 1 and offers two keys or more; one that two
    keys have, or that is a key itself, is left out.

    Args:
        prompt: The prompt.
        keys: The keys.
    """
    names, plain = Names(keys), plain_text(prompt)
    found: dict[str, set[str]] = {}
    for label, key in _before_keys(plain, names):
        found.setdefault(label, set()).add(key)
    for label, key in _in_lines(plain, names):
        found.setdefault(label, {key})

    if len(set().union(*found.values())) < _LEAST or not _FIRST.intersection(found):
        return {}

    folded = [label.casefold() for label in found]

    return {
        label: next(iter(named))
        for label, named in found.items()
        if len(named) == 1 and folded.count(label.casefold()) == 1 and names.spelled(label) is None
    }


def _before_keys(plain: str, names: Names) -> Iterator[tuple[str, str]]:
    for mention in names.mentions(plain):
        before = _LABEL_ENDS.search(plain[max(0, mention.start - _MOST_BEFORE) : mention.start])
        if before is not None:
            yield before["label"], mention.option


def _in_lines(plain: str, names: Names) -> Iterator[tuple[str, str]]:
    for line in _LINE.finditer(plain):
        key = names.spelled(line["last"])
        if key is not None:
            yield line["label"], key
