"""Texts of many kinds to count the tokens of: files that are on every machine, and made ones."""

from __future__ import annotations

import base64
import json
import random
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path

from prism.cognition import Config
from prism.cognition._prompts import Seen, build_prompt

ROOT = Path(__file__).parents[2]
LENGTH = 2_000
"""Characters of a text, about."""

LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "European, Latin": ("de", "fr", "es", "it", "pl", "cs", "hu", "fi", "tr", "pt", "nl", "eu"),
    "Vietnamese": ("vi",),
    "Cyrillic": ("ru", "uk_UA", "bg", "sr", "mk"),
    "Greek": ("el",),
    "Hebrew": ("he",),
    "Arabic, Persian, Urdu": ("ar", "fa", "ur"),
    "Indian": ("hi", "hi_IN", "bn", "ta", "te", "si", "ne"),
    "Chinese": ("zh_CN", "zh_TW"),
    "Japanese": ("ja",),
    "Korean": ("ko",),
}
"""Kinds of languages, by the catalogues of messages that Sphinx ships."""

_EMOJI = "".join(map(chr, (*range(0x1F300, 0x1F650), *range(0x1F680, 0x1F6C6), 0x2705, 0x2728)))


def texts(most: int) -> dict[str, list[str]]:
    """Return texts by kind.

    Args:
        most: The most texts of a kind.
    """
    found = {kind: _cut(sources, most) for kind, sources in _sources().items()}
    return {"prompts of the agent": _prompts(found, most), **found}


def _sources() -> dict[str, Iterable[str]]:
    rng = random.Random(0)
    library = Path(sysconfig.get_path("stdlib"))
    documents = sorted((ROOT / "docs").rglob("*.md"))
    schemas = [path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.json"))]
    page = ROOT / "prism" / "report"

    return {
        "English": [*_licences(), *_read(documents)],
        "Python": _read(sorted(library.glob("*.py"))[::5]),
        "JavaScript, HTML, CSS": _read([page / "page.js", page / "page.html", page / "page.css"]),
        "JSON": [*schemas, *(json.dumps(json.loads(text)) for text in schemas)],
        "XML": _read(sorted((ROOT / "docs").rglob("*.svg"))),
        "numbers": [_numbers(rng) for _ in range(10)],
        "digests, base64": [_digests(rng) for _ in range(10)],
        "emoji": ["".join(rng.choice(_EMOJI) + rng.choice(("", " ")) for _ in range(1500))],
        **{kind: _catalogues(names) for kind, names in LANGUAGES.items()},
    }


def _cut(sources: Iterable[str], most: int) -> list[str]:
    """Return parts of texts, taken from all of them alike."""
    parts = [
        text[start : start + LENGTH]
        for text in sources
        for start in range(0, max(1, len(text) - LENGTH // 2), LENGTH)
    ]
    whole = [part for part in parts if len(part) > LENGTH // 4]
    random.Random(0).shuffle(whole)
    return whole[:most]


def _prompts(found: Mapping[str, list[str]], most: int) -> list[str]:
    """Return prompts whose memory is English for the most part, and some of everything."""
    rng = random.Random(0)
    kinds = [kind for kind in found if found[kind]]

    def value() -> str:
        text = rng.choice(found["English" if rng.random() < 0.7 else rng.choice(kinds)])
        start = rng.randrange(max(1, len(text) - 300))
        return text[start : start + rng.randint(20, 300)]

    config = Config(goal="Plan a story of ten chapters")
    return [
        build_prompt(
            config,
            rng.choice(("thinking", "executing", "paging")),
            Seen(
                {f"character_{number}_about": value() for number in range(rng.randint(0, 20))},
                {f"thinking_log_{number:03}": value() for number in range(rng.randint(0, 10))},
            ),
        ).text
        for _ in range(most)
    ]


def _read(paths: Iterable[Path]) -> Iterator[str]:
    return (path.read_text(encoding="utf-8", errors="replace") for path in paths)


def _licences() -> Iterator[str]:
    for name in ("structlog", "ollama", "orjson", "typer", "rich", "transitions"):
        for file in metadata.files(name) or ():
            if "LICENSE" in file.name:
                yield file.read_text(encoding="utf-8")


def _catalogues(names: Iterable[str]) -> Iterator[str]:
    """Yield the translated messages of each language; none without Sphinx."""
    spec = find_spec("sphinx")
    if spec is None or spec.origin is None:
        return

    read_po = import_module("babel.messages.pofile").read_po
    for name in names:
        path = Path(spec.origin).parent / "locale" / name / "LC_MESSAGES" / "sphinx.po"
        if path.is_file():
            with path.open("rb") as file:
                messages = [message.string for message in read_po(file) if message.id]
            yield "\n".join(text for text in messages if isinstance(text, str) and text)


def _numbers(rng: random.Random) -> str:
    numbers = [f"{rng.uniform(-1e4, 1e6):.{rng.randint(0, 6)}f}" for _ in range(200)]
    return "\n".join(",".join(numbers[row : row + 5]) for row in range(0, len(numbers), 5))


def _digests(rng: random.Random) -> str:
    digests = "\n".join(rng.randbytes(32).hex() for _ in range(15))
    return f"{digests}\n{base64.b64encode(rng.randbytes(750)).decode()}"
