"""A reader of prompts with a few rules: it chooses and writes only from the prompt.

It knows only the given text. If a server cuts something off, or a prompt omits it or words it
badly, it is missing from the answers, as it would be from a model's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_OPTION = re.compile(
    r"^[ \t]*(?P<mark>[-*•]|[A-Z][:.)]|\d+[.)])[ \t]+(?P<name>\w[\w -]*?)"
    r"(?:[ \t]*(?::|\(| - )[ \t]*(?P<means>.*?)\)?)?[ \t]*$"
)
"""A line with an option: ``- resting: Take a break``, ``B: resting (Take a break)``."""

_WORD = re.compile(r"[^\W\d_]{3,}")
_SENTENCE = re.compile(r"[^.!?\n]+")
_LIMIT = re.compile(r"(?:at most|up to|no more than|under|within) (\d+) (character|word)", re.I)
_KEY = re.compile(r'\{\s*"(\w+)"\s*:')
_TAG = re.compile(r"</?[A-Za-z][^<>\n]*>")
_ENDINGS = ("ing", "ies", "ed", "es", "ly", "s")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COMMON = _words(
    "about after all also and any are because been before below but can choose currently did does "
    "each event everything few first following for from had has have how into its json just least "
    "like more most much must next not now occurred one only option options other out over own "
    "post reason received respond sentence she should some state such than that the their them "
    "then there these they this those told topics was were what when where which who will with "
    "would you your personality interests user social media"
)
"""Words that do not tell what a prompt is about."""

_ACTS = _words(
    "accept act answer ask buy closely comment compos engag evaluat help join look react reply "
    "reshar respon shar speak talk tell vaccinat writ"
)
"""Stems of words for what an interested person does."""

_RESTS = _words("break continu declin ignor idl leav noth pass refus rest scroll skip stop wait")
"""Stems of words for what an uninterested person does."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option in a prompt.

    Args:
        answer: Its form in an answer: its letter or its name.
        name: Its name.
        means: Its meaning according to the prompt; empty if there is none.
    """

    answer: str
    name: str
    means: str


@dataclass(frozen=True)
class Reading:
    """The content of a prompt for a reader with rules.

    Args:
        text: The prompt, or the rest of it.
    """

    text: str

    @cached_property
    def options(self) -> Sequence[Option]:
        """Its options: the last list of two or more lines; empty if there is no list."""
        lists: list[list[Option]] = [[]]
        for line in self.text.splitlines():
            found = _OPTION.match(line)
            if found is None:
                lists.append([])
                continue

            name, mark = found["name"].strip(), found["mark"]
            answer = mark[0] if mark[0].isupper() else name
            lists[-1].append(Option(answer, name, found["means"] or ""))

        return next((each for each in reversed(lists) if len(each) > 1), [])

    @cached_property
    def themes(self) -> Sequence[str]:
        """Words that several paragraphs share, such as interest and post, most common first."""
        counts: Counter[str] = Counter()
        for paragraph in self._paragraphs:
            counts.update(set(_stems(paragraph)))

        # of equally common ones, the first in the text: sets have no fixed order
        shared = [stem for stem in dict.fromkeys(_stems(self._rest)) if counts[stem] > 1]
        shared.sort(key=lambda stem: -counts[stem])
        return [self._spelled(stem) for stem in shared]

    @cached_property
    def subjects(self) -> Sequence[str]:
        """Its themes, or else the words that it repeats most."""
        commonest = Counter(_stems(self._rest)).most_common(3)
        return self.themes or [self._spelled(stem) for stem, _ in commonest]

    def choose(self) -> Option | None:
        """Return the option that the prompt favours; None if there are no options.

        Words that an option shares with the rest of the prompt count for it, and so do themes, if
        the option is to do something. Each occurrence of its name elsewhere, for example among the
        reader's latest actions, counts against it. Of equal options, the first is taken.
        """
        return max(self.options, key=self.speaks_for, default=None)

    def speaks_for(self, option: Option) -> float:
        """Return how much the prompt favours an option."""
        stems = _stems(f"{option.name} {option.means}")
        shared = len(set(stems) & set(_stems(self._rest)))
        repeated = len(re.findall(rf"\b{re.escape(option.name)}\b", self._rest, re.I))

        # "Continue browsing without engaging" is no way to engage: the first word counts
        kind = next((stem for stem in stems if stem in _ACTS or stem in _RESTS), "")
        interest = min(3.0, len(self.themes)) if kind in _ACTS else 0.0
        if kind in _RESTS and not self.themes:
            interest = 1.5

        return shared + interest - repeated

    def write(self, most_words: int = 60) -> str:
        """Return a text on the prompt's subjects, within the limit that the prompt names."""
        subjects = " and ".join(self.subjects[:2]) or "nothing in particular"
        text = f"What I keep thinking about is {subjects}. {self._sentence_about_subject()}".strip()

        for number, unit in _LIMIT.findall(self.text):
            if unit == "word":
                most_words = min(most_words, int(number))
            else:
                text = text[: int(number)]

        return " ".join(text.split()[:most_words])

    def fill(self, schema: Mapping[str, Any], name: str = "") -> Any:
        """Return an answer from the prompt that a JSON schema allows.

        Args:
            schema: The schema.
            name: The answer's name in the schema around it, if there is one.
        """
        if "const" in schema:
            return schema["const"]
        if values := schema.get("enum"):
            return self._among(values, name)
        if either := schema.get("anyOf") or schema.get("oneOf"):
            return self.fill(either[0], name)

        return self._fill_kind(schema.get("type", "object" * ("properties" in schema)), schema)

    def _fill_kind(self, kind: Any, schema: Mapping[str, Any]) -> Any:
        match kind:
            case "object":
                members = schema.get("properties", {})
                return {name: self.fill(member, name) for name, member in members.items()}
            case "array":
                items = schema.get("items", {})
                return [self.fill(items) for _ in range(max(1, schema.get("minItems", 1)))]
            case "integer":
                return int(self._number(schema))
            case "number":
                return self._number(schema)
            case "boolean":
                return bool(self.themes)
            case "null":
                return None
            case _:
                return self.write()[: schema.get("maxLength", 200)]

    @property
    def key_of_answer(self) -> str | None:
        """The key of the JSON that the prompt asks for; None if it asks for none."""
        found = _KEY.findall(self.text)
        return found[-1] if found else None

    def _among(self, values: Sequence[Any], name: str) -> Any:
        """Return the value that the prompt favours, or else shows; the first if it has none."""
        offered = {
            value: option
            for option in self.options
            for value in values
            if value == option.answer or str(value).casefold() == option.name.casefold()
        }
        if offered:
            return max(offered, key=lambda value: self.speaks_for(offered[value]))

        # without a list to choose from, models do what the example of an answer does
        shown = re.findall(rf'(?:<{name}>|"{name}":)\s*"?([\w-]+)', self.text) if name else ()
        return next((each for each in reversed(shown) if each in values), values[0])

    def _number(self, schema: Mapping[str, Any]) -> float:
        least, most = schema.get("minimum", 0), schema.get("maximum", 100)
        found = next(iter(re.findall(r"\d+(?:\.\d+)?", self.text)), least)
        return float(min(max(float(found), least), most))

    @cached_property
    def _paragraphs(self) -> Sequence[str]:
        """Its paragraphs without the options and the instructions for the answer."""
        offered = {option.name for option in self.options}
        kept = []
        for paragraph in re.split(r"\n\s*\n", _TAG.sub("", self.text)):
            lines = [line for line in paragraph.splitlines() if _tells(line, offered)]
            kept.append("\n".join(lines))

        return [paragraph for paragraph in kept if paragraph.strip()]

    @cached_property
    def _rest(self) -> str:
        return "\n".join(self._paragraphs)

    def _spelled(self, stem: str) -> str:
        found = re.search(rf"\b{re.escape(stem)}\w*", self._rest, re.I)
        return found[0].lower() if found else stem

    def _sentence_about_subject(self) -> str:
        subject = next(iter(self.subjects), "")
        sentences: Iterator[str] = (one.strip() for one in _SENTENCE.findall(self._rest))
        found = [one for one in sentences if subject and subject in one.lower()]
        return f"{found[-1]}." if found else ""


def _tells(line: str, offered: set[str]) -> bool:
    """Return False for a line with an option or with instructions for the answer."""
    found = _OPTION.match(line)
    is_offer = found is not None and found["name"].strip() in offered
    return not is_offer and "JSON" not in line and '{"' not in line


def _stems(text: str) -> list[str]:
    words = (word.lower() for word in _WORD.findall(text.replace("_", " ")))
    return [_stem(word) for word in words if word not in _COMMON]


def _stem(word: str) -> str:
    ending = next((one for one in _ENDINGS if word.endswith(one) and len(word) > len(one) + 2), "")
    stem = word.removesuffix(ending)
    return stem.removesuffix("e") if len(stem) > 3 else stem
