"""What a compiled world puts before the kernel, here of a world in which nothing happens.

The text of a world's module has these names with its own values. They stand here so that the kernel
is a module like others, which can be checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

TOGETHER: bool = False
LISTED: bool = False
INDEPENDENT: bool = False
IN_PAIRS: bool = False
ALL_ACT: bool = True
HAS_LIMITS: bool = False
COMPENSATED: bool = False
N_STATES: int = 1
N_TRIGGERS: int = 1
TIMEOUT: int = -1
WHOLE_WIDTH: int = 1
"""Whole numbers that a waiting step keeps."""
NUMBER_WIDTH: int = 2
"""Weights, chances, and floats that a waiting step keeps."""

START: Any = np.zeros(2, np.int64)
TARGET: Any = np.zeros(1, np.int64)
GUARD: Any = np.zeros(1, np.int64)
DECIDES: Any = np.zeros(1, np.int64)
VISITED: Any = np.zeros(1, np.int64)
STEP_OF: Any = np.zeros(1, np.int64)
DUE_AFTER: Any = np.zeros(1, np.int64)


def run_step(a: int, step: int, me: int, other: int, piece: int, slot: int, answer: int) -> int:
    """Run a step from one of its pieces on; return the piece that follows an answer, or 0."""
    return 0


def passes(a: int, guard: int, agent: int, context: int) -> bool:
    """Return whether a guard lets an agent pass."""
    return True


def begin_own(a: int, agent: int) -> None:
    """Note an agent's fields, in a together world, and show it what it has written."""


def end_own(a: int, agent: int) -> bool:
    """Show what was there before again; return whether the agent has written something else."""
    return False


def write_own(a: int, agent: int) -> None:
    """Write what an agent has written in the tick."""
