"""The memory of an agent, from a hundred memories to a hundred thousand."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from prism.cognition import Memory
from tests.benchmarks.harness import FULL, Claim, Effort, Measurement, Table

_SIZES = (100, 1_000, 10_000, 100_000)
_WORDS = 5_000
_WORDS_OF_A_MEMORY = 20
_WORDS_OF_A_THOUGHT = 40
_MOST = 5
_OPENINGS = 3


def run(effort: Effort) -> Sequence[Table]:
    """Measure what an agent waits for in a cycle, and what it waits for once."""
    texts = _Texts()
    sizes = _SIZES if effort.agents >= FULL.agents else _SIZES[:-1]
    found: dict[str, list[Measurement]] = {}
    with TemporaryDirectory() as folder:
        for size in sizes:
            storage = {f"memory_{number}": texts.memory() for number in range(size)}
            path = Path(folder) / f"{size}.json"
            Memory.create(path, {"storage": storage}).close()
            for title, samples in _measured(path, size, texts, effort).items():
                name = f"{size:,} in storage"
                found.setdefault(title, []).append(Measurement(name, tuple(samples)))

    return [_table(title, measurements) for title, measurements in found.items()]


class _Texts:
    """Texts whose words are as frequent as those of a language: the second half as the first."""

    def __init__(self) -> None:
        self._draw = random.Random(7)
        self._words = [f"word{number}" for number in range(_WORDS)]
        self._weights = [1 / (number + 1) for number in range(_WORDS)]

    def memory(self) -> str:
        """Return what a memory says."""
        return self._of(_WORDS_OF_A_MEMORY)

    def thought(self) -> str:
        """Return a thought to search by."""
        return self._of(_WORDS_OF_A_THOUGHT)

    def frequent(self) -> str:
        """Return the word that most memories have."""
        return self._words[0]

    def place(self, size: int) -> int:
        """Return the number of a memory."""
        return self._draw.randrange(size)

    def _of(self, number: int) -> str:
        return " ".join(self._draw.choices(self._words, self._weights, k=number))


def _measured(path: Path, size: int, texts: _Texts, effort: Effort) -> dict[str, list[float]]:
    """Return milliseconds by what was measured, one figure a turn."""
    found: dict[str, list[float]] = {}
    for _ in range(_OPENINGS):
        began = perf_counter()
        memory = Memory.open(path)
        opened = (perf_counter() - began) * 1e3
        with memory:
            found.setdefault("open the memory", []).append(opened)
            _time(found, "first search", partial(_search, memory, texts.thought()))
            for _ in range(effort.repeats // _OPENINGS):
                _cycle(memory, size, texts, found)

    return found


def _cycle(memory: Memory, size: int, texts: _Texts, found: dict[str, list[float]]) -> None:
    tag = f"memory_{texts.place(size)}"
    _time(found, "load one memory", lambda: _require(memory.load(tag)))
    _time(found, "search by a thought", partial(_search, memory, texts.thought()))
    _time(found, "search by the most frequent word", partial(_search, memory, texts.frequent()))

    memory.remove(tag)
    memory.add("said", texts.memory())
    memory.save("said")
    memory.end_cycle()
    _time(found, "commit a cycle", memory.commit)


def _time(found: dict[str, list[float]], title: str, sample: Callable[[], None]) -> None:
    began = perf_counter()
    sample()
    found.setdefault(title, []).append((perf_counter() - began) * 1e3)


def _search(memory: Memory, text: str) -> None:
    _require(len(memory.search(text, _MOST)) == _MOST)


def _require(done: bool) -> None:
    if not done:
        raise RuntimeError("the memory did not find what is in it, so its time says nothing")


def _table(title: str, measurements: list[Measurement]) -> Table:
    largest = measurements[-1]
    is_promised = "load" in title or title.startswith("search")
    claim = Claim(
        f"{title}: {largest.name}",
        largest.best,
        largest.median,
        "ms",
        at_most=10.0 if is_promised else None,
    )

    return Table(f"agent memory, {title}", "ms", measurements[0].name, measurements, [claim])
