"""``prism rerun``: a run again, with something else from a round on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prism.cli._options import (
    Keeping,
    Parameters,
    import_from_here,
    keeping_panel,
    model_panel,
    named_values,
)
from prism.cli._screen import pour_json, say
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.cli._running import RunScreen
    from prism.science import Parted, Rerun

_COMMAND = "prism rerun"
_ALWAYS_TOLD = ("decision", "transition")
_BEFORE, _MOST_SHOWN = 40, 160


def rerun(
    *,
    run: Annotated[Path | None, typer.Argument(metavar="RUN", show_default=False)] = None,
    from_round: Annotated[int | None, typer.Option(min=1)] = None,
    treatments: Annotated[list[str] | None, typer.Option("--treat", metavar="NAME@ROUND")] = None,
    parameters: Parameters = None,
    agents: Annotated[str | None, typer.Option(metavar="N|FILE")] = None,
    rounds: Annotated[int | None, typer.Option(min=1)] = None,
    then: Literal["model", "policy"] = "model",
    model: Annotated[Mapping[str, Any], model_panel(without=("server",))],
    keeping: Annotated[
        Keeping,
        keeping_panel(out="Folder for the new run."),
    ],
) -> None:
    """Repeat a run with something changed from a given round on.

    The rounds before are repeated with the same random numbers and the recorded answers of a
    model. --set, --treat and all options of a model count from that round on.

    Options:
        run: Folder of the run.
        from_round: First round in which something is different.
        treatments: Apply a treatment of the world. Repeat it for several. Without any, the run is
            repeated unchanged.
        agents: Another population, with --from-round 1.
        rounds: Another number of rounds.
        then: If a model decided in the run, who answers the questions that its log does not answer.

    [bold]Examples[/bold]

    prism rerun runs/rumour --from-round 12 --treat warning@12 --out runs/warned

    prism rerun runs/rumour --from-round 12 --set tiring=0.9 --out runs/tired

    prism rerun runs/asked --from-round 5 --model ollama:qwen3 --prompt shorter.txt --out runs/other

    prism rerun --resume runs/warned
    """
    from prism.cli._running import begin_or_resume, run_screen
    from prism.science import rerun as run_again

    # only the commands of experiments load what they need
    from prism.science import resume_rerun

    import_from_here()
    more: dict[str, Any] = {"hosts": model.get("hosts", ())}

    def begin(folder: Path | None, screen: RunScreen) -> Rerun:
        if run is None or from_round is None or folder is None:
            lacking = "a RUN" if run is None else "--from-round" if from_round is None else "--out"
            raise InputError(f"{_COMMAND} needs {lacking}")

        changes = {"parameters": named_values(parameters), "agents": agents, "rounds": rounds}
        more.update(on_round=screen.round_ended, observer=screen, model=_model(model), **changes)
        more["treatments"] = treatments or ()
        return run_again(run, folder, from_round=from_round, then=then, **more)

    def resume(folder: Path, screen: RunScreen) -> Rerun:
        return resume_rerun(folder, on_round=screen.round_ended, observer=screen, **more)

    screen = partial(run_screen, command=f"{_COMMAND} --resume")
    found = begin_or_resume(keeping, begin, resume, screen)
    _print(found, as_json=keeping.as_json)


def _model(given: Mapping[str, Any]) -> Any:
    """Return the model that is named, or the settings that change; addresses alone change none."""
    if not given.keys() - {"hosts"}:
        return None
    from prism.cli._answers import model_options, settings_from

    settings = settings_from(given)
    return model_options(settings) if "model" in settings else settings


def _print(found: Rerun, *, as_json: bool) -> None:
    if as_json:
        pour_json({**found.to_dict(), "folder": str(found.folder)})
        return

    if found.outcome is not None:
        from prism.cli._results import print_results

        print_results(found.outcome.results, found.outcome.folder)

    parted = {"decision": found.decision, "transition": found.transition}
    tell_difference(found.run, parted)


def tell_difference(run: Path, found: Mapping[str, Parted | None]) -> None:
    """Print where another run parts from a run in each respect, or that it does not."""
    if not any(found.values()):
        *others, last = found
        say(f"Every {', '.join(others)} and {last} is the same as in {run}.")
        return

    for what, parted in found.items():
        if parted is not None:
            when = f"round {parted.round}, tick {parted.tick}: " if parted.round is not None else ""
            was, now = _from_where_they_differ(_event(parted.was), _event(parted.is_now))
            say(f"The first {what} that differs from {run}: {when}was {was}, is now {now}")
        elif what in _ALWAYS_TOLD:
            say(f"The first {what} that differs from {run}: none")


def _from_where_they_differ(*texts: str) -> Iterator[str]:
    """Shorten long texts to the part in which they first differ."""
    pairs = enumerate(zip(*texts, strict=False))
    same = next((number for number, (was, now) in pairs if was != now), len(min(texts, key=len)))
    start = max(0, same - _BEFORE)
    for text in texts:
        end = start + _MOST_SHOWN
        is_long = len(max(texts, key=len)) > _MOST_SHOWN
        cut = "…" * (start > 0) + text[start:end] + "…" * (len(text) > end)
        yield cut if is_long else text


def _event(row: Any) -> str:
    if row is None:
        return "nothing"
    if "trigger" not in row:
        values = (value for name, value in row.items() if name not in ("round", "tick"))
        return " ".join(repr(value)[1:-1] for value in values if value is not None)

    target = row.get("chosen") or row.get("to_state")
    source = row.get("state") or row.get("from_state")
    about = f" about {row['context']}" if row.get("context") else ""
    return f"{row['agent_id']} {source} -> {target} ({row['trigger']}{about})"
