"""A world that is played, in a process of its own: ``python -m prism.watch._player``.

It reads what to do from its standard input and writes the result, one JSON object per line each
way. What the user's code prints goes to standard error.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from shlex import join
from threading import Lock, Thread
from time import sleep
from traceback import print_exception
from typing import Any, Literal

import orjson

from prism._faults import location_of
from prism.errors import PrismError
from prism.runs import Observer, RunFolder
from prism.runs.dry_run import estimate
from prism.runs.running import carry_out
from prism.worlds import Run
from prism.worlds.arguments import read_parameters
from prism.worlds.checking import about_world
from prism.worlds.loop import Loop
from prism.worlds.treatments import setting

_SECONDS_BETWEEN_LOOKS = 0.02
_SECONDS_BETWEEN_TELLS = 0.2

Tell = Callable[[dict[str, Any]], None]


class Player(Observer):
    """A run that goes on as it is told to.

    Args:
        options: The run: ``world``, ``agents``, ``seed``, ``rounds``, ``parameters``, ``model``.
        folder: Where to keep it.
        tell: Receives the result.
    """

    def __init__(self, options: Mapping[str, Any], folder: Path, tell: Tell) -> None:
        self._options = options
        self._tell = tell
        self._orders: deque[dict[str, Any]] = deque()
        self._goes: Literal["pause", "tick", "round", "play"] = "pause"
        self._seconds = 0.0
        self._sent_at = 0.0
        self._kept = RunFolder.for_new(folder)
        self._run = Run(
            options["world"],
            options.get("agents"),
            rounds=options.get("rounds"),
            seed=options.get("seed") or 0,
            model=options.get("model"),
            parameters=options.get("parameters"),
        )

    def order(self, order: dict[str, Any]) -> None:
        """Take an order from another thread."""
        self._orders.append(order)

    def play(self) -> None:
        """Carry out the run, as fast and as far as it is told to."""
        self._tell({"about": about(self._run), "command": command(self._run, self._options)})
        if not self._run.is_repeatable:
            self._tell({"estimate": estimate(self._run).to_dict()})
            self._await_consent()

        carry_out(self._run, self._kept, observer=self)
        self._tell({"state": "complete"})

    def _await_consent(self) -> None:
        """Wait for the first order to go on: before it, no server of a model is asked anything."""
        self._tell({"state": "paused", "round": 0, "tick": 0})
        while self._goes == "pause":
            sleep(_SECONDS_BETWEEN_LOOKS)
            self._follow_orders(is_between=False)
        # the run itself still has to be told
        self.order({"do": self._goes})
        self._goes = "pause"

    def started(self, run: Any) -> None:
        """Wait for orders before the first round, and between ticks."""
        self._loop: Loop = run
        run.pace = self._pace

    async def _pace(self) -> None:
        """Return when the run may go on."""
        loop = self._loop
        is_between = loop.clock.moment.round == len(loop.finished)
        if self._goes == ("round" if is_between else "tick"):
            self._goes = "pause"
        self._follow_orders(is_between=is_between)
        self._say_where()
        if self._goes == "pause":
            # what has been written so far is to be seen
            self._kept.round_ended()
        while self._goes == "pause":
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            self._follow_orders(is_between=is_between)

        await asyncio.sleep(self._seconds if self._goes == "play" and not is_between else 0)

    def _follow_orders(self, *, is_between: bool) -> None:
        # an order that must wait is put back
        for _ in range(len(self._orders)):
            order = self._orders.popleft()
            does = order["do"]
            if does in ("treat", "set"):
                # the world may change between two rounds only
                if is_between:
                    self._treat(order)
                else:
                    self.order(order)
            elif does == "speed":
                self._seconds = max(float(order["seconds"]), 0.0)
            elif does in ("play", "pause", "tick", "round"):
                self._goes = does

    def _treat(self, order: Mapping[str, Any]) -> None:
        loop, run = self._loop, self._run
        number = len(loop.finished) + 1
        try:
            if order["do"] == "treat":
                applied = [order["name"]]
                treatments = [f"{order['name']}@{number}"]
            else:
                parsed = read_parameters(run.world_class, order["parameters"])
                applied = [*parsed]
                treatments = [setting(name, value, number) for name, value in parsed.items()]
            for treatment in treatments:
                loop.treatments.add(treatment)
        except PrismError as error:
            self._tell({"refused": str(error)})
            return

        run.treatments = (*run.treatments, *treatments)
        self._kept.change(run.to_config())
        outcome = {"applied": ", ".join(applied), "from": number, "refused": None}
        self._tell({"command": command(run, self._options), **outcome})

    def _say_where(self) -> None:
        loop = self._loop
        now = asyncio.get_running_loop().time()
        if self._goes == "play" and now - self._sent_at < _SECONDS_BETWEEN_TELLS:
            return

        self._sent_at = now
        moment = loop.clock.moment
        state = "paused" if self._goes == "pause" else "playing"
        self._tell({"state": state, "round": moment.round, "tick": moment.tick})


def about(run: Run[Any]) -> dict[str, Any]:
    """Return what the page needs to know of a world: what it declares, its values and charts."""
    return {
        **about_world(run.world_class, ""),
        "values": run.to_config()["parameters"],
        "agents": run.made_up,
        "rounds": run.rounds,
        "seed": run.seed,
        "charts": run.charts,
    }


def command(run: Run[Any], options: Mapping[str, Any]) -> str:
    """Return the line of a shell that makes the same run.

    Args:
        run: The run.
        options: What was asked for.
    """
    return join(["prism", "run", options["world"], *_options(run, options)])


def _options(run: Run[Any], options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of the command, each with its value."""
    for name in ("agents", "rounds", "seed", "model"):
        value = run.seed if name == "seed" else options.get(name)
        if value is not None:
            yield from (f"--{name}", str(value))
    for name, value in (options.get("parameters") or {}).items():
        yield from ("--set", f"{name}={value}")
    for text in run.treatments:
        yield from ("--treat", text)
    yield from ("--out", f"runs/{Path(options['world'].partition(':')[0]).stem}")


def fault(error: BaseException) -> dict[str, Any]:
    """Return what went wrong, and where in the user's code."""
    line = location_of(error)
    text = str(error) if isinstance(error, PrismError) else f"{type(error).__name__}: {error}"
    notes = getattr(error, "__notes__", ())
    where = () if line is None else (f"{line}: {line.text}",)

    return {"text": text, "notes": [*dict.fromkeys((*where, *notes))]}


def main() -> None:
    """Play what the first line of standard input asks for."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    # what the world prints must not be taken for what is told here
    os.dup2(2, 1)
    lock = Lock()

    def tell(what: dict[str, Any]) -> None:
        with lock:
            out.write(orjson.dumps(what, option=orjson.OPT_NON_STR_KEYS, default=_plain) + b"\n")

    sys.path.insert(0, str(Path.cwd()))
    options = orjson.loads(sys.stdin.buffer.readline())
    try:
        player = Player(options, Path(options["folder"]), tell)
        Thread(target=_listen, args=(player,), daemon=True).start()
        player.play()
    except Exception as error:
        print_exception(error)
        tell({"state": "failed", "fault": fault(error)})

    sys.stderr.flush()
    # the thread that listens would hold an ordinary exit up
    os._exit(0)


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else str(value)


def _listen(player: Player) -> None:
    """Pass orders on; who gives them has gone when there are no more."""
    for line in sys.stdin.buffer:
        player.order(orjson.loads(line))
    os._exit(0)


if __name__ == "__main__":
    main()
