"""Cascades, their figures, and the trees that are drawn."""

from collections.abc import Callable
from itertools import pairwise
from math import dist
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from prism.analysis import read_log
from prism.analysis._tables.cascades import MISSING, TreePost
from prism.report._facts.run_facts import facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.cascades import CASCADES, MOST_POSTS_DRAWN, draw_tree


@pytest.mark.slow
def test_sizes_are_a_complementary_distribution(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """The figure counts the cascades of at least each size, single posts included."""
    lines = [make.post("x", root) for root in ("p", "q", "r")]
    lines += [make.post("y", f"p{number}", "p", "p") for number in range(2)]
    lines += [make.post("y", "q1", "q", "q")]
    (facts,), _ = facts_of(read_log(write_log(lines)))
    figures = PageFigures(facts.state_names)
    section = str(CASCADES.make(facts, "1", figures))
    (rows,) = figures.charts["figure-cascades-1"].alone()["datasets"].values()
    assert [(row["size"], row["cascades"]) for row in rows] == [(3, 1), (2, 2), (1, 3)]
    assert list(figures.drawings) == ["tree-1-1", "tree-1-2"]
    assert section.count("<details") == 2
    assert section.count("<details open") == 1


@pytest.mark.slow
def test_posts_without_answers_are_no_cascades(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """A log in which no post was answered has no such section."""
    (facts,), _ = facts_of(read_log(write_log([make.post("x", "p")])))
    assert CASCADES.make(facts, "1", PageFigures(())) is None


def test_the_thread_stands_below_its_tree(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """Who said what and when stands there as words, each answer a step further to the right."""
    lines = [
        make.post("ada", "p", text="<b>What</b> now?"),
        make.post("bo", "r", "p", "p", text="I agree."),
        make.post("cy", "s", "r", "p", text="x" * 500),
        make.like("ada", "r", "bo"),
    ]
    (facts,), _ = facts_of(read_log(write_log(lines)))
    section = str(CASCADES.make(facts, "1", PageFigures(facts.state_names)))
    thread = section[section.index('<ol class="thread') : section.index("</ol>")]
    assert [thread.count(f"below-{depth}") for depth in (0, 1, 2, 3)] == [1, 1, 1, 0]
    for words in ("&lt;b&gt;What", "bo replies", "I agree.", "(1 like)", "round 1", "xxx…"):
        assert words in thread


SVG = "{http://www.w3.org/2000/svg}"


def chain(length: int) -> list[TreePost]:
    """Make posts that each reply to the last."""
    return [post(f"p{number}", f"p{number - 1}" if number else None) for number in range(length)]


def broadcast(size: int) -> list[TreePost]:
    """Make posts that all reply to one."""
    return [post("p0", None), *(post(f"b{number}", "p0") for number in range(1, size))]


def post(name: str, parent: str | None, **facts: str) -> TreePost:
    """Make a post."""
    return TreePost(
        name,
        parent,
        **{
            "kind": "reply" if parent else "post",
            "agent_id": "ada",
            "text": f"text {name}",
            **facts,
        },
    )


def points(svg: str) -> list[tuple[float, float]]:
    """Return the places of the posts, the root last."""
    return [
        (float(circle.attrib["cx"]), float(circle.attrib["cy"]))
        for circle in ElementTree.fromstring(svg).iter(f"{SVG}circle")
    ]


@pytest.mark.parametrize(
    "posts",
    [chain(1), chain(2), chain(58), broadcast(30), broadcast(400), chain(40) + broadcast(300)[1:]],
)
def test_every_post_is_drawn_inside_the_picture(posts: list[TreePost]) -> None:
    """Every post has a dot and a line from its parent, inside the picture and on no other dot."""
    svg = draw_tree(posts)
    picture = ElementTree.fromstring(svg)
    found = points(svg)
    assert len(found) == len(posts)
    assert len(list(picture.iter(f"{SVG}path"))) == len(posts) - 1
    assert all(
        0 < x < float(picture.attrib["width"]) and 0 < y < float(picture.attrib["height"])
        for x, y in found
    )
    assert len(set(found)) == len(found)


def test_dots_do_not_overlap_in_a_broadcast() -> None:
    """Answers to the root of a broad cascade lie on a circle, some pixels apart."""
    *answers, root = points(draw_tree(broadcast(400)))
    distances = [dist(root, answer) for answer in answers]
    assert max(distances) - min(distances) < 0.2
    assert min(dist(one, other) for one, other in pairwise(answers)) > 5.8


def test_dots_do_not_overlap_in_a_bush() -> None:
    """If many answer the root and some go on, the rings are wide enough for their dots."""
    posts = [
        *broadcast(200),
        *(post(f"c{number}", f"b{number}") for number in range(1, 60, 3)),
        post("d", "c1"),
    ]
    found = points(draw_tree(posts))
    nearest = min(dist(one, other) for place, one in enumerate(found) for other in found[:place])
    assert nearest > 5.8


def test_a_deep_cascade_goes_from_left_to_right() -> None:
    """Each step of depth is a column further right, and 57 steps fit the page."""
    svg = draw_tree(chain(58))
    across = [x for x, _ in reversed(points(svg))]
    assert across == sorted(set(across))
    assert float(ElementTree.fromstring(svg).attrib["width"]) < 1000


def test_a_very_large_cascade_is_cut() -> None:
    """Only the first posts are drawn, and a depth beyond Python's recursion limit does no harm."""
    assert len(points(draw_tree(chain(5_000)))) == MOST_POSTS_DRAWN


@pytest.mark.slow
def test_a_large_cascade_says_what_is_left_out_of_it(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """Its picture and its thread have the first posts, and the command names the rest."""
    lines = [make.post("x", "p"), *(make.post("y", f"p{n}", "p", "p") for n in range(450))]
    (facts,), _ = facts_of(read_log(write_log(lines)))
    section = str(CASCADES.make(facts, "1", PageFigures(facts.state_names)))
    assert f"451 posts, of which the first {MOST_POSTS_DRAWN} are drawn" in section
    assert "The first 100 posts; all of them with  <code>prism log threads RUN --post p" in section
    assert section.count('<li class="below-') == 100


def test_texts_are_shown_as_texts() -> None:
    """Markup, quotes and characters that XML lacks are shown as text, and long texts are cut."""
    texts = ("<script>x</script>&'\"", "a\x00b", "y" * 100_000)
    svg = draw_tree(
        [
            post("p", None, text=texts[0]),
            *(post(text, "p", text=text, agent_id=text) for text in texts[1:]),
        ]
    )
    titles = [title.text or "" for title in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    assert "ada (post): <script>x</script>&'\"" in titles
    assert any("a\ufffdb" in title for title in titles)
    assert max(map(len, titles)) <= 160
    assert len(svg) < 5_000


def test_a_lost_post_is_marked() -> None:
    """A missing post is marked; a post of an unknown kind names its author."""
    svg = draw_tree([TreePost("gone", None, MISSING, "", ""), post("p", "gone", kind="quote")])
    assert "gone: not in the log" in svg
    assert "ada (quote): text p" in svg
