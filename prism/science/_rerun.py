"""Counterfactuals: repeat a run with a change from some round on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prism.analysis import read_log
from prism.errors import InputError
from prism.llm import Model
from prism.runs import Observer, Outcome, PolicyOptions
from prism.runs.folder import SUMMARY_NAME, read_summary
from prism.runs.options import Before
from prism.worlds import Run
from prism.worlds.arguments import decider_of
from prism.worlds.repeating import warn_of_changes
from prism.worlds.treatments import read_treatment, setting


@dataclass(frozen=True, slots=True)
class Rerun:
    """A completed counterfactual.

    Args:
        outcome: The outcome of the new run.
        run: The run that was repeated.
        from_round: First round in which something is different.
        differences: What only one of the two runs has, first, by its kind: ``decision``,
            ``transition``, ``text`` or ``action``. Each is a row of the table ``diff``, with
            ``round``, ``tick``, ``was`` and ``is_now``.
    """

    outcome: Outcome[Any]
    run: Path
    from_round: int
    differences: Mapping[str, Mapping[str, Any]]


def rerun(
    run: Path | str,
    folder: Path | str,
    *,
    from_round: int,
    treatments: Sequence[str] = (),
    parameters: Mapping[str, Any] | None = None,
    on_round: Callable[[Any], object] | None = None,
    observer: Observer | None = None,
    **changes: Any,
) -> Rerun:
    """Repeat a run with something else from some round on.

    The rounds before are repeated with the same random numbers, to the same lines of the log. If a
    model decided, its answers in these rounds are taken from the journal, and cost nothing,
    although the log contains their original cost. From that round on, the model is asked. The new
    run is an ordinary one, which `prism.worlds.resume` continues.

    Args:
        run: The folder of a complete run.
        folder: Where to keep the new run.
        from_round: First round in which something is different.
        treatments: Treatments of that round or later ones.
        parameters: Parameters that have other values from that round on.
        on_round: Called with every round as it ends, after it has been kept.
        observer: Receives the progress of the run.
        changes: Other arguments of a `Run`. ``model``, ``reasoner`` and ``writer`` count from that
            round on; ``model`` may also be the settings of the run's own model that change, such
            as ``{"prompt": ...}``. ``agents``, ``seed`` and ``ticks`` need round 1.

    Raises:
        InputError: If the folder holds no complete run of a world, a treatment is due in an
            earlier round, or the rounds before differ from the original.
    """
    source = Path(run)
    options = _kept(source, observer or Observer())
    rounds = changes.get("rounds", options.rounds)
    if not 1 <= from_round <= rounds:
        problem = f"must be a round of the run, 1 to {rounds}, got {from_round}"
        raise InputError(problem, field="from_round")

    if isinstance(changes.get("model"), Mapping):
        changes["model"] = _changed_model(options, changes["model"])
    decider = decider_of(changes.pop("model", None), changes.pop("reasoner", None))
    before = options.before if decider is None else _before(options, from_round, decider)
    changed = [setting(name, value, from_round) for name, value in (parameters or {}).items()]
    for name in changes:
        is_late = name == "rounds" or (name == "writer" and options.writer is not None)
        if from_round > 1 and not is_late:
            problem = "can only be changed from round 1 on: leave it out, or rerun from round 1"
            raise InputError(problem, field=name)
    for each in treatments:
        if read_treatment(each)[1] < from_round:
            problem = f"has {each}, but nothing may differ before round {from_round}"
            raise InputError(problem, field="treatments")

    writer, has_model = options.writer, isinstance(decider, Model)
    is_shared = has_model and writer is not None and writer.model is None
    by_others = ["decision"] * has_model + ["text"] * ("writer" in changes or is_shared)
    if decider is not None:
        changes["reasoner"] = decider
    if isinstance(decider, PolicyOptions) and writer is not None and writer.model is None:
        # the model that decided goes on writing
        changes = {"writer": replace(writer, model=options.reasoner), **changes}
    again = options.replace(**changes)
    again.before = before
    if _has_journal(options):
        again = again.repeating(source, until=from_round, by_others=by_others)
    again = again.replace(treatments=(*options.treatments, *changed, *treatments))
    outcome: Outcome[Any] = again.keep(folder, on_round=on_round, observer=observer)
    return Rerun(outcome, source, from_round, _differences(source, Path(folder), from_round))


def _kept(source: Path, observer: Observer) -> Run[Any]:
    """Return the options of a complete run, and report what has changed since."""
    summary = read_summary(source)
    if "results" not in summary:
        raise InputError("has not ended: resume it first", path=source)

    options: Run[Any] = Run.from_config(summary["config"], source / SUMMARY_NAME)
    if options.is_alone:
        raise InputError("is the run of a single agent: only worlds can be rerun", path=source)
    warn_of_changes(summary, options, observer)
    return options


def _has_journal(options: Run[Any]) -> bool:
    """Return whether the answers of a run were those of a model."""
    has_model = isinstance(options.reasoner, Model) or options.repeats is not None
    return has_model or options.writer is not None or options.before is not None


def _before(options: Run[Any], from_round: int, decider: Any) -> Before | None:
    """Return what decides in the rounds before another reasoner or model does."""
    first, before = options.reasoner, options.before
    if from_round == 1:
        return None
    if before is not None and from_round <= before.until:
        return Before(before.decider, from_round)
    if isinstance(first, Model) and isinstance(decider, Model):
        # the answers of both are in one journal
        return before
    if before is not None:
        problem = f"must be {before.until} or less, since the run changed there what decides"
        raise InputError(problem, field="from_round")
    return Before(first, from_round)


def _changed_model(options: Run[Any], settings: Mapping[str, Any]) -> Model:
    """Return the run's own model with other settings."""
    if not isinstance(options.reasoner, Model):
        problem = "must be named, such as ollama:llama3.2, since the run asked none"
        raise InputError(problem, field="model")
    return replace(options.reasoner, **settings)


def _differences(run: Path, folder: Path, from_round: int) -> dict[str, Mapping[str, Any]]:
    """Return the first differences of two runs by their kind.

    Raises:
        InputError: If one is in an earlier round.
    """
    rows = read_log(run, folder).rows("diff")
    first = min((row["round"] for row in rows), default=from_round)
    if first < from_round:
        problem = (
            f"its rounds before round {from_round} differ from the original, first in round "
            f"{first}: its code has changed, or its world is not repeatable (see prism world check)"
        )
        raise InputError(problem, path=run)
    return {row["what"]: row for row in rows}
