"""What the server answers, and to whom: one browser on this machine, and nothing else."""

import gzip
import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import create_connection, gethostname
from threading import Timer
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse

from prism.analysis import read_log
from prism.errors import InputError
from prism.watch import Watching, watch
from prism.watch.guard import Guard
from tests.kit.visits import Visitor, visiting
from tests.kit.waiting import wait_until

Show = Callable[[Path], Watching]
Visit = Callable[[Any], Visitor]

PATHS = ("/", "/head", "/time", "/static/watch.js", "/events")


@pytest.fixture(scope="module")
def client(run: tuple[Path, Any]) -> Iterator[Visitor]:
    """Yield a browser of a server that no test changes, whose log has been read."""
    with visiting(run[0]) as visitor:
        yield visitor


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    """Return a log that a test may change."""
    log = tmp_path / "real" / "events.jsonl"
    log.parent.mkdir()
    log.write_bytes((folder / "events.jsonl").read_bytes())
    return log


def test_the_token_is_good_once_and_becomes_a_cookie(show_run: Show, folder: Path) -> None:
    """No guess and no request that is refused spends it, and no script reads the cookie."""
    url = show_run(folder).url
    base = url.partition("/?")[0]
    assert httpx.get(f"{base}/?token=guess").status_code == 403
    assert httpx.get(url, headers={"Host": "evil.example"}).status_code == 403
    assert httpx.get(url.replace("/?", "/head?")).status_code == 403
    with httpx.Client(base_url=base) as client, httpx.Client(base_url=base) as stranger:
        cookie = client.get(url).headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in cookie.split(";")}
        assert client.get("/head").status_code == 200
        assert stranger.get(url).status_code == 403
        assert [stranger.get(path).status_code for path in PATHS] == [403] * len(PATHS)
        stranger.cookies.set(f"prism-watch-{client.base_url.port}", "guess")
        assert stranger.get("/head").status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:{port}"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
    ],
)
def test_other_pages_and_other_names_get_nothing(client: Visitor, headers: dict[str, str]) -> None:
    """Other pages and other names get nothing."""
    filled = {name: text.format(port=client.base_url.port) for name, text in headers.items()}
    for path in PATHS:
        answer = client.get(path, headers=filled)
        assert answer.status_code == 403
        assert "real" not in answer.text


def test_every_answer_forbids_foreign_sources_and_frames(client: Visitor) -> None:
    """Every answer forbids foreign sources and frames."""
    for path in PATHS[:-1]:
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "http" not in policy


def test_pages_are_only_read(client: Visitor) -> None:
    """Pages are only read."""
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert [client.request(method, path).status_code for path in PATHS] == [405] * len(PATHS)


@pytest.mark.parametrize("name", ["../__init__.py", "..%2f__init__.py", "__init__.py", "page.html"])
def test_only_the_pages_own_files_are_given(client: Visitor, name: str) -> None:
    """Only the page's own files are given."""
    assert client.get(f"/static/{name}").status_code == 404


def test_a_round_shows_the_counts_of_the_log(client: Visitor, events: list[dict[str, Any]]) -> None:
    """A round shows the counts of the log."""
    ends = {event["round"]: event for event in events if event["event"] == "round.ended"}
    for number, event in ends.items():
        html = client.html("/round", round=number)
        assert f"<dt>transitions</dt><dd>{event['transitions']:,}</dd>" in html["numbers"]
        for state, count in event["states"].items():
            box = html["the-chart"].partition(f'data-state="{state}"')[2].partition("</g>")[0]
            assert f">{count:,} agent" in box


def test_what_happened_in_a_round_leads_to_its_posts(
    client: Visitor, events: list[dict[str, Any]]
) -> None:
    """The list of a round has its events alone, with the posts that were written in it."""
    published = [each for each in events if each["event"] == "post.published"]
    at = {each["post_id"]: each["round"] for each in published}
    section = client.ask("/round", round=2)["sections"][-1]
    assert section["heading"] == "What happened"
    listed = set(re.findall(r'data-post="([^"]+)"', section["html"]))
    assert {post for post in at if at[post] == 2} <= listed <= {post for post in at if at[post] < 3}


def test_all_agents_are_a_table_to_search_and_sort(client: Visitor, folder: Path) -> None:
    """The table of the report is the viewer's, too: its counts are those of the log."""
    table = client.html("/time")["agents"]
    assert 'class="searchable"' in table
    for row in read_log(folder).rows("agents"):
        own = table.partition(f'<span data-agent="{row["agent_id"]}">')[2].partition("</tr>")[0]
        assert row["state"] in own
        assert f'data-value="{row["transitions"]}"' in own


def test_a_post_leads_to_its_thread(
    client: Visitor, events: list[dict[str, Any]], folder: Path
) -> None:
    """Any post of a thread leads to all of it, with its likes."""
    posts = [each for each in events if each["event"] == "post.published"]
    likes = Counter(each["post_id"] for each in events if each["event"] == "post.liked")
    for (root,) in read_log(folder).sql("select root_id from cascades limit 3").fetchall():
        own = [each["post_id"] for each in posts if root in (each["post_id"], each["root_id"])]
        for post in {own[0], own[-1]}:
            (thread,) = client.ask("/post", post=post)["sections"]
            shown = re.findall(r'data-post="([^"]*)"', thread["html"])
            assert shown[0] == root
            assert f'<mark><span data-post="{post}">' in thread["html"]
            assert sorted(shown) == sorted(own)
            said = re.findall(r"(\d+) likes?", thread["html"])
            assert said == [str(likes[each]) for each in shown if likes[each]]


@pytest.mark.parametrize(
    ("path", "query", "words"),
    [
        ("/agent", {"agent": "nobody"}, "no agent 'nobody'"),
        ("/post", {"post": "nothing"}, "no post 'nothing'"),
        *(("/round", {"round": number}, "round") for number in ("-1", "1.5", "x", "9" * 30)),
        ("/agents", {"round": "x", "state": "idle"}, "round"),
    ],
)
def test_what_there_is_not_is_refused(
    client: Visitor, path: str, query: dict[str, str], words: str
) -> None:
    """The answer says so in words."""
    answer = client.get(path, params=query)
    assert (answer.status_code, words in answer.json()["problem"]) == (400, True)


def test_a_round_that_has_not_begun_is_reported(client: Visitor) -> None:
    """An address may name a later round, and a run that is resumed loses some: that is no error."""
    answer = client.get("/round", params={"round": "99"})
    assert answer.status_code == 200
    (section,) = answer.json()["sections"]
    assert section["html"] == "<p>Round 99 has not begun: the last is 4.</p>"


def test_news_come_with_the_head_and_again_when_the_log_grows(copied: Path, visit: Visit) -> None:
    """News come with the head and again when the log grows."""
    lines = copied.read_bytes().splitlines(keepends=True)
    copied.write_bytes(b"".join(lines[:2000]))
    client = visit(copied.parent)
    with client.stream("GET", "/events") as news:
        heads = (
            json.loads(line[6:])["run"] for line in news.iter_lines() if line.startswith("data: ")
        )
        while next(heads)["read"] < copied.stat().st_size:
            pass
        with copied.open("ab") as file:
            file.write(b"".join(lines[2000:]))
        while next(heads)["read"] < copied.stat().st_size:
            pass
    assert client.ask("/head")["ended"] == 4


@pytest.mark.slow
def test_an_interruption_ends_open_streams_whole(folder: Path, visit: Visit) -> None:
    """Whoever waits is interrupted; the server answers until it is stopped, and not longer."""
    client = visit(folder)
    with client.stream("GET", "/events") as news:
        lines = news.iter_lines()
        assert next(lines).startswith("data: ")
        Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            client.watching.wait()
        assert client.get("/head").status_code == 200
        client.watching.stop()
        with pytest.raises(ConnectionRefusedError):
            create_connection((str(client.base_url.host), client.base_url.port), timeout=30)
        # one that is cut off raises an error
        assert "" in [*lines]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda log: log.write_bytes(b""), "was truncated"),
        (lambda log: log.unlink(), "is gone"),
        (lambda log: log.write_bytes(b"\xff" * 4_000_000), "has different lines"),
        (lambda log: log.open("ab").write(b"{broken\n" * 3), "JSON"),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.slow
def test_a_log_that_is_damaged_meanwhile_is_reported_on_the_page(
    copied: Path, visit: Visit, change: Callable[[Path], object], said: str
) -> None:
    """A log that is damaged meanwhile is told on the page."""
    client = visit(copied.parent)
    change(copied)
    wait_until(lambda: said in " ".join(client.ask("/head")["notes"]))
    for path in ("/round", "/time", "/head"):
        answer = client.get(path)
        assert answer.status_code in (200, 400)
        assert "Traceback" not in answer.text


@pytest.mark.slow
def test_nothing_is_written_to_the_folder(copied: Path, visit: Visit) -> None:
    """The log may be read only, and stays as it is."""
    copied.chmod(0o400)
    before = copied.stat()
    visit(copied.parent).ask("/time")
    after = copied.stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    assert [*copied.parent.iterdir()] == [copied]


def test_what_cannot_be_shown_is_refused(client: Visitor, folder: Path, tmp_path: Path) -> None:
    """What is no run, a log that is packed and does not grow, and a port that is taken."""
    packed = tmp_path / "packed" / "events.jsonl.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(b"{}"))
    port = client.base_url.port or 0
    for path, options, words in (
        (tmp_path, {}, "give the folder of a run"),
        (tmp_path / "nowhere", {}, "no such file or folder"),
        (packed, {}, "is compressed: unpack it to watch it"),
        (folder, {"port": port}, f"cannot listen on 127.0.0.1:{port}"),
    ):
        with pytest.raises(InputError, match=words):
            watch(path, **options)


@pytest.mark.parametrize(
    ("listens", "port", "host", "status"),
    [
        ("127.0.0.1", 8000, "localhost:8000", 200),
        ("::1", 8000, "[::1]:8000", 200),
        ("::1", 8000, "192.168.0.7:8000", 403),
        ("0.0.0.0", 8000, "192.168.0.7:8000", 200),
        ("0.0.0.0", 8000, "[fe80::1]:8000", 200),
        ("0.0.0.0", 8000, f"{gethostname()}:8000", 200),
        ("0.0.0.0", 8000, "evil.example:8000", 403),
        ("Lab.Example", 8000, "lab.example:8000", 200),
        ("127.0.0.1", 80, "127.0.0.1", 200),
        ("::1", 80, "[::1]", 200),
        ("127.0.0.1", 80, "evil.example", 403),
        ("127.0.0.1", 8000, "127.0.0.1", 403),
        ("127.0.0.1", 8000, "127.0.0.1:80", 403),
    ],
)
async def test_an_address_is_answered_and_a_foreign_name_is_not(
    listens: str, port: int, host: str, status: int
) -> None:
    """On all interfaces any address of them is, and the port of http may be left out."""
    guard = Guard(PlainTextResponse("page"), listens, port)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard)) as client:
        answer = await client.get(f"http://any/?token={guard.token}", headers={"Host": host})
    assert answer.status_code == status
