"""Random numbers that belong to a key."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.randomness import RandomStream, total_of


def test_a_key_fixes_the_numbers() -> None:
    """A key gives the same numbers in every version, so that old runs can be repeated."""
    stream = RandomStream(7, "agent_001", 3)
    assert [round(stream.random(), 9) for _ in range(3)] == [0.155027429, 0.216134403, 0.853031054]


@pytest.mark.parametrize(
    ("key", "other"),
    [
        *(((7, "a", 3), other) for other in ((8, "a", 3), (7, "b", 3), (7, "a", 4), (7, "a"))),
        *(((7, 1, "2"), (7, 1, 2)), ((7, "a", "b"), (7, "a\x1fb"))),
        *(((7, "a", ""), (7, "a")), ((7, "1, 2"), (7, 1, 2))),
    ],
)
def test_another_key_gives_other_numbers(key: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    """A text is another key than a number, and parts of a key never run together."""
    assert RandomStream(*key).random() != RandomStream(*other).random()


def test_a_key_may_be_any_text() -> None:
    """Texts in any script are keys, and half a character, too."""
    keys = ["Zoë", "Zoe", "周", "\ud800", "\n", "'", '"']
    assert len({RandomStream(1, key).random() for key in keys}) == len(keys)


def test_numbers_are_uniform() -> None:
    """Numbers are uniform in [0, 1) over many blocks, without repetition."""
    stream = RandomStream(1)
    draws = [stream.random() for _ in range(4000)]
    tenths = [sum(int(draw * 10) == tenth for draw in draws) for tenth in range(10)]
    assert all(0.0 <= draw < 1.0 for draw in draws)
    assert len(set(draws)) == 4000
    assert all(320 < count < 480 for count in tenths)


def test_index_covers_the_whole_range() -> None:
    """Indices run from 0 to the length minus one."""
    stream = RandomStream(1)
    assert {stream.index(5) for _ in range(200)} == {0, 1, 2, 3, 4}


def test_weighted_index_follows_the_weights() -> None:
    """An index is drawn in proportion to its weight, and never at weight zero."""
    stream = RandomStream(1)
    draws = [stream.weighted_index([0.0, 3.0, 0.0, 1.0, 0.0]) for _ in range(4000)]
    assert set(draws) == {1, 3}
    assert 2850 < draws.count(1) < 3150


def test_a_total_of_weights_is_the_same_on_every_python() -> None:
    """Weights are added from left to right, without what `sum` makes up for since Python 3.12."""
    assert total_of([0.1] * 10) == 0.9999999999999999
    assert total_of(iter((0.5, 0.25))) == 0.75
    assert total_of([]) == 0


@given(st.integers(1, 30), st.data())
def test_numbers_that_are_put_back_are_drawn_again(taken: int, data: st.DataObject) -> None:
    """Numbers that are put back, in any order, are drawn again first and in their own order."""
    stream, expected = RandomStream(1, "a1"), RandomStream(1, "a1")
    drawn = [stream.take() for _ in range(taken)]
    numbers = [expected.random() for _ in range(taken + 10)]
    assert [number for _, number in drawn] == numbers[:taken]
    back = data.draw(st.lists(st.sampled_from(range(taken)), unique=True))
    for place in back:
        stream.put_back(drawn[place])
    again = [
        stream.random() if data.draw(st.booleans()) else stream.take()[1]
        for _ in range(len(back) + 10)
    ]
    assert again == [numbers[place] for place in sorted(back)] + numbers[taken:]


@given(seed=st.integers(), items=st.lists(st.integers(), min_size=1), number=st.integers(0, 5))
def test_items_are_drawn_from_what_is_given(seed: int, items: list[int], number: int) -> None:
    """A shuffled list has the same items, a sample some of them, and a choice is one of them."""
    stream = RandomStream(seed, "a")
    assert sorted(stream.shuffled(items)) == sorted(items)
    assert stream.choice(items) in items
    assert 2 <= stream.between(2, 3) <= 3
    assert stream.chance(1)
    assert not stream.chance(0)
    if number <= len(items):
        places = stream.sample(range(len(items)), number)
        assert len(set(places)) == number
    else:
        with pytest.raises(ValueError, match="cannot draw"):
            stream.sample(items, number)


def test_a_sample_is_the_beginning_of_a_shuffle_of_any_length() -> None:
    """Samples of a list and of what yields its items are the same, and longer ones go on."""
    items = list(range(100))
    samples = [RandomStream(1).sample(items, number) for number in (0, 3, 50, 100)]
    assert samples == [samples[-1][:number] for number in (0, 3, 50, 100)]
    assert RandomStream(1).sample(iter(items), 3) == samples[1]
    assert sorted(samples[-1]) == items


def test_every_order_is_as_likely() -> None:
    """Samples of two of three items, and shuffles of three, come in each order equally often."""
    stream = RandomStream(1)
    samples = Counter(tuple(stream.sample("abc", 2)) for _ in range(6000))
    orders = Counter(tuple(stream.shuffled("abc")) for _ in range(6000))
    for counts in (samples, orders):
        assert len(counts) == 6
        assert all(880 < count < 1120 for count in counts.values())


def test_a_sample_looks_at_what_it_draws_alone() -> None:
    """Drawing ten of a sequence reads ten of its items, however many there are."""
    read = []

    class Noted(Sequence[int]):
        def __len__(self) -> int:
            return 10**9

        def __getitem__(self, place: Any) -> Any:
            read.append(place)
            return place

    assert RandomStream(1).sample(Noted(), 10) == read
    assert len(read) == 10


def test_a_set_has_no_order_to_draw_from() -> None:
    """Shuffling a set is refused: its order is another one in every process."""
    with pytest.raises(TypeError, match="a set has a different order"):
        RandomStream(1).shuffled({1, 2})
