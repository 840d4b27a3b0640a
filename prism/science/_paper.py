"""What a paper needs from an experiment: tables and a methods paragraph."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import polars as pl

from prism import __version__
from prism.files import make_folder, write_durably
from prism.science._batch import Batch
from prism.science._libraries import library


def write_paper(folder: Path, tables: Mapping[str, pl.DataFrame], methods: str) -> list[Path]:
    """Write tables as LaTeX and CSV and the methods as text.

    Args:
        folder: The folder, made if it does not exist. Files of the same names are replaced.
        tables: The tables, by name.
        methods: The paragraph.

    Returns:
        The paths of the files.

    Raises:
        OSError: If they cannot be written.
    """
    texts = {"methods.md": methods + "\n"}
    for name, table in tables.items():
        texts[f"{name}.tex"] = latex_of(table)
        texts[f"{name}.csv"] = table.write_csv()

    make_folder(folder)
    for name, text in texts.items():
        write_durably(folder / name, text.encode())

    return [folder / name for name in texts]


def latex_of(table: pl.DataFrame) -> str:
    """Return a table as LaTeX with the rules of booktabs; numbers have three digits."""
    said = table.with_columns(pl.col(pl.Boolean).replace_strict([True, False], ["yes", "no"]))
    # as objects, so that whole numbers stay whole in columns with missing values
    frame = library("pandas").DataFrame(said.to_dict(as_series=False), dtype=object)
    text: str = frame.to_latex(
        index=False,
        escape=True,
        na_rep="",
        float_format="%.3g",
        column_format="".join("r" if kind.is_numeric() else "l" for kind in table.dtypes),
    )
    return text


def versions(*libraries: str) -> str:
    """Return the versions of prism, Python and libraries as part of a sentence."""
    named = [f"prism {__version__}", f"Python {platform.python_version()}"]
    named += [f"{name} {version(name)}" for name in libraries]

    return ", ".join(named[:-1]) + f" and {named[-1]}"


def seeds_of(seeds: Sequence[int]) -> str:
    """Return seeds as text, as a range if they are consecutive."""
    known = sorted(set(seeds))
    if len(known) > 2 and known == list(range(known[0], known[-1] + 1)):
        return f"seeds {known[0]} to {known[-1]}"

    return ("seed " if len(known) == 1 else "seeds ") + ", ".join(map(str, known))


def arranged(batch: Batch) -> Iterator[str]:
    """Yield what a batch varies as sentences: agents, values of parameters, and treatments."""
    data, results = batch.plan.data, batch.results()
    agents = " or ".join(f"{each:,}" for each in sorted(results["agents"].drop_nulls().unique()))
    if agents:
        yield f"Each run had {agents} agents."
    if vary := data.get("vary"):
        varied = (f"{name} ({', '.join(map(str, values))})" for name, values in vary.items())
        yield f"Varied in every combination: {', '.join(varied)}."

    if common := data.get("treatments"):
        yield f"Treatments of all runs: {_in_rounds(common)}."
    told = {arm["name"]: arm.get("treatments", ()) for arm in data.get("arm", ())}
    if any(told.values()):
        arms = (f"{name} ({_in_rounds(given)})" for name, given in told.items())
        yield f"Arms: {', '.join(arms)}."


def _in_rounds(treatments: Sequence[str]) -> str:
    return ", ".join(each.replace("@", " in round ") for each in treatments) or "no treatment"


def completed(batch: Batch) -> str:
    """Return how many runs of a batch completed, as a sentence."""
    count = len(batch.runs)
    if batch.is_complete:
        return f"All {counted(count, 'run')} completed."

    ended = sum(each.status == "complete" for each in batch.runs)
    return f"Of {counted(count, 'run')}, {ended} completed and {len(batch.failed)} failed."


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 run`` or ``2 runs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
