"""An agent's life in small: what it does to its memory in one cycle follows from the cycle alone.

As a program it opens a memory, lives, and prints the number of each cycle that was committed::

    python -m tests.programs.thinking.memory.living memory.json
"""

from __future__ import annotations

import os
import sys

from prism.programs.thinking import Memory

_WORDS = ("alice", "finds", "a", "letter", "in", "the", "attic", "été", "猫")


def live(memory: Memory) -> None:
    """Do the work of one cycle, but for the commit."""
    cycle = memory.cycle
    text = " ".join(_WORDS[(cycle * step) % len(_WORDS)] for step in range(1, 2 + cycle % 40))
    memory.think(f"{cycle}: {text}", key_prefix="thinking_log_", max_entries=5)
    memory.add(f"fact {cycle % 7}", text)
    memory.save(f"saved {cycle}" if cycle % 3 else f"saved {cycle % 5}", f"{cycle} {text}")
    if cycle % 5 == 0:
        memory.page_out(memory.least_recently_used()[0])
    if cycle % 11 == 0:
        for match in memory.search(text, 2):
            memory.page_in(match.tag)
    if len(memory.working) > 9:
        memory.remove(next(iter(memory.working)))
    memory.state = ("thinking", "executing")[cycle % 2]
    memory.end_cycle()


def main(path: str) -> None:
    """Live until killed."""
    with Memory.open(path) as memory:
        while True:
            live(memory)
            memory.commit()
            os.write(1, f"{memory.cycle}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
