"""The estimate of tokens, held to counts that real tokenizers gave."""

import json
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.cognition import Config, count_tokens
from prism.cognition._prompts import Seen, build_prompt
from tests.kit.texts import ANY

SAMPLES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "cognition" / "token_counts.json").read_text("utf-8")
)
"""Texts of many kinds, each with the counts of seven tokenizers."""

MEGABYTE = 1_000_000


def test_an_estimate_is_hardly_ever_below_the_largest_count() -> None:
    """Whatever the text is, no tokenizer has more than a tenth above the estimate."""
    for sample in SAMPLES:
        assert count_tokens(sample["text"]) >= 0.9 * max(sample["tokens"].values()), sample["kind"]


def test_estimates_are_no_larger_than_they_need_be() -> None:
    """Half of them are within a quarter of the largest count, of prose all within about a half."""
    shares = [count_tokens(item["text"]) / max(item["tokens"].values()) for item in SAMPLES]
    assert 1 <= median(shares) <= 1.25
    assert sorted(shares)[-2] < 1.55


@pytest.mark.parametrize("name", list(SAMPLES[0]["tokens"]))
def test_a_prompt_of_all_samples_is_not_underestimated(name: str) -> None:
    """Over a whole memory errors even out: the estimate is above every tokenizer's count."""
    real = sum(sample["tokens"][name] for sample in SAMPLES)
    assert real <= sum(count_tokens(sample["text"]) for sample in SAMPLES) <= 2 * real


@given(st.text(ANY))
def test_an_estimate_is_between_nothing_and_the_bytes(text: str) -> None:
    """No text has more tokens than bytes, one that begins it aside; none has none."""
    size = len(text.encode("utf-8", "surrogatepass"))
    assert bool(text) <= count_tokens(text) <= size + 1
    assert count_tokens("") == 0


@given(
    st.text(ANY), st.sampled_from([" ", "\n", "a", "{", "=", "-|", "1", "é", "\U0001f642", "字"])
)
def test_repeating_a_text_costs_in_proportion(text: str, unit: str) -> None:
    """No run of anything is nearly free: a thousand of it are at least fifty tokens."""
    assert count_tokens(text + unit * 1000) >= 50


@given(st.dictionaries(st.text(ANY, max_size=5), st.text(ANY, max_size=50), min_size=1, max_size=5))
def test_a_memory_less_makes_a_prompt_smaller(working: dict[str, str]) -> None:
    """Paging makes room: without one of its memories a prompt has fewer tokens."""
    whole = build_prompt(Config(), "thinking", Seen(working)).tokens
    for tag in working:
        rest = {other: value for other, value in working.items() if other != tag}
        assert build_prompt(Config(), "thinking", Seen(rest)).tokens < whole


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    ["word ", "a", "A", "aB", "1", "a1", " ", "\n", "\t", "{", "=", "==========x", "-a", "é", "é\n",
     "字", "\U0001f642", "\ud800", "\x00", "a\n", "<a>\n", "aaaaaaaaaaaaaaaaaaaaaaaa "],
)  # fmt: skip
def test_a_megabyte_is_counted_in_well_under_a_second(unit: str) -> None:
    """Time grows with the text and with nothing else, whatever the text is made of."""
    text = unit * (MEGABYTE // len(unit))
    began = process_time()
    count_tokens(text)
    assert process_time() - began < 1.0
