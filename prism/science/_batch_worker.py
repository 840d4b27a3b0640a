"""A process that carries out runs of a batch, one after the other, as it is told on its input.

A line of JSON is a message. The first says how the batch is carried out, ``run`` is a run to begin
or to resume, ``stop`` ends the run under way behind a checkpoint. Where the input ends, the process
that wrote it is gone: this one ends at once, as every run can be resumed.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import IO, Any

from prism.errors import PrismError
from prism.runs import Observer, Outcome, RunOptions, begin, resume
from prism.runs._credentials import with_credentials
from prism.runs._folder import RunFolder
from prism.runs._ledger import Ledger, lending
from prism.science._batch_measures import is_of_feed, measure_run
from prism.social import SocialRun
from prism.worlds import WorldRun

COMPLETE, FAILED, STOPPED = "complete", "failed", "stopped"

_NOTED = ("prism.agents", "prism.llm", "prism.runs.models", "prism.statechart")

Message = Mapping[str, Any]


def main() -> None:
    """Carry out runs until the input ends."""
    out = _take_output()
    messages: SimpleQueue[Message] = SimpleQueue()
    stop = Event()
    Thread(target=_listen, args=(messages, stop), daemon=True).start()

    how = messages.get()
    teller = _Teller(out, stop)
    with _budget(how), _telling_warnings(teller):
        while True:
            message = messages.get()
            # a stop before the run ends the one before it, which has ended
            status, error = _carry_out(message["run"], how, teller)
            teller.tell(ended=status, error=error)


def _take_output() -> IO[str]:
    """Keep standard output for messages; what a world prints goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def _listen(messages: SimpleQueue[Message], stop: Event) -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "stop" in message:
            stop.set()
        else:
            messages.put(message)

    os._exit(1)


class _Teller(Observer):
    """Tells whoever carries out the batch what goes on.

    Args:
        out: Where messages go.
        stop: Set if the run is to stop.
    """

    def __init__(self, out: IO[str], stop: Event) -> None:
        self._out = out
        self._stop = stop

    def tell(self, **message: Any) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    def note(self, message: str) -> None:
        """Say nothing of a single run that goes well."""

    def warn(self, message: str) -> None:
        self.tell(warning=message)

    def is_to_stop(self) -> bool:
        return self._stop.is_set()

    def started(self, run: Any) -> None:
        self.tell(round=len(run.finished))

    def round_ended(self, summary: Any) -> None:
        self.tell(round=summary.number)


def _carry_out(run: Message, how: Message, teller: _Teller) -> tuple[str, str | None]:
    """Begin or resume one run; return how it has ended, and what went wrong."""
    folder = Path(run["folder"])
    outcome: Outcome[Any] | None
    kind: type[RunOptions[Any]] = WorldRun if "world" in run["config"] else SocialRun
    settings: dict[str, Any] = {
        "on_round": teller.round_ended,
        "checkpoint_every": how["checkpoint_every"],
        "observer": teller,
    }
    try:
        if RunFolder(folder).is_begun:
            outcome = resume(folder, kind, hosts=how["hosts"], **settings)
        else:
            plan = Path(how["plan"])
            config = with_credentials(run["config"], how["hosts"], plan)
            outcome = begin(kind.from_config(config, plan), folder, **settings)
        if outcome is not None and is_of_feed(outcome.summary["results"]):
            # while it is at hand, and by as many processes as there are
            measure_run(Path(how["plan"]).parent, run["name"])
    except KeyboardInterrupt:
        return STOPPED, None
    except PrismError as error:
        return FAILED, _one_line(str(error))
    except OSError as error:
        return FAILED, _one_line(f"{error.filename or folder}: {error.strerror or error}")
    except Exception as error:  # of the world's own code
        logging.getLogger("prism.science").warning("%s failed", folder, exc_info=error)
        return FAILED, _one_line(f"{type(error).__name__}: {error}")

    return COMPLETE, None


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _budget(how: Message) -> AbstractContextManager[None]:
    if how["ledger"] is None:
        return nullcontext()

    return lending(Ledger(Path(how["ledger"]), how["sharer"], **how["budget"]))


@contextmanager
def _telling_warnings(teller: _Teller) -> Iterator[None]:
    """Tell what is not in a run's log: about agents, triggers, a budget, prompts or a server."""
    handler = _Handler(teller)
    loggers = [logging.getLogger(name) for name in _NOTED]
    for logger in loggers:
        logger.addHandler(handler)
    yield


class _Handler(logging.Handler):
    def __init__(self, teller: _Teller) -> None:
        super().__init__(logging.WARNING)
        self._teller = teller

    def emit(self, record: logging.LogRecord) -> None:
        # an event of a log
        if not hasattr(record, "prism"):
            self._teller.warn(record.getMessage())
