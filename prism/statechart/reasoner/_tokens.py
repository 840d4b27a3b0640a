"""Estimating the number of tokens in a text without a tokenizer.

The figures are fitted so that the estimate is rarely below the largest of seven real tokenizers;
`tests/benchmarks/tokens.py` measures how it compares with each of them.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable

TokenCounter = Callable[[str], int]
"""Returns the number of tokens of a text, or more; never fewer if a limit must hold."""

# ASCII letters: a word, each part of camelCase for itself, and what it has beyond four letters
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_SHORT = 4
_PER_WORD = 0.8
_PER_FURTHER_LETTER = 0.5

# a word in capital letters is rare to a tokenizer, so that it is cut into pieces
_CAPITALS = re.compile(r"[A-Z]{3,}")
_PER_CAPITAL = 0.25

# words are rarer to a tokenizer in a line that holds letters with accents
_ACCENTED_LINE = re.compile(r"^[^\n]*[\u00c0-\u024f\u1e00-\u1eff][^\n]*", re.MULTILINE)
_PER_ACCENTED_WORD = 0.3
_PER_FURTHER_ACCENTED_LETTER = 0.3

# letters among digits, as in a digest, make no words, and neither does a run without an end
_LONG_RUN = re.compile(r"[A-Za-z0-9]{8,}")
_LETTER = re.compile(r"[A-Za-z]")
_PER_MIXED_LETTER = 0.4
_ENDLESS_RUN = re.compile(r"[A-Za-z]{24,}")
_PER_ENDLESS_LETTER = 0.4

# a line that is drawn; what is left of it is one sign
_RULER = re.compile(r"([=*#_.~+-])\1{7,}")
_PER_RULER_SIGN = 0.25

_RUNS: tuple[tuple[re.Pattern[str], float, float], ...] = (
    (re.compile(r"[0-9]+"), 1.0, 1.0),
    (re.compile("[ ](?=[0-9\U00010000-\U0010ffff])"), 1.0, 0.0),
    (re.compile(r"\n+"), 1.3, 0.9),
    (re.compile(r"\t+"), 1.3, 0.9),
    (re.compile(r"  +"), 0.5, 0.08),
    (re.compile(r"[!-/:-@\[-`{-~]+"), 1.0, 0.2),
    (re.compile(r"[!-/:-@\[-`{-~]{4,}"), 0.0, 0.3),
    (re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+"), 1.0, 1.0),
)
"""Runs of ASCII characters: what the first and each further character of a run costs."""

_PER_CHARACTER: tuple[tuple[int, float], ...] = (
    (0x80, 1.8),  # signs
    (0xC0, 1.5),  # letters with accents
    (0x250, 2.0),
    (0x370, 1.2),  # Greek
    (0x400, 0.68),  # Cyrillic
    (0x460, 2.0),
    (0x530, 2.1),  # Armenian
    (0x590, 1.25),  # Hebrew
    (0x600, 1.2),  # Arabic
    (0x700, 3.0),
    (0x900, 1.35),  # Devanagari
    (0x980, 1.4),  # Bengali
    (0xA00, 2.5),  # Gurmukhi, Gujarati, Oriya
    (0xB80, 1.6),  # Tamil
    (0xC00, 2.35),  # Telugu, Kannada, Malayalam
    (0xD80, 3.1),  # Sinhala
    (0xE00, 1.1),  # Thai
    (0xE80, 2.9),  # Lao, Tibetan, Burmese
    (0x10A0, 2.1),  # Georgian
    (0x1100, 2.9),  # Ethiopic, Khmer and others
    (0x1E00, 1.5),  # letters with accents: Vietnamese
    (0x1F00, 2.5),  # Greek with accents
    (0x2000, 3.0),
    (0x2010, 1.8),  # dashes, quotation marks
    (0x2027, 2.8),  # arrows, frames, symbols
    (0x3000, 0.9),  # East Asian punctuation
    (0x3003, 2.8),
    (0x3008, 0.9),
    (0x3012, 2.8),
    (0x3040, 1.15),  # kana
    (0x3100, 3.0),
    (0x4E00, 1.6),  # Chinese characters
    (0xA000, 3.0),
    (0xAC00, 2.1),  # Hangul: Llama 2 has few syllables, and writes the others as bytes
    (0xD7B0, 3.0),
    (0xFB50, 1.2),  # Arabic forms
    (0xFE00, 3.0),
    (0xFE70, 1.2),  # Arabic forms
    (0xFF00, 0.9),  # full-width punctuation
    (0xFF10, 2.8),
    (0xFF1A, 0.9),
    (0xFF20, 2.8),
    (0x10000, 4.0),  # emoji, and whatever is rare
)
"""Tokens per character beyond ASCII, from each code point up to the next."""

_STARTS = [start for start, _ in _PER_CHARACTER]


def count_tokens(text: str) -> int:
    """Estimate the number of tokens in a text, rather too high than too low.

    It needs no tokenizer and takes linear time. No text has more tokens than bytes, and neither
    does the estimate.

    Args:
        text: The text, in any language.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    rulers = sum(match.end() - match.start() for match in _RULER.finditer(text))
    rest = _RULER.sub(r"\1", text) if rulers else text
    estimate = (
        rulers * _PER_RULER_SIGN
        + _of_words(_WORD.findall(rest), _PER_WORD, _PER_FURTHER_LETTER)
        + _PER_CAPITAL * sum(map(len, _CAPITALS.findall(rest)))
        + _of_accented_lines(rest)
        + _of_unusual_runs(rest)
        + sum(_of_runs(pattern.findall(rest), *costs) for pattern, *costs in _RUNS)
        + _of_characters(rest)
    )

    # one more: what some tokenizers put before a text
    return min(math.ceil(estimate), size) + bool(text)


def _of_words(words: Iterable[str], per_word: float, per_further: float) -> float:
    lengths = Counter(map(len, words))
    return sum(
        number * (per_word + per_further * max(0, length - _SHORT))
        for length, number in lengths.items()
    )


def _of_accented_lines(text: str) -> float:
    if text.isascii():
        return 0.0

    words = _WORD.findall("\n".join(_ACCENTED_LINE.findall(text)))
    return _of_words(words, _PER_ACCENTED_WORD, _PER_FURTHER_ACCENTED_LETTER)


def _of_unusual_runs(text: str) -> float:
    mixed = [run for run in _LONG_RUN.findall(text) if not run.isalpha() and not run.isdigit()]
    letters = len(_LETTER.findall("".join(mixed)))
    endless = sum(map(len, _ENDLESS_RUN.findall(text)))

    return letters * _PER_MIXED_LETTER + endless * _PER_ENDLESS_LETTER


def _of_runs(runs: list[str], first: float, further: float) -> float:
    return first * len(runs) + further * (sum(map(len, runs)) - len(runs))


def _of_characters(text: str) -> float:
    if text.isascii():
        return 0.0

    return sum(
        number * _PER_CHARACTER[bisect(_STARTS, ord(character)) - 1][1]
        for character, number in Counter(text).items()
        if not character.isascii()
    )
