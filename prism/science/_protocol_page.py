"""The page of a protocol: what it compared, as figures and tables."""

from __future__ import annotations

from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from prism.runs import ModelOptions

if TYPE_CHECKING:
    from prism.science._protocol import ProtocolResults

_COMPARED = {
    "reference": "The model against the explicit policy",
    "calibrated": "The model against a policy that was calibrated on it",
}
_ABOUT = {
    "reference": "Does the model keep to the behaviour that the explicit policy prescribes?",
    "calibrated": "Can a policy take the model's place? It was calibrated on one half of the "
    "agents; compared are the decisions of the other half, in the run of the model and in one of "
    "the policy with the same seed.",
}
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Model and policy - prism</title>
<link rel="icon" href="data:,">
<style>
{style}
</style>
</head>
<body>
<header>
<h1>Model and policy</h1>
<p class="soft">{subtitle}</p>
</header>
<main>
"""
_FOOT = """</main>
<footer>After Buitrago López, Pastor-Galindo and Ruipérez-Valiente (2026), arXiv:2606.12369.
Jensen-Shannon divergence in bits (Lin 1991). This page needs no network.</footer>
</body>
</html>
"""


def protocol_page(results: ProtocolResults) -> str:
    """Return the page of a protocol, which contains everything and works offline.

    Args:
        results: What the protocol came to.

    Raises:
        MissingExtraError: If the extra ``report`` is not installed.
    """
    import polars as pl

    from prism.report._figures.html_table import html_table
    from prism.report._figures.rendering import draw
    from prism.science._divergence_figure import divergence_figure

    style = resources.files("prism.report").joinpath("page.css").read_text(encoding="utf-8")
    parts = [_HEAD.format(style=style, subtitle=escape(_subtitle(results)))]
    by = ["strategy", "comparison"]
    for (strategy, compared), table in results.divergence.group_by(by, maintain_order=True):
        name = f"{compared}-{strategy}"
        rows, is_above = table.drop(by), pl.col("above").replace_strict({True: "yes", False: "no"})
        figure = draw({**divergence_figure(rows), "background": "white"})
        parts += [
            f"<section><h2>{_COMPARED[str(compared)]}: {strategy}</h2>",
            f'<p class="soft">{_ABOUT[str(compared)]}</p>',
            f'<div class="figure">{figure}</div>',
            f"{html_table(name, rows.with_columns(is_above))}</section>",
        ]

    parts += ["<section><h2>Time</h2>", f"{html_table('speed', results.speed)}</section>", _FOOT]

    return "\n".join(parts)


def _subtitle(results: ProtocolResults) -> str:
    protocol = results.protocol
    run, model = protocol.run, protocol.run.reasoner
    assert isinstance(model, ModelOptions)

    return (
        f"{model.model}, {run.agents} agents, seed {run.seed}, the first "
        f"{protocol.decisions:,} decisions. Kept in {results.folder}"
    )
