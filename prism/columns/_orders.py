"""Orders in compiled code: sorting by places, and a heap of latecomers."""

from __future__ import annotations

from typing import Any

import numpy as np

from prism.columns import _world as W  # noqa: N812

# The kernel begins here

MOST_BITS = 20
AHEAD = 12


def fetch_ahead(run: Any, number: int, count: int) -> None:
    """Prefetch the memory that the next turns will read."""
    agent = W.get_i4(run.acts, min(number + AHEAD, count - 1))
    W.fetch(run.agents + agent * W.AGENT_SIZE)
    if run.has_network:
        W.fetch(run.offsets + 8 * agent)
        sooner = W.get_i4(run.acts, min(number + AHEAD // 2, count - 1))
        W.fetch(run.neighbours + 4 * W.get_i8(run.offsets, sooner))


def sort(run: Any, count: int, keys: int, items: int) -> None:
    """Sort items by evenly distributed 64-bit keys; the sort is stable."""
    bits = 0
    while bits < MOST_BITS and (1 << bits) < count:
        bits += 1
    if bits > 4:
        scatter(run, count, keys, items, bits)

    for each in range(1, count):
        key, item, place = W.get_u8(keys, each), W.get_i4(items, each), each
        while place > 0 and W.get_u8(keys, place - 1) > key:
            W.put_u8(keys, place, W.get_u8(keys, place - 1))
            W.put_i4(items, place, W.get_i4(items, place - 1))
            place -= 1
        W.put_u8(keys, place, key)
        W.put_i4(items, place, item)


def scatter(run: Any, count: int, keys: int, items: int, bits: int) -> None:
    """Distribute items over about as many buckets, by the first bits of their keys."""
    buckets, shift = run.buckets, np.uint64(64 - bits)
    spare_keys, spare_items = run.spare_keys, run.spare_items
    for each in range((1 << bits) + 1):
        W.put_i4(buckets, each, 0)
    for each in range(count):
        key = W.get_u8(keys, each)
        bucket = np.int64(key >> shift) + 1
        W.put_i4(buckets, bucket, W.get_i4(buckets, bucket) + 1)
        W.put_u8(spare_keys, each, key)
        W.put_i4(spare_items, each, W.get_i4(items, each))
    for each in range(1 << bits):
        W.put_i4(buckets, each + 1, W.get_i4(buckets, each + 1) + W.get_i4(buckets, each))
    for each in range(count):
        key = W.get_u8(spare_keys, each)
        bucket = np.int64(key >> shift)
        place = W.get_i4(buckets, bucket)
        W.put_i4(buckets, bucket, place + 1)
        W.put_u8(keys, place, key)
        W.put_i4(items, place, W.get_i4(spare_items, each))


def push(run: Any, place: Any, agent: int) -> None:
    """Add a newcomer to the agents whose turn is yet to come."""
    heap, places, at = run.heap, run.heap_places, run.newcomers
    run.newcomers = at + 1
    while at > 0 and W.get_u8(places, (at - 1) // 2) > place:
        W.put_u8(places, at, W.get_u8(places, (at - 1) // 2))
        W.put_i4(heap, at, W.get_i4(heap, (at - 1) // 2))
        at = (at - 1) // 2
    W.put_u8(places, at, place)
    W.put_i4(heap, at, agent)


def pop(run: Any) -> int:
    """Remove the newcomer whose turn is next."""
    heap, places, size = run.heap, run.heap_places, run.newcomers - 1
    run.newcomers = size
    first, agent, place, at = W.get_i4(heap, 0), W.get_i4(heap, size), W.get_u8(places, size), 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and W.get_u8(places, child + 1) < W.get_u8(places, child):
            child += 1
        if W.get_u8(places, child) >= place:
            break
        W.put_u8(places, at, W.get_u8(places, child))
        W.put_i4(heap, at, W.get_i4(heap, child))
        at = child
    W.put_u8(places, at, place)
    W.put_i4(heap, at, agent)

    return first
