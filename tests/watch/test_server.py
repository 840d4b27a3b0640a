"""What the server answers, and to whom: one browser on this machine, and nothing else."""

import gzip
import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import create_connection
from threading import Timer
from typing import Any

import httpx
import orjson
import pytest

from prism.analysis import read_log
from prism.errors import InputError
from prism.watch import Watching, watch
from tests.kit import make
from tests.kit.waiting import wait_until

Show = Callable[[Path], Watching]
Visit = Callable[[Watching], httpx.Client]

PATHS = ("/", "/head", "/time", "/static/watch.js", "/events")


def ask(client: httpx.Client, path: str, **query: Any) -> Any:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def watching(shown: Show, folder: Path) -> Watching:
    return shown(folder)


@pytest.fixture(scope="module")
def client(run: tuple[Path, Any]) -> Iterator[httpx.Client]:
    """Yield a browser of a server that no test changes, whose log has been read."""
    watching = watch(run[0])
    with httpx.Client(base_url=watching.url.partition("/?")[0], timeout=30) as found:
        assert found.get(watching.url).status_code == 200
        wait_until(lambda: (head := ask(found, "/head"))["read"] == head["size"] > 0)
        yield found
    watching.stop()


def test_the_token_is_good_once_and_becomes_a_cookie(watching: Watching, visit: Visit) -> None:
    """The token is good once and becomes a cookie."""
    client = visit(watching)
    assert client.get("/head").status_code == 200
    with httpx.Client(base_url=client.base_url) as stranger:
        assert stranger.get(watching.url).status_code == 403
        assert [stranger.get(path).status_code for path in PATHS] == [403] * len(PATHS)
        stranger.cookies.set(f"prism-watch-{client.base_url.port}", "guess")
        assert stranger.get("/head").status_code == 403


@pytest.mark.slow
def test_the_cookie_is_for_no_script_and_no_other_site(watching: Watching) -> None:
    """The cookie is for no script and no other site."""
    said = httpx.get(watching.url).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in said.split(";")}


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:{port}"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1.evil.example:{port}"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
    ],
)
def test_other_pages_and_other_names_get_nothing(
    client: httpx.Client, headers: dict[str, str]
) -> None:
    """Other pages and other names get nothing."""
    filled = {name: text.format(port=client.base_url.port) for name, text in headers.items()}
    for path in PATHS:
        answer = client.get(path, headers=filled)
        assert answer.status_code == 403
        assert "real" not in answer.text


@pytest.mark.slow
def test_a_token_is_not_spent_by_a_request_that_is_refused(watching: Watching) -> None:
    """A token is not spent by a request that is refused."""
    # a page of somebody else's that guesses the port learns and breaks nothing
    base = watching.url.partition("/?")[0]
    assert httpx.get(f"{base}/?token=guess").status_code == 403
    assert httpx.get(watching.url, headers={"Host": "evil.example"}).status_code == 403
    assert httpx.get(watching.url).status_code == 200


def test_every_answer_forbids_foreign_sources_and_frames(client: httpx.Client) -> None:
    """Every answer forbids foreign sources and frames."""
    for path in PATHS[:-1]:
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "http" not in policy


def test_pages_are_only_read(client: httpx.Client) -> None:
    """Pages are only read."""
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert [client.request(method, path).status_code for path in PATHS] == [405] * len(PATHS)


@pytest.mark.parametrize("name", ["../__init__.py", "..%2f__init__.py", "__init__.py", "page.html"])
def test_only_the_pages_own_files_are_given(client: httpx.Client, name: str) -> None:
    """Only the page's own files are given."""
    assert client.get(f"/static/{name}").status_code == 404


def test_a_round_shows_the_counts_of_the_log(
    client: httpx.Client, events: list[dict[str, Any]]
) -> None:
    """A round shows the counts of the log."""
    ends = {event["round"]: event for event in events if event["event"] == "round.ended"}
    for number, event in ends.items():
        view = ask(client, "/round", round=number)
        html = {each["anchor"]: each["html"] for each in view["sections"]}
        assert f"<dt>transitions</dt><dd>{event['transitions']:,}</dd>" in html["numbers"]
        for state, count in event["states"].items():
            box = html["the-chart"].partition(f'data-state="{state}"')[2].partition("</g>")[0]
            assert f">{count:,} agent" in box


def test_what_happened_in_a_round_leads_to_its_posts(
    client: httpx.Client, events: list[dict[str, Any]]
) -> None:
    """The list of a round has its events alone, with the posts that were written in it."""
    published = [each for each in events if each["event"] == "post.published"]
    at = {each["post_id"]: each["round"] for each in published}
    section = ask(client, "/round", round=2)["sections"][-1]
    assert section["heading"] == "What happened"
    listed = set(re.findall(r'data-post="([^"]+)"', section["html"]))
    assert {post for post in at if at[post] == 2} <= listed <= {post for post in at if at[post] < 3}


def test_what_went_wrong_in_a_round_stands_before_what_else_happened(
    shown: Show, visit: Visit, tmp_path: Path
) -> None:
    """What went wrong in a round stands before what else happened."""
    lost = make.decision("ada", ["idle", "busy"], "idle", source="fallback", reason="no reply")
    folder = tmp_path / "real"
    folder.mkdir()
    lines = [make.started(), make.joined("ada", "idle"), lost]
    (folder / "events.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    client = visit(shown(folder))
    wait_until(lambda: (head := ask(client, "/head"))["read"] == head["size"] > 0)
    *_, wrong, happened = ask(client, "/round", round=lost["round"])["sections"]
    assert "fallback" in wrong["html"]
    assert "ada" in happened["html"]


@pytest.mark.slow
def test_agents_behind_a_state_and_an_arrow_are_as_many_as_shown(
    client: httpx.Client, events: list[dict[str, Any]]
) -> None:
    """Agents behind a state and an arrow are as many as shown."""
    ends = {event["round"]: event for event in events if event["event"] == "round.ended"}
    for number, event in ends.items():
        for state, count in event["states"].items():
            assert ask(client, "/agents", round=number, state=state)["number"] == count, state

    moves = [each for each in events if each["event"] == "statechart.transition"]
    ends_of = {(each["from_state"], each["to_state"]) for each in moves}
    for source, target in ends_of:
        own = [
            each["agent_id"]
            for each in moves
            if (each["round"], each["from_state"], each["to_state"]) == (2, source, target)
        ]
        found = ask(client, "/agents", round=2, source=source, target=target)
        assert dict(found["agents"]) == Counter(own)


def test_all_agents_are_a_table_to_search_and_sort(client: httpx.Client, folder: Path) -> None:
    """The table of the report is the viewer's, too: its counts are those of the log."""
    (table,) = (
        each["html"] for each in ask(client, "/time")["sections"] if each["anchor"] == "agents"
    )
    assert 'class="searchable"' in table
    for row in read_log(folder).rows("agents"):
        own = table.partition(f'<span data-agent="{row["agent_id"]}">')[2].partition("</tr>")[0]
        assert row["state"] in own
        assert f'data-value="{row["transitions"]}"' in own


def test_an_agent_is_found_and_its_story_told(client: httpx.Client) -> None:
    """An agent's page has the chosen round first, then what it was asked, then the run."""
    view = ask(client, "/agent", agent="agent_0007", round=2)
    html = {each["anchor"]: each["html"] for each in view["sections"]}
    assert next(iter(html)) == "what-it-did"
    assert {"what-it-did", "its-path-on-the-chart", "all-that-it-did"} <= set(html)
    assert "round 2, tick" in html["what-it-did"]
    assert not re.search(r"round [13], tick", html["what-it-did"])
    assert 'data-round="3"' in html["all-that-it-did"]
    assert re.search(r"About.*post_id post_\d+", html["what-it-was-asked"])
    assert "round 3" not in html["what-it-was-asked"]
    missing = client.get("/agent", params={"agent": "nobody"})
    assert (missing.status_code, "no agent 'nobody'" in missing.json()["problem"]) == (400, True)


def test_a_post_leads_to_its_thread(
    client: httpx.Client, events: list[dict[str, Any]], folder: Path
) -> None:
    """Any post of a thread leads to all of it, with its likes."""
    posts = [each for each in events if each["event"] == "post.published"]
    likes = Counter(each["post_id"] for each in events if each["event"] == "post.liked")
    for (root,) in read_log(folder).sql("select root_id from cascades limit 3").fetchall():
        own = [each["post_id"] for each in posts if root in (each["post_id"], each["root_id"])]
        for post in {own[0], own[-1]}:
            (thread,) = ask(client, "/post", post=post)["sections"]
            shown = re.findall(r'data-post="([^"]*)"', thread["html"])
            assert shown[0] == root
            assert f'<mark><span data-post="{post}">' in thread["html"]
            assert sorted(shown) == sorted(own)
            said = re.findall(r"(\d+) likes?", thread["html"])
            assert said == [str(likes[each]) for each in shown if likes[each]]
    missing = client.get("/post", params={"post": "nothing"})
    assert (missing.status_code, "no post 'nothing'" in missing.json()["problem"]) == (400, True)


@pytest.mark.parametrize("number", ["-1", "1.5", "x", "9" * 30])
def test_what_is_no_number_of_a_round_is_refused(client: httpx.Client, number: str) -> None:
    """What is no number of a round is refused in words."""
    for path in ("/round", "/agents"):
        answer = client.get(path, params={"round": number, "state": "idle"})
        assert answer.status_code == 400
        assert "round" in answer.json()["problem"]


def test_a_round_that_has_not_begun_is_told(client: httpx.Client) -> None:
    """An address may name a later round, and a run that is resumed loses some: that is no error."""
    answer = client.get("/round", params={"round": "99"})
    assert answer.status_code == 200
    (section,) = answer.json()["sections"]
    assert section["html"] == "<p>Round 99 has not begun: the last is 4.</p>"


@pytest.mark.slow
def test_the_report_is_the_page_that_stays(client: httpx.Client) -> None:
    """The report is the page that stays."""
    answer = client.get("/report")
    assert answer.status_code == 200
    assert answer.text.startswith("<!DOCTYPE html>")
    assert "attachment" in answer.headers["content-disposition"]


def test_news_come_with_the_head_and_again_when_the_log_grows(
    tmp_path: Path, shown: Show, visit: Visit, folder: Path
) -> None:
    """News come with the head and again when the log grows."""
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    log = tmp_path / "real" / "events.jsonl"
    log.parent.mkdir()
    log.write_bytes(b"".join(lines[:2000]))
    client = visit(shown(log.parent))
    with client.stream("GET", "/events") as news:
        heads = (
            json.loads(line[6:])["run"] for line in news.iter_lines() if line.startswith("data: ")
        )
        while next(heads)["read"] < log.stat().st_size:
            pass
        with log.open("ab") as file:
            file.write(b"".join(lines[2000:]))
        while next(heads)["read"] < log.stat().st_size:
            pass
    assert ask(client, "/head")["ended"] == 4


@pytest.mark.slow
def test_an_interruption_ends_open_streams_whole(watching: Watching, visit: Visit) -> None:
    """Whoever waits is interrupted; the server answers until it is stopped, and not longer."""
    client = visit(watching)
    with client.stream("GET", "/events") as news:
        lines = news.iter_lines()
        assert next(lines).startswith("data: ")
        Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            watching.wait()
        assert client.get("/head").status_code == 200
        watching.stop()
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
def test_a_log_that_is_damaged_meanwhile_is_told_on_the_page(
    tmp_path: Path,
    shown: Show,
    visit: Visit,
    folder: Path,
    change: Callable[[Path], object],
    said: str,
) -> None:
    """A log that is damaged meanwhile is told on the page."""
    log = tmp_path / "real" / "events.jsonl"
    log.parent.mkdir()
    log.write_bytes((folder / "events.jsonl").read_bytes())
    client = visit(shown(log.parent))
    wait_until(lambda: (head := ask(client, "/head"))["read"] == head["size"] > 0)
    change(log)
    wait_until(lambda: said in " ".join(ask(client, "/head")["notes"]))
    for path in ("/round", "/time", "/head"):
        answer = client.get(path)
        assert answer.status_code in (200, 400)
        assert "Traceback" not in answer.text


def test_a_compressed_log_is_refused(shown: Show, folder: Path, tmp_path: Path) -> None:
    """It does not grow: whoever unpacks it can watch it."""
    packed = tmp_path / "real" / "events.jsonl.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress((folder / "events.jsonl").read_bytes()))
    with pytest.raises(InputError, match="is compressed: unpack it to watch it"):
        shown(packed)


def test_nothing_is_written_to_the_folder(
    shown: Show, visit: Visit, folder: Path, tmp_path: Path
) -> None:
    """The log may be read only, and stays as it is."""
    log = tmp_path / "real" / "events.jsonl"
    log.parent.mkdir()
    log.write_bytes((folder / "events.jsonl").read_bytes())
    log.chmod(0o400)
    before = log.stat()
    client = visit(shown(log.parent))
    wait_until(lambda: ask(client, "/head")["read"] == before.st_size)
    ask(client, "/time")
    after = log.stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    assert [*log.parent.iterdir()] == [log]


def test_a_port_that_is_taken_is_told(watching: Watching, folder: Path) -> None:
    """A port that is taken is told."""
    port = httpx.URL(watching.url).port
    with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{port}"):
        watch(folder, port=port or 0)


def test_what_is_no_run_is_told(tmp_path: Path) -> None:
    """What is no run is told."""
    with pytest.raises(InputError, match="give the folder of a run"):
        watch(tmp_path)
    with pytest.raises(InputError, match="no such file or folder"):
        watch(tmp_path / "nowhere")
