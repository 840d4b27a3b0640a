"""``prism calibrate``: a policy from a run's decisions, which can take the model's place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prism.cli._log_table import print_notes
from prism.cli._options import Runs
from prism.cli._output import output_file
from prism.cli._screen import counted, print_heading, say
from prism.cli._table_output import TableFormat, choose_format, write
from prism.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from prism.analysis import RunLogs
    from prism.science import Policy

_PROBABILITIES = ("at", "group", "option", "n", "probability", "standard_error", "clustered_error")
_COEFFICIENTS = ("at", "option", "term", "coefficient", "standard_error", "clustered_error", "p")
_TESTS = ("at", "null", "alternative", "statistic", "df", "p", "least_expected")
_UNIDENTIFIED = ("what", "at", "group", "name", "n", "reason")
_DIVERGENCE = ("of", "n", "divergence", "low", "high", "halves", "floor_high", "above")


def calibrate(
    runs: Runs,
    model: Literal["markov", "logit"] = "markov",
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None,
    by: Annotated[str, typer.Option(metavar="NAME")] = "archetype",
    covariates: Annotated[list[str] | None, typer.Option("--covariate", metavar="NAME")] = None,
    least: Annotated[int, typer.Option(min=1)] = 10,
    charts: Annotated[list[str] | None, typer.Option("--chart", metavar="CHART")] = None,
    against: Annotated[list[Path] | None, typer.Option(metavar="RUN")] = None,
    smoothing: Annotated[float, typer.Option(min=0)] = 0.0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    table: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
) -> None:
    """Estimate a policy from a run's decisions, and measure how far it deviates from them.

    Options:
        model: markov estimates shares by state, event and archetype; logit adds a multinomial logit
            on relevance.
        output: File for the policy, for use with simulate --policy.
        by: Attribute to group the agents by.
        covariates: Numeric variable that the logit depends on; relevance by default. Repeat it for
            several.
        least: Minimum number of decisions to identify a probability.
        charts: Chart of the agents, which shows the states in which nobody decided.
        against: Compare the decisions with those of this run, for example one that used the policy.
            By default, a policy estimated from one half of the agents is compared with the other
            half.
        smoothing: Number added to every count before the divergence is computed.
        seed: Seed for halving the agents.
        table: Save the divergence to this .csv, .json or .parquet file.
        figure: Draw the divergence in this .svg or .pdf file.

    [bold]Examples[/bold]

    prism calibrate runs/model --model logit -o policy.json

    prism simulate --agents 1000 --policy policy.json --out runs/policy

    prism calibrate runs/model --against runs/policy --figure divergence.pdf
    """
    from prism.analysis import read_log
    from prism.cli._chart_argument import chart_from
    from prism.cli._running import naming_options
    from prism.runs._policy_file import RELEVANCE

    as_format = None if table is None else choose_format(None, table)
    _refuse_files(output, figure, runs)

    # imported late, since it takes two seconds and needs an extra
    from prism import science

    logs = read_log(*runs)
    print_notes(logs)
    names = tuple(covariates or (RELEVANCE,))
    known = [chart_from(name) for name in charts or ()]
    other = model if against is None else read_log(*against)
    with naming_options({"covariates": "--covariate"}):
        policy = science.calibrate(logs, model, by=by, covariates=names, least=least, charts=known)
        found = science.divergence(logs, other, by=by, least=least, smoothing=smoothing, seed=seed)

    _print(policy, found)
    _print_forced(logs)
    if output is not None:
        with output_file(output, runs) as file:
            file.write(policy.to_json().encode())
        say(f"The policy is in {output}: prism simulate --policy {output}")
    if table is not None and as_format is not None:
        write(found, as_format, table, found.columns, reads=runs)
    if figure is not None:
        _save_figure(found, figure, runs)


def _save_figure(found: pl.DataFrame, path: Path, reads: list[Path]) -> None:
    """Draw a divergence and save it as a file."""
    from prism.report._figures.page_figures import styled
    from prism.report._figures.rendering import draw, in_format
    from prism.science import divergence_figure

    kind: Any = path.suffix[1:]
    drawn = in_format(draw(styled(divergence_figure(found))), kind)
    with output_file(path, reads) as file:
        file.write(drawn)


def _refuse_files(output: Path | None, figure: Path | None, reads: list[Path]) -> None:
    """Refuse files that cannot or should not be written, before the work begins."""
    from prism.runs._folder import refuse_own_file

    if output is not None:
        refuse_own_file(output, reads)
    if figure is not None and figure.suffix not in (".svg", ".pdf"):
        raise InputError(f"--figure must be a .svg or .pdf file, got {figure.name!r}")


def _print(policy: Policy, found: pl.DataFrame) -> None:
    import polars as pl

    from prism import science

    everybody = pl.col("group").fill_null("all")
    probabilities = science.policy_probabilities(policy).with_columns(everybody)
    parts = (
        ("Probabilities", probabilities, _PROBABILITIES),
        ("Logit", science.policy_coefficients(policy), _COEFFICIENTS),
        ("Likelihood-ratio tests", science.policy_tests(policy), _TESTS),
        ("Not identified", science.policy_unidentified(policy), _UNIDENTIFIED),
    )
    for title, table, columns in parts:
        _draw(title, _placed(table), columns)
    _print_divergence(found)

    left_out: Counter[str] = Counter()
    for source in policy.sources:
        left_out.update(source.left_out)
    for reason, count in left_out.items():
        say(f"Left out: {counted(count, 'decision')} ({reason})")


def _print_forced(logs: RunLogs) -> None:
    """Print how many choices a model was forced to make though it preferred another answer."""
    import polars as pl

    from prism.telemetry.events import DECISION

    asked = logs.scan(DECISION).filter(pl.col("option_mass").is_not_null())
    masses, forced = (
        asked.select(pl.len(), without=pl.col("probabilities").is_null().sum()).collect().row(0)
    )
    if forced:
        say(
            f"{forced:,} of {masses:,} choices have no probabilities, since the model gave their "
            "options less than half of its probability: here they count as chosen"
        )


def _print_divergence(found: pl.DataFrame) -> None:
    """Print the columns of a divergence that fit on a terminal."""
    import polars as pl

    same = pl.col("by") == pl.col("level")
    name = pl.when(same).then("level").otherwise(pl.concat_str("by", "level", separator=" "))
    title = "Divergence of model and policy (Jensen-Shannon, bits)"
    is_above = pl.when("above").then(pl.lit("yes")).when(~pl.col("above")).then(pl.lit("no"))
    _draw(title, found.with_columns(of=name, above=is_above), _DIVERGENCE)


def _placed(table: pl.DataFrame) -> pl.DataFrame:
    """Put state and event in one column, unless all rows have the same ones."""
    import polars as pl

    if table.select("state", "event").drop_nulls().n_unique() < 2:
        return table

    place = pl.concat_str("state", "event", separator=" ").fill_null("everywhere")
    return table.with_columns(at=place)


def _draw(title: str, table: pl.DataFrame, columns: tuple[str, ...]) -> None:
    if table.height:
        shown = [name for name in columns if name in table.columns]
        print_heading(title)
        write(table.select(shown), TableFormat.TABLE, None, shown)
