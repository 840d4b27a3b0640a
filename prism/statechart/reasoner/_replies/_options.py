"""Which option a text names: in the spellings that models use, or by its letter or number."""

# ruff: noqa: RUF001 (models write signs that look like others)

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unicodedata import normalize

from prism.statechart.reasoner._replies._objects import CutText
from prism.statechart.reasoner._replies._remarks import is_taken_back
from prism.statechart.states import state_text


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in a text where an option is named.

    Args:
        start: Where it begins.
        end: Where it ends.
        option: The option.
        is_label: Whether it is named by its label alone.
    """

    start: int
    end: int
    option: Any
    is_label: bool = False


_BEHIND = r"(?:(?:option|choice|letter|number|no\.)\s+|\#)?\(?"
_GLOSSED = r"""(?=[)\]] | [*_`'"]{0,3} (?: \s*[:=(,–—] | \s+-+\s | [.!]\s ))"""
_ENDS = r"""(?=[*_`'")\]]* (?: \s*$ | \s*[.!,;:\n–—(] | \s+-
              | \s+(?:because|since|as|over|rather|given)\b ))"""
_WORD_FOLLOWS = re.compile(r"\s+[a-z]")
_FLAGS = re.VERBOSE | re.IGNORECASE


class Labels:
    """Which option each label stands for.

    In prose a letter is a word, too, and a number an amount: there a label counts only where a
    sentence chooses, behind the word "option", or beside an answer that is a label itself.

    Args:
        given: Options by their labels, letters or numbers, as they were offered.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._folded = {label.casefold(): option for label, option in given.items()}
        either = "|".join(map(re.escape, sorted(given, key=len, reverse=True))) or r"(?!)"
        self._alone = re.compile(rf"{_BEHIND} ({either}) [).:\]]?", _FLAGS)
        self._leading = re.compile(rf"{_BEHIND} ({either}) {_GLOSSED}", _FLAGS)
        self._chosen = re.compile(rf"{_BEHIND} ({either}) {_ENDS}", _FLAGS)
        self._called = re.compile(rf"\b(?:option|choice)\s+ [*_(]* ({either}) \b", _FLAGS)
        self._anywhere = re.compile(rf"(?<![^\W_])({either})(?![^\W_])")

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._given)

    def spelled(self, text: str) -> Any | None:
        """Return the option whose label a text is: ``B``, ``(b)``, ``option 2``, ``2.``."""
        return self._option(self._alone.fullmatch(text))

    def leading(self, text: str) -> Mention | None:
        """Return the label that a text begins with."""
        return self._mention(self._leading.match(text))

    def chosen(self, text: str, place: int) -> Mention | None:
        """Return the label at a place of a sentence that chooses, if its choice ends there."""
        return self._mention(self._chosen.match(text, place))

    def called(self, text: str) -> Iterator[Mention]:
        """Yield where a text speaks of ``option B``."""
        for found in self._called.finditer(text):
            yield Mention(found.start(), found.end(), self._folded[found[1].casefold()], True)

    def anywhere(self, text: str) -> Iterator[Mention]:
        """Yield every label in a text, as it was offered; an ``A`` that begins a clause is none."""
        for found in self._anywhere.finditer(text):
            if not _is_article(text, found):
                yield Mention(found.start(), found.end(), self._given[found[1]], True)

    def _option(self, found: re.Match[str] | None) -> Any | None:
        return None if found is None else self._folded[found[1].casefold()]

    def _mention(self, found: re.Match[str] | None) -> Mention | None:
        if found is None:
            return None
        return Mention(found.start(), found.end(), self._folded[found[1].casefold()], True)


@lru_cache(maxsize=256)
def labels_of(given: tuple[tuple[str, Any], ...]) -> Labels:
    """Return labels and their options; kept, as a prompt offers the same ones again and again."""
    return Labels(dict(given))


def _is_article(text: str, found: re.Match[str]) -> bool:
    """Return True if an ``A`` begins a sentence that goes on."""
    before = text[: found.start()].rstrip(" *_'\"")
    begins = not before or before[-1] in ".!?:\n"

    return found[0] == "A" and begins and bool(_WORD_FOLLOWS.match(text, found.end()))


MOST_NAME_CHARACTERS = 380
"""How long a text that names an option may be, beyond the longest option."""

NEGATION = re.compile(
    r"\b(?:not|no|never|neither|nor|none|cannot|nothing|anything but|except)\b|n't\b", re.IGNORECASE
)

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_APOSTROPHE = re.compile("[’‘ʼ`´]")
_BETWEEN_WORDS = re.compile(r"(?<=[^\W_])[\s_\-]+(?=[^\W_])")
_IN_WORDS = re.compile(r"(?<=[^\W_])[\s_\-']+(?=[^\W_])")

_BULLET = re.compile(r"(?:[-*•–>→]|->|\d{1,2}[.)](?=\s+\D)|\(?(?:[A-Za-z]|\d{1,2})[).:])\s+")
_ARTICLES = re.compile(
    r"(?:the\s+)?(?:(?:next[\s_]*)?state\s*[:=]\s*)?(?P<name>.+?)(?:\s+state)?", re.IGNORECASE
)
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_QUOTES = "*_`'\"«»“”‘’„"
_FULL_STOPS = ".,;:!。！．，…"
_ELEMENT = re.compile(r"<(\w{1,20})>(.*)</\1>", re.DOTALL)
_MEMBER = re.compile(r"<?([A-Za-z]\w*)\.([A-Za-z]\w*)(?::[^>]*)?>?")
_MEMBER_OF = re.compile(r"(?:\w*_)?(?:state|states|option|choice|action)|\w+State", re.IGNORECASE)
_GLOSS = re.compile(r"[*_`'\"]{0,3}(?:\s*[:(,–—]|\s+-+\s|[.!]\s)")
_DOUBT = re.compile(r"\?|\b(?:unless|maybe|perhaps|alternatively)\b", re.IGNORECASE)


class Options:
    """The options of a question, by the texts that can name them.

    Args:
        options: The states to choose from.
        key: Under which key the answer was asked for.
        labels: Options by the letters or numbers under which they were offered.

    Attributes:
        texts: The options by their texts.
        key: Under which key the answer was asked for.
        labels: Their labels.
    """

    def __init__(
        self,
        options: Sequence[Any],
        *,
        key: str = "next_state",
        labels: Mapping[str, Any] | None = None,
    ) -> None:
        self.texts: dict[str, Any] = {state_text(option): option for option in options}
        self.key: str = key
        self.labels: Labels = labels_of(tuple((labels or {}).items()))
        self._known = _spellings(tuple(self.texts))
        self._classes = {type(option).__name__.lower() for option in options}
        self._members = {getattr(option, "name", ""): option for option in options}

    def named(self, given: str) -> Any | None:
        """Return the one option that a text names and does not qualify; None if there is none."""
        found = self.spelled(given)
        return self._glossed(given) if found is None else found

    def spelled(self, given: str) -> Any | None:
        """Return the one option that a text consists of, if not for signs around it."""
        if given in self.texts and not isinstance(given, CutText):
            return self.texts[given]
        if self._is_long(given):
            return None

        for text in (given, *_undecorated(given)):
            found = self._of_spelling(text)
            if found is None:
                found = self._of_member(text)
            if found is not None:
                return None if self._is_doubtful(given, text, found) else found

        return self._labelled(given)

    def mentions(self, plain: str) -> Iterator[Mention]:
        """Yield where options are named in a text that `plain_text` returned, the longest first."""
        for found in self._known.pattern.finditer(plain):
            for text in self._known.by_compact.get(_compact(found[0]), ()):
                yield Mention(found.start(), found.end(), self.texts[text])

        yield from self.labels.called(plain)

    def _of_spelling(self, text: str) -> Any | None:
        """Return the option that a text spells: as it is, in another case, or spaced otherwise."""
        for spell, by_spelling in self._known.levels:
            alike = by_spelling.get(spell(text), ())
            if alike:
                return self.texts[alike[0]] if len(alike) == 1 else None

        return None

    def _of_member(self, text: str) -> Any | None:
        """Return the option that a text names as the member of an enum: ``AgentState.IDLE``."""
        found = _MEMBER.fullmatch(text.strip())
        if found is None:
            return None

        of, name = found.groups()
        if of.lower() not in self._classes and not _MEMBER_OF.fullmatch(of):
            return None

        member = self._members.get(name) if of.lower() in self._classes else None

        return self._of_spelling(name) if member is None else member

    def _glossed(self, given: str) -> Any | None:
        """Return the option that a text begins with, if the rest only says what it means."""
        if self._is_long(given):
            return None

        label = self._label_before(given)
        if label is not None:
            others = (*self.mentions(_plain(given)), *self.labels.anywhere(_plain(given)))
            return _meant(label.option, others, _plain(given))

        text = _undecorated_start(_plain(given))
        mentions = list(self.mentions(text))
        if not mentions or mentions[0].start > 0:
            return None

        rest = text[mentions[0].end :]

        return _meant(mentions[0].option, mentions, rest) if _GLOSS.match(rest) else None

    def _label_before(self, text: str) -> Mention | None:
        """Return the label that stands before all else in a text."""
        return self.labels.leading(_plain(text).lstrip(_QUOTES)) if self.labels else None

    def _labelled(self, given: str) -> Any | None:
        """Return the option whose label a text is; one that was cut off may have been longer."""
        if not self.labels or isinstance(given, CutText):
            return None

        found = (self.labels.spelled(text) for text in (given.strip(), *_undecorated(given)))

        return next((option for option in found if option is not None), None)

    def _is_doubtful(self, given: str, text: str, option: Any) -> bool:
        """Return True if a text may go on to another option, or another one's label precedes."""
        if isinstance(given, CutText) and self._may_go_on(text):
            return True

        label = None if given == text else self._label_before(given)

        return label is not None and label.option != option

    def _is_long(self, given: str) -> bool:
        return len(given) > self._known.longest + MOST_NAME_CHARACTERS

    def _may_go_on(self, text: str) -> bool:
        """Return True if a text that was cut off may have been the beginning of another option."""
        begun = _compact(text)
        return sum(_compact(option).startswith(begun) for option in self.texts) > 1


def _meant(option: Any, mentions: Iterable[Mention], rest: str) -> Any | None:
    """Return the option that a text begins with, if the rest only says what it means."""
    is_alone = all(mention.option == option for mention in mentions)
    is_doubtful = NEGATION.search(rest) or _DOUBT.search(rest) or is_taken_back(rest)

    return option if is_alone and not is_doubtful else None


def plain_text(text: str) -> str:
    """Return a text in the signs in which mentions are looked for."""
    return _plain(text)


@dataclass(frozen=True, slots=True)
class _Spellings:
    """The spellings of some options; kept, as a chart asks about the same few again and again."""

    levels: Sequence[tuple[Callable[[str], str], dict[str, list[str]]]]
    by_compact: dict[str, list[str]]
    pattern: re.Pattern[str]
    longest: int


@lru_cache(maxsize=256)
def _spellings(texts: tuple[str, ...]) -> _Spellings:
    levels = [
        (spell, _group(texts, spell)) for spell in (str.strip, _in_any_case, _joined, _compact)
    ]
    return _Spellings(levels, levels[-1][1], _pattern(texts), max(map(len, texts), default=0))


def _group(texts: Sequence[str], spell: Callable[[str], str]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for text in texts:
        grouped.setdefault(spell(text), []).append(text)
    return grouped


def _pattern(texts: Sequence[str]) -> re.Pattern[str]:
    """Return what finds any of the options as whole words; the longest wins."""
    either = []
    for text in sorted(texts, key=len, reverse=True):
        words = [re.escape(word) for word in re.split(r"[\s_\-]+", _plain(text)) if word]
        body = r"[\s_\-]{0,3}".join(words) or re.escape(text)
        before = r"(?<![^\W_])" if re.match(r"[^\W_]", text) else ""
        after = r"(?![^\W_])" if re.search(r"[^\W_]$", text) else ""
        either.append(f"{before}{body}{after}")

    return re.compile("|".join(either), re.IGNORECASE)


def _plain(text: str) -> str:
    return _APOSTROPHE.sub("'", normalize("NFKC", _INVISIBLE.sub("", text))).strip()


def _in_any_case(text: str) -> str:
    return _plain(text).casefold()


def _joined(text: str) -> str:
    return _BETWEEN_WORDS.sub("_", _in_any_case(text))


def _compact(text: str) -> str:
    return _IN_WORDS.sub("", _in_any_case(text))


def _undecorated(text: str) -> Iterator[str]:
    """Yield a text with ever fewer signs around it."""
    previous = None
    while text and text != previous:
        previous = text
        for strip in (_without_wrapper, _without_quotes, _without_full_stop, _without_articles):
            stripped = strip(text.strip())
            if stripped != text:
                text = stripped
                yield text


def _without_wrapper(text: str) -> str:
    element = _ELEMENT.fullmatch(text)
    if element:
        return element[2]

    if text and _PAIRS.get(text[0]) == text[-1] and not _MEMBER.fullmatch(text):
        return text[1:-1]

    return _BULLET.sub("", text, count=1) if _BULLET.match(text) else text


def _without_quotes(text: str) -> str:
    return text.strip(_QUOTES)


def _without_full_stop(text: str) -> str:
    return text.rstrip(_FULL_STOPS)


def _without_articles(text: str) -> str:
    found = _ARTICLES.fullmatch(text)
    return found["name"] if found else text


def _undecorated_start(text: str) -> str:
    bullet = _BULLET.match(text)
    return text[bullet.end() if bullet else 0 :].lstrip(_QUOTES + "([")


_MARKER = r"(?P<label>[A-Za-z]|\d{1,2})[*_]{0,2}\s*(?:[).:=\]]|->|→|\s[-–—](?=\s))"
_BEFORE = re.compile(rf"(?:^|[\s(\[*_\"'`>])(?:option\s+)?{_MARKER}[\s*_\"'`(\[]*$", re.IGNORECASE)
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
    options, plain = Options(keys), plain_text(prompt)
    found: dict[str, set[str]] = {}
    for label, key in _before_keys(plain, options):
        found.setdefault(label, set()).add(key)
    for label, key in _in_lines(plain, options):
        found.setdefault(label, {key})

    if len(set().union(*found.values())) < _LEAST or not _FIRST.intersection(found):
        return {}

    folded = [label.casefold() for label in found]

    return {
        label: next(iter(named))
        for label, named in found.items()
        if len(named) == 1
        and folded.count(label.casefold()) == 1
        and options.spelled(label) is None
    }


def _before_keys(plain: str, options: Options) -> Iterator[tuple[str, str]]:
    for mention in options.mentions(plain):
        before = _BEFORE.search(plain[max(0, mention.start - _MOST_BEFORE) : mention.start])
        if before is not None:
            yield before["label"], mention.option


def _in_lines(plain: str, options: Options) -> Iterator[tuple[str, str]]:
    for line in _LINE.finditer(plain):
        key = options.spelled(line["last"])
        if key is not None:
            yield line["label"], key
