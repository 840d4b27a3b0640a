"""The pytest plugin, in runs of pytest of its own."""

import sys

import pytest

QUIET = ("-p", "no:asyncio", "-W", "error")
"""pytest-asyncio itself warns where its loop scope is not configured."""


SMALL_CHART = """
    from prism.statechart import AgentState as S, Statechart, Transition

    def is_late(agent, context):
        return bool(context)

    CHART = Statechart(
        [S.IDLE, S.SCROLLING, S.RESTING],
        [Transition("go", S.IDLE, S.SCROLLING, is_late), Transition("go", S.IDLE, S.RESTING)],
        S.IDLE,
        name="small",
    )
"""

USES_CHART = """
    from conftest import CHART

    def test_late(make_agent):
        CHART.fire(make_agent(), "go", True)

    def test_early(make_agent):
        CHART.fire(make_agent(), "go", False)
"""


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runs of pytest load this plugin only; to load all takes longer than most tests."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "prism.pytest_plugin")


@pytest.fixture
def by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runs of pytest find all plugins that are installed, as a user's run does."""
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.delenv("PYTEST_PLUGINS")


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a suite of two tests on a chart that its conftest builds."""
    pytester.makeconftest(SMALL_CHART)
    pytester.makepyfile(test_small=USES_CHART)
    return pytester


@pytest.mark.slow
def test_an_unused_plugin_imports_nothing_heavy(pytester: pytest.Pytester) -> None:
    """A suite that uses nothing of the plugin imports neither the engine nor any extra."""
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            ours = {name for name in sys.modules if name.partition(".")[0] == "prism"}
            assert ours == {"prism", "prism._lazy", "prism._version", "prism.pytest_plugin"}
            heavy = {"hypothesis", "ollama", "transitions", "structlog", "orjson"}
            assert not heavy & set(sys.modules)
        """
    )
    result = pytester.runpytest_subprocess(*QUIET)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*coverage*")


def test_fixtures_of_the_project_are_not_called(pytester: pytest.Pytester) -> None:
    """A project may have fixtures of its own with these names, for something else."""
    pytester.makepyfile(
        """
        import pytest
        from prism.agents import SocialAgent

        def fail(*_, **__):
            raise AssertionError("called")

        @pytest.fixture(params=["2026-01-01", fail])
        def frozen_clock(request):
            return request.param

        @pytest.fixture
        def make_agent():
            return fail

        def test_own(frozen_clock, make_agent, social_chart, transition_log, scripted_reasoner):
            ada = SocialAgent("ada", interests=["x"])
            social_chart.fire(ada, "feed_ready")
            assert ada.state_history[0].timestamp.year >= 2026
        """
    )
    pytester.runpytest(*QUIET).assert_outcomes(passed=2)


def test_a_model_server_of_either_kind_decides(pytester: pytest.Pytester) -> None:
    """The servers answer a real client, on the time of the machine where none is frozen."""
    pytester.makepyfile(
        """
        import pytest
        from prism.llm import Model
        from prism.reasoner import Reasoner

        @pytest.mark.asyncio
        @pytest.mark.parametrize("kind", ["ollama", "openai"])
        async def test_model(social_chart, make_agent, fake_ollama, fake_openai, kind):
            server = fake_ollama if kind == "ollama" else fake_openai
            ada = make_agent()
            social_chart.fire(ada, "feed_ready")
            social_chart.fire(ada, "sees_post")
            assert ada.state_history[0].timestamp.year >= 2026
            async with Model("llama3.2", server.url, server=kind) as model:
                await social_chart.afire(ada, "decides", 0.9, reasoner=Reasoner(model))
            assert ada.state_history[-1].from_state == "evaluating"
            assert server.asked == 1
        """
    )
    result = pytester.runpytest_inprocess(
        *("-p", "pytest_asyncio.plugin", "-W", "error"),
        *("-o", "asyncio_default_fixture_loop_scope=function"),
    )
    result.assert_outcomes(passed=2)


@pytest.mark.slow
def test_a_script_fails_the_test_that_does_not_follow_it(pytester: pytest.Pytester) -> None:
    """So do unexpected questions and unused answers, unless the test failed or was skipped."""
    pytester.makepyfile(
        """
        import asyncio
        import pytest
        from prism.statechart import AgentState

        def decide(chart, make_agent, reasoner):
            agent = make_agent("ada", state=AgentState.EVALUATING)
            asyncio.run(chart.afire(agent, "decides", 0.9, reasoner=reasoner))

        def test_unexpected(social_chart, make_agent, scripted_reasoner):
            decide(social_chart, make_agent, scripted_reasoner([]))

        def test_left_over(social_chart, make_agent, scripted_reasoner):
            decide(social_chart, make_agent, scripted_reasoner(["scrolling", "composing"]))

        def test_swallowed(social_chart, make_agent, scripted_reasoner):
            with pytest.raises(AssertionError):
                decide(social_chart, make_agent, scripted_reasoner([]))

        @pytest.fixture
        def script(scripted_reasoner, scripted_writer):
            scripted_writer(["text"])
            return scripted_reasoner(["composing"])

        @pytest.fixture
        def nothing_there(script):
            pytest.skip("nothing there")

        def test_failed_anyway(script):
            assert False, "for another reason"

        def test_skipped(script):
            pytest.skip("later")

        def test_skipped_in_setup(nothing_there):
            pass

        @pytest.mark.xfail(strict=True)
        def test_expected(script):
            assert False

        def test_text_left_over(scripted_writer):
            scripted_writer(["text"])
        """
    )
    result = pytester.runpytest_inprocess(*QUIET)
    result.assert_outcomes(failed=2, passed=3, errors=3, skipped=2, xfailed=1)
    result.stdout.fnmatch_lines_random(
        [
            "E*question 1, of agent 'ada' in 'evaluating' on 'decides': *script has no answer*",
            "E*You are ada, a social media user.",
            "E*AssertionError: after 1 question the script has answers left over: composing",
            "ERROR *test_swallowed*",
            "ERROR *test_text_left_over*",
        ]
    )


def test_failed_path_shows_no_frames_of_prism(pytester: pytest.Pytester) -> None:
    """A failed assert_path ends at the line of the test, with the explanation below it."""
    pytester.makepyfile(
        """
        from prism.testing import assert_path

        def test_path(social_chart, make_agent):
            ada = make_agent("ada")
            social_chart.fire(ada, "feed_ready")
            assert_path(ada, "idle > scrolling > evaluating", chart=social_chart)
        """
    )
    result = pytester.runpytest_inprocess(*QUIET)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">*assert_path(ada, *",
            "E*agent 'ada' took another path:",
            "E*expected  idle > scrolling > evaluating",
            "E*passed     scrolling --sees_post--> evaluating",
        ]
    )
    result.stdout.no_fnmatch_line("*prism/testing/_paths.py*")


@pytest.mark.usefixtures("by_itself")
@pytest.mark.parametrize(("limit", "status"), [("57.1", 0), ("57.2", 1)])
def test_coverage_is_reported(suite: pytest.Pytester, limit: str, status: int) -> None:
    """What was never exercised is listed, also of a conftest's charts; a limit may fail the run."""
    options = ("--statechart-coverage", f"--statechart-fail-under={limit}", "-k", "late")
    result = suite.runpytest_inprocess(*QUIET, *options)
    assert result.ret == status
    failure = "FAIL statechart coverage of 57.1% is below the required 57.2%"
    result.stdout.fnmatch_lines(
        [
            "*= statechart coverage =*",
            "chart *states *transitions *guards *total",
            "small *2/3 *1/2 *1/2 *57.1%",
            "never exercised in small:",
            "  state *resting",
            "  transition *idle --go--> resting",
            "  guard *idle --go--> scrolling [[]is_late]: never failed",
            *([failure] if status else []),
        ]
    )


@pytest.mark.usefixtures("by_itself")
@pytest.mark.slow
def test_coverage_is_added_up_over_workers(suite: pytest.Pytester) -> None:
    """Under pytest-xdist the workers' records are put together, whichever worker ran which test."""
    result = suite.runpytest_subprocess(*QUIET, "-n2", "--statechart-coverage")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["small *3/3  100% *2/2  100% *2/2  100% *100%"])


@pytest.mark.parametrize(
    "option",
    ["--setup-only", "--collect-only", "--setup-plan", "--fixtures", "--cache-show"],
)
@pytest.mark.sampled(5)
def test_no_limit_is_applied_if_no_test_runs(suite: pytest.Pytester, option: str) -> None:
    """Where pytest runs no test, no limit is applied and nothing is reported."""
    suite.makeini("[pytest]\naddopts = --statechart-fail-under=100")
    result = suite.runpytest_inprocess(option)
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*statechart coverage*")


def test_limit_without_any_chart_fails(pytester: pytest.Pytester) -> None:
    """Where a limit is set but no chart is used, something is wrong with the run, and it fails."""
    pytester.makepyfile("def test_nothing(): pass")
    result = pytester.runpytest_inprocess(*QUIET, "--statechart-fail-under=1")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["no chart was used", "FAIL statechart coverage of 0% *"])


@pytest.mark.parametrize("installed", [False, True], ids=["not installed", "installed"])
@pytest.mark.sampled(2)
def test_plugin_named_by_a_conftest_works(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    """A conftest can load the plugin; coverage counts the charts that are built after it."""
    pytester.makeconftest('pytest_plugins = ["prism.pytest_plugin"]')
    pytester.makepyfile(
        """
        def test_move(social_chart, make_agent):
            assert social_chart.fire(make_agent(), "feed_ready") == "scrolling"
        """
    )
    monkeypatch.delenv("PYTEST_PLUGINS")
    if installed:
        monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    warnings = () if installed else ("-W", "error")
    result = pytester.runpytest_subprocess(*warnings, "--statechart-coverage")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["social_media *2/8 *1/27 *"])


@pytest.mark.slow
def test_missing_extra_is_named(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its packages the extra is named in the error, and the rest works."""
    pytester.makepyfile(
        **{"blocked/hypothesis": "raise ModuleNotFoundError('none', name='hypothesis')"}
    )
    code = """
import prism.testing
from prism.testing import FakeOllama, ScriptedReasoner, assert_path, FrozenClock
try:
    prism.testing.explore
except ImportError as error:
    print(error)
"""
    monkeypatch.setenv("PYTHONPATH", str(pytester.path / "blocked"))
    result = pytester.run(sys.executable, "-W", "error", "-c", code)
    result.stdout.fnmatch_lines(
        [
            "*the package 'hypothesis' of the extra *prism-statecharts[[]testing]'*",
        ]
    )
