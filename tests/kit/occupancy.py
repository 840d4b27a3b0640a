"""Where agents are in every tick, by going through the events of a log one by one."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

CLOSES = ("compose_done", "action_done")


def occupied(events: list[dict[str, Any]]) -> tuple[Counter[str], Counter[str]]:
    """Return how many ticks agents are in each state at their beginning, and at their end."""
    (started,) = (event for event in events if event["event"] == "run.started")
    last = started["ticks_per_round"]
    by_tick, removed = defaultdict(list), defaultdict(list)
    for event in events:
        if event["event"] == "statechart.transition":
            by_tick[event["round"], event["tick"]].append(event)
        elif event["event"] == "agent.left":
            # before the first tick of its round, as treatments are
            removed[event["round"], 1].append(event["agent_id"])

    where = {each["agent_id"]: each["state"] for each in events if each["event"] == "agent.joined"}
    begins, ends = Counter[str](), Counter[str]()
    stamps = [(event["round"], event["tick"]) for event in events if event["round"] > 0]
    ticks = {
        (number, tick) for number in range(1, max(stamps)[0] + 1) for tick in range(1, last + 1)
    }
    for moment in sorted(tick for tick in ticks if tick <= max(stamps)):
        for name in removed[moment]:
            del where[name]
        begins.update(where.values())
        moves = by_tick[moment]
        closes = [_closes(each, is_last=moment[1] == last) for each in moves]
        _move(where, [move for move, is_late in zip(moves, closes, strict=True) if not is_late])
        ends.update(where.values())
        _move(where, [move for move, is_late in zip(moves, closes, strict=True) if is_late])

    return begins, ends


def cut_off(log: Path, folder: Path, *shares: float) -> list[Path]:
    """Return logs that end early, in the middle of a line, as a kill leaves them."""
    data = log.read_bytes()
    paths = [folder / f"{share}.jsonl" for share in shares]
    for path, share in zip(paths, shares, strict=True):
        path.write_bytes(data[: data.index(b"\n", int(share * len(data))) + 40])

    return paths


def read_events(log: Path) -> list[dict[str, Any]]:
    """Return the events of a log the plain way, without a line that is cut off."""
    *lines, last = log.read_bytes().split(b"\n")
    return [json.loads(line) for line in (*lines, *([last] if last.endswith(b"}") else []))]


def _move(where: dict[str, str], moves: list[dict[str, Any]]) -> None:
    where.update((move["agent_id"], move["to_state"]) for move in moves)


def _closes(move: dict[str, Any], *, is_last: bool) -> bool:
    finishes = is_last and move["trigger"] in CLOSES and move["ticks_in_state"] == 0
    return finishes or move["trigger"] == "round_ends"
