"""Numbers in compiled code: drawn from the streams of agents, and reckoned as Python does.

The text of this module, and of the others of the kernel, is put behind that of a compiled world,
whose chart and records it knows as constants. All functions take the record of the run; agents,
states and triggers are numbers, nobody and no state -1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from prism.columns import _table as T  # noqa: N812
from prism.columns import _world as W  # noqa: N812

# The kernel begins here

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ONE = np.uint64(0xBF58476D1CE4E5B9)
ANOTHER = np.uint64(0x94D049BB133111EB)
BY_30, BY_27, BY_31, BY_11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


def fault(run: Any, code: int, line: int) -> None:
    """End the tick, and record in the run what is wrong and where."""
    run.fault = code
    run.line = line
    raise RuntimeError("a fault in a step")


def end_if_interrupted(run: Any, line: int) -> None:
    """End the tick if it is interrupted."""
    if W.glance(run.interrupted):
        fault(run, T.INTERRUPTED, line)


# Drawn


def mixed(number: Any) -> Any:
    """Return the splitmix64 hash of a number."""
    number = (number ^ (number >> BY_30)) * ONE
    number = (number ^ (number >> BY_27)) * ANOTHER
    return number ^ (number >> BY_31)


def unit(number: Any) -> float:
    """Return the float from 0 to 1 for a counter."""
    return np.float64(mixed(number) >> BY_11) * 1.1102230246251565e-16


def drawn(run: Any, key: Any, number: int) -> float:
    """Return the next number of a key's stream in this epoch."""
    return unit(mixed(key + np.uint64(run.epoch) * GOLDEN) + np.uint64(number) * GOLDEN)


def draw(run: Any, agent: int, line: int) -> float:
    """Draw a number for an agent's steps."""
    if W.TOGETHER and agent != run.acting:
        fault(run, T.OTHERS, line)
    me = W.agent_at(run, agent)
    if me.drawn_in != run.epoch:
        me.drawn_in = run.epoch
        me.drawn = 0
    me.drawn += 1
    return drawn(run, me.key_step, me.drawn)


def draw_decision(run: Any, agent: int) -> float:
    """Draw a number for an agent's decisions."""
    me = W.agent_at(run, agent)
    if me.decided_in != run.epoch:
        me.decided_in = run.epoch
        me.decided = 0
    me.decided += 1
    return drawn(run, me.key_decision, me.decided)


def draw_turn(run: Any) -> float:
    """Draw a number for choosing whose turn it is."""
    run.turn_at = run.turn_at + GOLDEN
    return unit(run.turn_at)


def chance(run: Any, whose: int, probability: float, line: int) -> bool:
    """Return True with a probability."""
    return draw(run, whose, line) < probability


def index(run: Any, whose: int, length: float, line: int) -> int:
    """Draw an index below a length."""
    return truncated(run, draw(run, whose, line) * length, line)


def between(run: Any, whose: int, low: float, high: float, line: int) -> float:
    """Draw a float between two bounds."""
    return low + (high - low) * draw(run, whose, line)


def exponential(run: Any, whose: int, mean: float, line: int) -> float:
    """Draw from an exponential distribution."""
    if not 0.0 <= mean < np.inf:
        fault(run, T.DOMAIN, line)
    return -mean * math.log1p(-draw(run, whose, line))


# Agents


def state_of(run: Any, agent: int) -> int:
    """Return an agent's state."""
    return W.get_u1(run.state, agent)


def neighbour(run: Any, agent: int, number: int) -> int:
    """Return one of an agent's neighbours."""
    return W.get_i4(run.neighbours, W.get_i8(run.offsets, agent) + number)


def degree(run: Any, agent: int) -> int:
    """Return the number of an agent's neighbours."""
    return W.get_i8(run.offsets, agent + 1) - W.get_i8(run.offsets, agent)


def choose(run: Any, whose: int, agent: int, line: int) -> int:
    """Draw one of an agent's neighbours."""
    number, among = draw(run, whose, line), degree(run, agent)
    if among == 0:
        fault(run, T.EMPTY, line)
    return neighbour(run, agent, int(number * among))


def count_neighbours(run: Any, agent: int, state: int) -> int:
    """Return how many of an agent's neighbours are in a state."""
    found = 0
    for number in range(degree(run, agent)):
        found += state_of(run, neighbour(run, agent, number)) == state
    return found


def is_neighbour(run: Any, agent: int, other: int) -> bool:
    """Return whether an agent is among the neighbours of another."""
    found = False
    for number in range(degree(run, agent)):
        found |= neighbour(run, agent, number) == other
    return found


def somebody(run: Any, agent: int, line: int) -> int:
    """Return an agent, and fault if it is none."""
    if agent < 0:
        fault(run, T.NOBODY, line)
    return agent


def own(run: Any, agent: int, line: int) -> int:
    """Return an agent whose field is set; in a together world, it must be the acting one."""
    if W.TOGETHER and agent != run.acting:
        fault(run, T.OTHERS, line)
    return agent


# Reckoned as Python does


def real(run: Any, number: int, line: int) -> float:
    """Return an integer as a float that represents it exactly."""
    if number > 9007199254740992 or number < -9007199254740992:
        fault(run, T.EXACT, line)
    return float(number)


def plus(run: Any, one: int, other: int, line: int) -> int:
    """Add integers."""
    found = one + other
    if (one ^ found) & (other ^ found) < 0:
        fault(run, T.WHOLE, line)
    return found


def minus(run: Any, one: int, other: int, line: int) -> int:
    """Subtract integers."""
    found = one - other
    if (one ^ other) & (one ^ found) < 0:
        fault(run, T.WHOLE, line)
    return found


def times(run: Any, one: int, other: int, line: int) -> int:
    """Multiply integers."""
    about = float(one) * float(other)
    if about > 9.2e18 or about < -9.2e18:
        fault(run, T.WHOLE, line)
    return one * other


def whole_power(run: Any, base: int, exponent: int, line: int) -> int:
    """Raise an integer to an integer power."""
    found = 1
    for _ in range(exponent):
        found = times(run, found, base, line)
    return found


def nonzero(run: Any, number: Any, line: int) -> Any:
    """Return a divisor, and fault if it is 0."""
    if number == 0:
        fault(run, T.DIVISION, line)
    return number


def divided(run: Any, one: float, other: float, line: int) -> float:
    """Divide floats."""
    return one / nonzero(run, other, line)


def float_rest(run: Any, one: float, other: float, line: int) -> float:
    """Return the remainder of a division of floats, with the sign of the divisor."""
    rest = np.fmod(one, nonzero(run, other, line))
    if rest == 0.0:
        return math.copysign(0.0, other)
    return rest + other if (other < 0.0) != (rest < 0.0) else rest


def float_floor(run: Any, one: float, other: float, line: int) -> float:
    """Divide floats and round down, exactly as CPython does."""
    rest = np.fmod(one, nonzero(run, other, line))
    quotient = (one - rest) / other
    if rest != 0.0 and (other < 0.0) != (rest < 0.0):
        quotient -= 1.0
    if quotient == 0.0:
        return math.copysign(0.0, one / other)
    down = math.floor(quotient) * 1.0 if abs(quotient) < 4503599627370496.0 else quotient
    return down + 1.0 if quotient - down > 0.5 else down


def whole_floor(run: Any, one: int, other: int, line: int) -> int:
    """Divide integers, and round down."""
    return minus(run, 0, one, line) if other == -1 else one // nonzero(run, other, line)


def whole_rest(run: Any, one: int, other: int, line: int) -> int:
    """Return the remainder of a division of integers."""
    return 0 if other == -1 else one % nonzero(run, other, line)


def finite(run: Any, found: float, given: float, line: int) -> float:
    """Return the result of a function; set a fault if Python would refuse its arguments."""
    if (math.isnan(found) and not math.isnan(given)) or (
        math.isinf(found) and math.isfinite(given)
    ):
        fault(run, T.DOMAIN, line)
    return found


def power(run: Any, base: float, exponent: float, line: int) -> float:
    """Raise a float to a power."""
    return finite(run, math.pow(base, W.opaque(exponent)), base + exponent, line)


def whole_size(run: Any, number: int, line: int) -> int:
    """Return the absolute value of an integer."""
    return minus(run, 0, number, line) if number < 0 else number


def smaller(one: Any, other: Any) -> Any:
    """Return the smaller number, or the first if they are equal."""
    return other if other < one else one


def larger(one: Any, other: Any) -> Any:
    """Return the larger number, or the first if they are equal."""
    return other if other > one else one


def added(total: float, lost: float, more: float) -> tuple[float, float]:
    """Add to a sum as the running Python does: compensated since 3.12."""
    if not W.COMPENSATED:
        return total + more, lost
    after = total + more
    if abs(total) >= abs(more):
        lost += (total - after) + more
    else:
        lost += (more - after) + total
    return after, lost


def summed(total: float, lost: float) -> float:
    """Return a finished sum."""
    return total + lost if lost != 0.0 and math.isfinite(lost) else total


def truncated(run: Any, number: float, line: int) -> int:
    """Return a float truncated to an integer."""
    if not abs(number) < 9223372036854774784.0:
        fault(run, T.WHOLE, line)
    return int(number)
