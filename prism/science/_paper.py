"""What a paper needs from a comparison: a table, its data, and a methods paragraph."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from math import floor, log10
from pathlib import Path
from typing import Any

from prism import __version__
from prism.files import make_folder, write_durably
from prism.science._batch import read_batch
from prism.science._differences import Difference, Differences
from prism.science.batch_tables import Batch, flat

_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    # other signs stand there in the font that a document has by default
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
}


_RULES = (
    "% the rules of booktabs where it is loaded",
    *(rf"\providecommand{{\{name}}}{{\hline}}" for name in ("toprule", "midrule", "bottomrule")),
    r"\begin{tabular}{llrrrr}",
)
_END = (r"\bottomrule", r"\end{tabular}")
_LEAST_EXPONENT, _MOST_EXPONENT = -4, 5


def write_paper(folder: Path, comparison: Differences) -> list[Path]:
    """Write the table as LaTeX and CSV, and the methods as text.

    Args:
        folder: The folder, made if it does not exist. Files of the same names are replaced.
        comparison: The comparison.

    Returns:
        The paths of the files.

    Raises:
        OSError: If they cannot be written.
    """
    texts = {"differences.tex": latex_of(comparison), "methods.md": methods_of(comparison) + "\n"}
    make_folder(folder)
    for name, text in texts.items():
        write_durably(folder / name, text.encode())

    comparison.table().write_csv(str(folder / "differences.csv"))
    return [folder / name for name in (*texts, "differences.csv")]


def latex_of(comparison: Differences) -> str:
    """Return the differences that were tested as a LaTeX table.

    Its columns are the measure with its unit, the group, the difference, the interval, the
    corrected p-value and the effect.
    """
    percent = f"{100 * comparison.confidence:g}"
    lines = []
    for row in comparison.differences:
        if row.p is not None:
            measure = ", ".join(filter(None, (row.title, row.setting)))
            p_holm = "$< .001$" if (row.p_holm or 0) < 0.001 else f"${row.p_holm:.3f}$"
            effect = "" if row.effect is None else f"${row.effect:.2f}$"
            cells = [_escaped(measure), _escaped(row.second), *_rounded(row), p_holm, effect]
            lines.append(" & ".join(cells) + r" \\")
    holm = r"$p_{\mathrm{Holm}}$"
    head = rf"Measure & Group & Difference & {percent}\,\% interval & {holm} & Effect \\"
    return "\n".join([*_RULES, r"\toprule", head, r"\midrule", *lines, *_END, ""])


def _rounded(row: Difference) -> tuple[str, str]:
    """Return difference and interval with two significant digits of the interval's length."""
    values = [value or 0.0 for value in (row.difference, row.low, row.high)]
    exponent = floor(log10(max(map(abs, values)) or 1.0))
    is_plain = _LEAST_EXPONENT <= exponent <= _MOST_EXPONENT
    power = "" if is_plain else rf" \times 10^{{{exponent}}}"
    values = [value if is_plain else value / 10.0**exponent for value in values]
    length = values[2] - values[1]
    digits = max(0, 1 - floor(log10(length))) if length else 3
    difference, low, high = (f"{value:z.{digits}f}" for value in values)
    return f"${difference}{power}$", f"$[{low}, {high}]{power}$"


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(sign, sign) for sign in text)


def methods_of(comparison: Differences) -> str:
    """Return a paragraph for the methods of a paper."""
    control, *others = comparison.groups
    tested = sum(row.p is not None for row in comparison.differences)
    seeds = f" ({_seeds_text(comparison.seeds)})" if comparison.seeds else ""
    rounds = f"rounds {comparison.from_round} to {comparison.to_round}"
    were = "was" if len(others) == 1 else "were"
    sentences = [
        f"{', '.join(others)} {were} compared with {control} in {len(comparison.runs)} runs"
        f"{seeds}, {rounds}, {comparison.pairing}.",
        f"Measures: {', '.join(dict.fromkeys(row.title for row in comparison.differences))}.",
    ]
    if tested:
        intervals = f"{100 * comparison.confidence:g}% intervals and p-values"
        correction = f"corrected for {tested} tests (Holm 1979)" if tested > 1 else "of one test"
        sentences.append(
            f"Differences of means have {intervals} ({comparison.intervals}), {correction}."
        )
    if comparison.folder is not None:
        batch = read_batch(comparison.folder)
        sentences[1:1] = _varied(batch)
        sentences.append(_completed(batch))
    software = [f"prism {__version__}", f"Python {platform.python_version()}"]
    software += [f"{name} {version(name)}" for name in ("scipy", "statsmodels")]
    sentences.append(f"Software: {', '.join(software)}.")
    return " ".join(sentences)


def _seeds_text(seeds: Sequence[int]) -> str:
    """Return seeds as text, as a range if they are consecutive."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"

    return ("seed " if len(seeds) == 1 else "seeds ") + ", ".join(map(str, seeds))


def _varied(batch: Batch) -> Iterator[str]:
    """Yield what a batch varies as sentences: agents, values of parameters, and arms."""
    data = batch.plan.data
    # a world may make another number than a plan has by default
    is_named = any("agents" in each for each in (data, data.get("vary", {}), *data.get("arm", ())))
    rows = [run.row for run in batch.runs if is_named and "config" in run.row]
    agents = dict.fromkeys(row["config"]["agents"] for row in rows)
    if tables := [each for each in agents if isinstance(each, str)]:
        yield f"The agents of each run were those of {' or '.join(tables)}."
    elif agents:
        yield f"Each run had {' or '.join(map(str, agents))} agents."
    if vary := data.get("vary"):
        varied = (f"{name} ({', '.join(map(str, values))})" for name, values in vary.items())
        yield f"Varied in every combination: {', '.join(varied)}."
    if arms := data.get("arm"):
        yield f"Arms: {', '.join(map(_arm, arms))}."
    if common := data.get("treatments"):
        yield f"Treatments of all runs: {_in_rounds(common)}."


def _arm(arm: Mapping[str, Any]) -> str:
    """Return an arm with all in which it differs."""
    others = {key: arm[key] for key in arm if key not in ("name", "parameters", "treatments")}
    values = flat({**others, **arm.get("parameters", {})})
    parts = [f"{name} = {value}" for name, value in values.items()]
    treatments = _in_rounds(arm.get("treatments", ()))
    return f"{arm['name']} ({', '.join(filter(None, [*parts, treatments])) or 'no treatment'})"


def _in_rounds(treatments: Sequence[str]) -> str:
    return ", ".join(each.replace("@", " in round ") for each in treatments)


def _completed(batch: Batch) -> str:
    """Return how many runs of a batch completed, as a sentence."""
    ended = sum(each.status == "complete" for each in batch.runs)
    return f"Of {len(batch.runs)} runs, {ended} completed and {len(batch.failed)} failed."
