"""The coverage of charts, as a run of pytest reports it."""

from collections.abc import Callable

import pytest

CHARTS = """
    import asyncio, pickle
    import pytest
    from prism.agents import SocialAgent
    from prism.statechart import AgentState as S, Statechart, Transition, social_media_chart
    from prism.testing import ScriptedReasoner

    def says(agent, context):
        if isinstance(context, Exception):
            raise context
        return context

    def fails(agent, context):
        raise LookupError("x")

    def make(name="small", **settings):
        moves = [
            Transition("go", S.IDLE, S.SCROLLING, says),
            Transition("go", S.IDLE, S.RESTING),
            Transition("again", S.IDLE, S.IDLE),
            Transition("timeout", S.SCROLLING, S.RESTING),
            Transition("fail", S.IDLE, S.RESTING, action=fails),
        ]
        return Statechart([S.IDLE, S.SCROLLING, S.RESTING], moves, S.IDLE, name=name, **settings)
"""
OTHERS = ["idle --again--> idle", "scrolling --timeout--> resting", "idle --fail--> resting"]
GUARD = "idle --go--> scrolling [says]: never "


@pytest.fixture
def report(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], list[str]]:
    """Return a function that runs a test of charts, and gives the lines of the report."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "prism.pytest_plugin")

    def report(test: str) -> list[str]:
        body = "".join(f"        {line}\n" for line in test.splitlines())
        pytester.makepyfile(f"{CHARTS}\n    def test_charts():\n{body}")
        result = pytester.runpytest_inprocess("-W", "error", "--statechart-coverage")
        result.assert_outcomes(passed=1)
        begin = next(n for n, line in enumerate(result.outlines) if "statechart coverage" in line)
        return [line for line in result.outlines[begin + 1 : -1] if line]

    return report


def missing(lines: list[str]) -> list[str]:
    """Return what a report says was never exercised."""
    return [line.split(maxsplit=1)[1] for line in lines if line.startswith("  ")]


@pytest.mark.parametrize(
    ("test", "never"),
    [
        (
            "make().fire(SocialAgent('ada'), 'go', True)",
            ["resting", "idle --go--> resting", *OTHERS, f"{GUARD}failed"],
        ),
        ("for says in (True, False): make().fire(SocialAgent('ada'), 'go', says)", OTHERS),
        (
            "chart = make(strict=True)\n"
            "with pytest.raises(LookupError): chart.fire(SocialAgent('ada'), 'fail')\n"
            "with pytest.raises(LookupError): chart.fire(SocialAgent('a'), 'go', LookupError('x'))",
            [
                *("scrolling", "resting", "idle --go--> scrolling [says]"),
                *("idle --go--> resting", *OTHERS, f"{GUARD}passed", f"{GUARD}failed"),
            ],
        ),
        (
            "chart = make(decision_states=[S.IDLE])\n"
            "chart.fire_to(SocialAgent('ada'), 'go', S.RESTING, True)\n"
            "script = ScriptedReasoner(['scrolling'])\n"
            "asyncio.run(chart.afire(SocialAgent('bo'), 'go', True, reasoner=script))\n"
            "tired = SocialAgent('c', state=S.SCROLLING, timeout_threshold=1, ticks_in_state=1)\n"
            "assert chart.tick(tired) is S.RESTING",
            [OTHERS[0], OTHERS[2], f"{GUARD}failed"],
        ),
    ],
    ids=["passed", "failed", "raised", "every way to fire"],
)
def test_what_was_never_exercised_is_listed(
    report: Callable[[str], list[str]], test: str, never: list[str]
) -> None:
    """A move counts with both its states, and each outcome of its guard by itself."""
    assert missing(report(test)) == never


@pytest.mark.parametrize(
    ("test", "share"),
    [
        # 3 of 45
        ("social_media_chart().fire(SocialAgent('ada'), 'feed_ready')", "6.7%"),
        # all but one of 2101
        (
            "moves = [Transition(f't{number}', S.IDLE, S.IDLE) for number in range(2100)]\n"
            "chart = Statechart([S.IDLE], moves, S.IDLE)\n"
            "for move in moves[1:]: chart.fire(SocialAgent('ada'), move.trigger)",
            "99.9%",
        ),
    ],
)
def test_shares_are_rounded(report: Callable[[str], list[str]], test: str, share: str) -> None:
    """To a tenth, up or down; only all is 100 %."""
    assert report(test)[1].split()[-1] == share


def test_several_charts_are_added_up(report: Callable[[str], list[str]]) -> None:
    """Charts that look alike are one; all have a line; what nothing was fired on is only named."""
    lines = report(
        "name = 'a\\x1b[2Jb\\nc'; first = make(name)\n"
        "for chart in (first, make(name), pickle.loads(pickle.dumps(first))):\n"
        "    chart.fire(SocialAgent('ada'), 'go', True)\n"
        "make('other').fire(SocialAgent('ada'), 'go', False)\n"
        "social_media_chart()"
    )
    assert lines[3].split() == ["all", "4/6", "67%", "2/10", "20%", "2/4", "50%", "40%"]
    assert lines[-1] == "built but never used: social_media"
    # names do not tell a terminal what to do
    assert all(line.isprintable() for line in lines)


@pytest.mark.slow
def test_no_chart_is_kept_alive(report: Callable[[str], list[str]]) -> None:
    """The definition of a chart that is counted, and what its guards hold, goes with the chart."""
    report(
        "import gc, weakref\n"
        "chart = make()\n"
        "chart.fire(SocialAgent('ada'), 'go', True)\n"
        "definition = weakref.ref(chart.definition)\n"
        "del chart\n"
        "gc.collect()\n"
        "assert definition() is None"
    )
