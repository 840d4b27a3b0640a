"""Which option a text names: in the spellings that models use, or by its letter or number."""

# ruff: noqa: RUF001 (models write signs that look like others)

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any
from unicodedata import normalize

from prism.statechart.reasoner._replies._objects import CutText
from prism.statechart.states import state_text

MOST_NAME_CHARACTERS = 380
"""How long a text that names an option may be, beyond the longest option."""

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_APOSTROPHE = re.compile("[’‘ʼ`´]")
_IN_WORDS = re.compile(r"(?<=[^\W_])[\s_\-']+(?=[^\W_])")
DECORATION = r"[^\w?!❌✗✘🚫⛔~{}|/\uFFFC]*_*"
_BEFORE = re.compile(
    rf"""{DECORATION} (?: (?:\d{{1,2}}[.)]|[a-z][).:]) \s+ {DECORATION} )?
      (?: (?:the\s+)? (?:next[\s_]*)? state\s*[:=] | the\s )? {DECORATION}
      (?: (?:\w*_)?(?:state|states|option|choice|action)\. | \w+State\. )? {DECORATION}""",
    re.VERBOSE | re.IGNORECASE,
)
_AFTER = re.compile(rf"(?:{DECORATION}!*)*?(?:\s+state)?{DECORATION}!*{DECORATION}", re.IGNORECASE)
_LABEL_BEFORE = r"(?:(?:option|choice|letter|number|no\.)\s+|[#$])?[(\[*]*"


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in a text where an option is named.

    Args:
        start: Where it begins.
        end: Where it ends.
        option: The option; None where several are spelled so.
        is_label: Whether it is named by its label alone.
    """

    start: int
    end: int
    option: Any
    is_label: bool = False


class Names:
    """The options of a question, by the texts that can name them.

    In prose a letter is a word, too, and a number an amount: a label counts only where a text
    consists of it or chooses it.

    Args:
        options: The states to choose from.
        labels: Options by the letters or numbers under which they were offered.

    Attributes:
        texts: The options by their texts.
    """

    def __init__(self, options: Sequence[Any], labels: Mapping[str, Any] | None = None) -> None:
        self.texts: dict[str, Any] = {state_text(option): option for option in options}
        # the name of a member counts with its class before it only: its value is its text
        members = [option for option in options if isinstance(option, Enum)]
        self._spellings = dict(self.texts) | {
            f"{type(member).__name__}.{member.name}": member for member in members
        }
        self._mention = _any_whole(tuple(self._spellings))
        self._longest = max(map(len, self.texts), default=0)
        self._labels = {label.casefold(): option for label, option in (labels or {}).items()}
        self._label, self._label_apart = _label_patterns(tuple(labels or ()))

    def spelled(self, given: str) -> Any | None:
        """Return the one option that a text consists of, if not for signs around it."""
        if given in self.texts and not isinstance(given, CutText):
            return self.texts[given]
        if len(given) > self._longest + MOST_NAME_CHARACTERS:
            return None

        plain = plain_text(given)
        before = _BEFORE.match(plain)
        place = before.end() if before else 0
        for start in (place, 0):
            mention = self.at(plain, start)
            if mention is not None and _AFTER.fullmatch(plain, mention.end):
                return None if self._is_doubtful(given, plain, mention) else mention.option

        return None

    def at(self, plain: str, place: int) -> Mention | None:
        """Return the option or the label that is named at a place of a text."""
        found = self._mention.match(plain, place)
        if found is not None:
            return Mention(place, found.end(), self._of_spelling(found[0]))

        label = self._label.match(plain, place)
        if label is None:
            return None

        return Mention(place, label.end(), self._labels[label[1].casefold()], is_label=True)

    def mentions(self, plain: str, *, with_labels: bool = False) -> Iterator[Mention]:
        """Yield where a text that `plain_text` returned names options, the longest first."""
        for found in self._mention.finditer(plain):
            yield Mention(found.start(), found.end(), self._of_spelling(found[0]))
        for found in self._label_apart.finditer(plain) if with_labels else ():
            yield Mention(*found.span(), self._labels[found[1].casefold()], is_label=True)

    def without(self, plain: str) -> str:
        """Return a text without the options that it names."""
        return self._mention.sub(" ", plain)

    def _of_spelling(self, text: str) -> Any | None:
        """Return the option that a text spells: as it is, in another case, or spaced otherwise."""
        for spell in (str.strip, _in_any_case, _compact):
            spelled = spell(text)
            alike = [each for name, each in self._spellings.items() if spell(name) == spelled]
            if alike:
                return alike[0] if all(each == alike[0] for each in alike) else None

        return None

    def _is_doubtful(self, given: str, plain: str, mention: Mention) -> bool:
        """Return True if a text may go on to another option, or another one's label precedes."""
        if isinstance(given, CutText):
            begun = _compact(plain[mention.start : mention.end])
            return mention.is_label or sum(_compact(it).startswith(begun) for it in self.texts) > 1

        label = None if mention.is_label else self._label.match(plain.lstrip("*_`'\"("))

        return label is not None and self._labels[label[1].casefold()] != mention.option


def plain_text(text: str) -> str:
    """Return a text in the signs in which mentions are looked for."""
    return _APOSTROPHE.sub("'", normalize("NFKC", _INVISIBLE.sub("", text))).strip()


def _in_any_case(text: str) -> str:
    return plain_text(text).casefold()


def _compact(text: str) -> str:
    return _IN_WORDS.sub("", _in_any_case(text))


@lru_cache(maxsize=256)
def _any_whole(texts: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds any of some texts as whole words; the longest wins."""
    longest = sorted(texts, key=len, reverse=True)
    return re.compile("|".join(map(_whole, longest)) or r"(?!)", re.IGNORECASE)


def _whole(text: str) -> str:
    """Return a pattern of a text as whole words, spaced and joined as models do."""
    words = [re.escape(word) for word in re.split(r"[\s_\-']+", plain_text(text)) if word]
    body = r"[\s_\-']{0,3}".join(words) or re.escape(text)
    before = r"(?<![\w.\-])" if text[:1].isdigit() else r"(?<![^\W_])" if text[:1].isalpha() else ""
    after = r"(?![^\W_]|[.,]\d)" if re.search(r"[^\W_]$", text) else ""
    return f"{before}{body}{after}"


@lru_cache(maxsize=256)
def _label_patterns(labels: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what finds a label at the place where one is chosen, and what finds one anywhere."""
    either = "|".join(map(re.escape, sorted(labels, key=len, reverse=True))) or r"(?!)"
    return (
        re.compile(rf"{_LABEL_BEFORE}({either})(?![^\W_]|\.\d)", re.IGNORECASE),
        re.compile(rf"(?<![^\W_])({either})(?![^\W_])"),
    )
