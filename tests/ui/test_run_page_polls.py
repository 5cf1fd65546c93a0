"""The page Run polls the server while its run is active, and no longer once it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

import cotlab
from cotlab.store import write
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore, RunProgress
from cotlab.store.log import open_log
from tests.support.served import Client, app


class Served(NamedTuple):
    """A server with its store, and a run that ended an hour ago."""

    server: str
    store: Store
    run: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    store = Store(folder / "store")
    run = cotlab.run_suite(
        "wordproblems", store=store.folder, model="faithful-a", mode=["remove"], limit=3
    ).run_id
    end_an_hour_ago(store, run)
    with app(folder) as server:
        yield Served(server, store, run)


@pytest.fixture(autouse=True)
def as_before(served: Served) -> Iterator[None]:
    yield
    set_status(served, "done")
    end_an_hour_ago(served.store, served.run)
    beat(served, "done")


def end_an_hour_ago(store: Store, run: str) -> None:
    with store.writing() as connection:
        connection.execute(
            "UPDATE runs SET ended_at = ended_at - INTERVAL 1 HOUR WHERE id = ?", [run]
        )


def set_status(served: Served, status: str) -> None:
    with served.store.writing() as connection:
        write.set_status(connection, served.run, status)


def beat(served: Served, status: str) -> None:
    live = LiveRunStore(served.store.log_path)
    live.write_heartbeat(served.run, RunProgress(status=status, items_done=0, items_total=3))
    live.close()
    with closing(
        open_log(served.store.log_path)
    ) as log:  # it does not grow stale while a slow machine draws the page
        log.execute("UPDATE live SET heartbeat = heartbeat + 600")


class Drawn(NamedTuple):
    """What the server sent for a page."""

    again: dict[str, float]
    """Seconds until each fragment runs again by itself, by its id."""
    texts: str
    """The page's texts."""
    page: str
    """The page's id."""


def drawn(client: Client) -> Drawn:
    again: dict[str, float] = {}
    texts: list[str] = []
    page = ""
    while True:
        message = ForwardMsg.FromString(client._socket.recv(timeout=60))
        kind = message.WhichOneof("type")
        if kind == "navigation":
            page = message.navigation.page_script_hash
        elif kind == "auto_rerun":
            again[message.auto_rerun.fragment_id] = message.auto_rerun.interval
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            texts.append(str(message.delta.new_element))
        elif (
            kind == "script_finished"
            and message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
        ):
            again, texts = {}, []
        elif kind == "script_finished":
            return Drawn(again, "\n".join(texts), page)


def opened(client: Client, served: Served) -> Drawn:
    client.send("run", f"run={served.run}")
    found = drawn(client)
    assert served.run in found.texts and "This page failed" not in found.texts
    return found


def come_back(client: Client, served: Served, before: Drawn) -> Drawn:
    """Return what the browser sends when a fragment of the page is due again."""
    message = BackMsg()
    message.rerun_script.page_script_hash, message.rerun_script.query_string = (
        before.page,
        f"run={served.run}",
    )
    (message.rerun_script.fragment_id,) = before.again
    message.rerun_script.is_auto_rerun = True
    client._socket.send(message.SerializeToString())
    return drawn(client)


@pytest.mark.parametrize("status", ["done", "stopped", "failed", "budget"])
def test_the_page_of_a_run_that_has_ended_does_not_come_back_by_itself(
    served: Served, status: str
) -> None:
    set_status(served, status)
    beat(served, status)
    end_an_hour_ago(served.store, served.run)
    with Client(served.server) as client:
        assert opened(client, served).again == {}


@pytest.mark.parametrize("status", ["running", "planned"])
def test_the_page_follows_a_run_until_it_ends_and_is_then_drawn_once_more(
    served: Served, status: str
) -> None:
    set_status(served, status)
    beat(served, "running")
    with Client(served.server) as client:
        found = opened(client, served)
        assert (
            list(found.again.values()) == [1.0]
            and "running" in found.texts
            and 'label: "Stop"' in found.texts
        )
        assert "0 / 3" in come_back(client, served, found).texts, "its counters alone"
        set_status(served, "done")
        end_an_hour_ago(served.store, served.run)
        beat(served, "done")
        last = come_back(client, served, found)
        assert last.again == {} and " · done 20" in last.texts and 'label: "Stop"' not in last.texts


def test_a_planned_run_that_no_process_has_yet_is_followed(served: Served) -> None:
    set_status(served, "planned")
    with Client(served.server) as client:
        assert list(opened(client, served).again.values()) == [1.0]


def test_a_run_that_has_just_ended_is_followed_until_its_process_has_made_the_estimates(
    served: Served,
) -> None:
    set_status(served, "done")
    beat(served, "done")  # by this process, which goes on
    with Client(served.server) as client:
        assert opened(client, served).again == {}, "they are there"
    with served.store.writing() as connection:
        connection.execute("CREATE TABLE made AS SELECT * FROM estimates")
        connection.execute("DELETE FROM estimates")
    with Client(served.server) as client:
        set_status(served, "done")
        found = opened(client, served)
        assert list(found.again.values()) == [1.0] and "No estimates yet" in found.texts
        with served.store.writing() as connection:
            connection.execute("INSERT INTO estimates SELECT * FROM made")
            connection.execute("DROP TABLE made")
        set_status(served, "done")
        end_an_hour_ago(served.store, served.run)
        last = come_back(client, served, found)
        assert (
            last.again == {} and " · done 20" in last.texts and "No estimates yet" not in last.texts
        )
