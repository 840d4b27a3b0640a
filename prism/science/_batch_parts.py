"""Parts of a batch that are carried out separately, and the batch that they make together."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import orjson

from prism.errors import InputError
from prism.runs._ledger import Ledger
from prism.science._batch_folder import LEDGER_NAME, PLAN_NAME, BatchFolder

ItemT = TypeVar("ItemT")

PART = "part"
"""The key of ``plan.json`` that says which part of a batch a folder holds."""


@dataclass(frozen=True, slots=True)
class Part:
    """One of several parts of a batch: every N-th of its runs.

    Args:
        number: Its number, from 1.
        count: The number of parts.
    """

    number: int
    count: int

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the part that ``K/N`` names.

        Raises:
            InputError: If the text names no part.
        """
        number, _, count = text.partition("/")
        if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
            raise InputError(
                f"must be K/N, such as 1/4, with K from 1 to N, got {text!r}", field=PART
            )

        return cls(int(number), int(count))

    @classmethod
    def in_plan(cls, told: Mapping[str, Any]) -> Self | None:
        """Return the part that a ``plan.json`` describes; None for a whole batch."""
        return cls(*told[PART]) if PART in told else None

    def among(self, runs: Sequence[ItemT]) -> Sequence[ItemT]:
        """Return the runs of the part, among all runs of the batch."""
        return runs[self.number - 1 :: self.count]

    def budget(self, whole: Mapping[str, Any]) -> dict[str, Any]:
        """Return its fixed share of the budget; the deadline is the same for each part."""
        shares = dict(whole)
        for name in ("max_calls", "max_tokens"):
            most = whole.get(name)
            if most is None:
                continue
            if most < self.count:
                problem = f"is {most}, too few for {self.count} parts"
                raise InputError(problem, field=f"budget.{name}")
            shares[name] = most // self.count + (self.number <= most % self.count)

        return shares


def budget_in(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the budget that the runs of a folder share, from its ``plan.json``."""
    whole, part = told["plan"].get("budget", {}), Part.in_plan(told)
    return dict(whole) if part is None else part.budget(whole)


def merge_folders(parts: Sequence[Path], folder: Path) -> BatchFolder:
    """Merge the parts of a batch, as if one folder had held it from the beginning.

    Args:
        parts: The folders of all parts.
        folder: The folder to make.

    Raises:
        InputError: If they are not all parts of one batch.
    """
    merged = BatchFolder(folder)
    merged.require_free()
    opened = [BatchFolder(each) for each in parts]
    plans = [each.read() for each in opened]
    whole = _require_all(opened, plans)
    with merged.locked():
        for part in opened:
            _copy(part, merged)
        merged.note_failures({k: v for part in opened for k, v in part.failures().items()})
        merged.write(whole)

    return merged


def _require_all(opened: Sequence[BatchFolder], plans: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the plan of the whole batch."""
    if not plans:
        raise InputError("needs all parts: all are missing", field=PART)

    whole, parts = _of_all(plans[0]), [Part.in_plan(told) for told in plans]
    found: set[int] = set()
    for each, told, part in zip(opened, plans, parts, strict=True):
        if part is None:
            raise InputError(
                "is not part of a batch: name folders that prism batch --part wrote", path=each.path
            )
        if _of_all(told) != whole:
            problem = f"belongs to another batch than {opened[0].path} ({PLAN_NAME} differs)"
            raise InputError(problem, path=each.path)
        if part.count != plans[0][PART][1] or part.number in found:
            problem = f"is part {part.number} of {part.count}, which does not match the others"
            raise InputError(problem, path=each.path)
        found.add(part.number)

    missing = sorted({*range(1, plans[0][PART][1] + 1)} - found)
    if missing:
        named = ", ".join(map(str, missing))
        raise InputError(f"needs all parts: {named} missing", field=PART)

    return whole


def _of_all(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a ``plan.json`` that are the same for all parts."""
    return {key: value for key, value in told.items() if key != PART}


def _copy(part: BatchFolder, merged: BatchFolder) -> None:
    """Copy the runs of a part, their rows, and their spending."""
    for each in sorted(part.path.iterdir()):
        if each.is_dir():
            shutil.copytree(each, merged.path / each.name, dirs_exist_ok=True)
    for row in part.rows():
        merged.add_row(orjson.dumps(row).decode())

    ledger = part.path / LEDGER_NAME
    if ledger.exists():
        spent = Ledger(ledger).look()
        with Ledger(merged.path / LEDGER_NAME).changing() as page:
            page.calls += spent.calls
            page.tokens += spent.tokens
