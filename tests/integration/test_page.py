"""The page in a real browser, on the real stack, through Airflow's real login."""

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from playwright.sync_api import Browser, Locator, Page, Route, expect
from prometheus_client.parser import text_string_to_metric_families

from kafka_archiver.audit.inspection import audit, publish
from kafka_archiver.config import parse_archive
from kafka_archiver.store import Store, open_store
from scripts.stack.kafka import Kafka
from scripts.stack.paths import ROOT
from scripts.stack.s3 import S3
from tests.support.airflow import Airflow
from tests.support.browser import CHROMIUM, PHONE, chromium, log_in, reloaded, serious, settled, site_of
from tests.support.prometheus import PROMETHEUS, prometheus
from tests.support.schedules import quiet_hours
from tests.support.topics import Record, new_topic, produce
from tests.support.waiting import until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium"),
]


@dataclass(frozen=True)
class Scene:
    """An archive on the stack, and its page's address.

    `early`: an hour older than the archive; `lettered`: one with a dead letter; `corrected`: the YAML that takes it.
    """

    url: str
    name: str
    topic: str
    yaml: str
    corrected: str
    early: datetime
    lettered: datetime
    brokers: str
    store: Store

    @property
    def dag(self) -> str:
        return f"archive_{self.name}"

    def cell(self, moment: datetime) -> str:
        """The selector of an hour in the table."""
        return f'a[href$="/hours/{moment:%Y-%m-%dT%H}"]'


@pytest.fixture(scope="module")
def scene(airflow: Airflow, kafka: Kafka, s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """An archive that began two intervals ago; its first run has succeeded. An older interval has records, too."""
    schedule, last = quiet_hours()
    name, topic = f"orders{uuid.uuid4().hex[:4]}", new_topic(kafka.bootstrap_servers)
    early, start = last - timedelta(hours=2, minutes=30), last - timedelta(hours=2)
    moment = datetime.now(UTC)
    step = (moment - start) / 200
    moments = [*[early] * 20, *(start + number * step for number in range(200))]
    lettered = start + timedelta(hours=1)
    too_long = record(lettered)._replace(value=b" " * 2000)
    produce(kafka.bootstrap_servers, topic, [*map(record, moments), too_long])
    source, policies = f"topics: [{topic}], start: {start:%Y-%m-%dT%H:%M:%SZ}", "policies: {bad_record: dead_letter}\n"
    corrected, yaml = (
        f"description: The orders of all shops\nschedule: {schedule}\nsource: {{{source}, max_value_bytes: {most}}}\n"
        f"store: {{url: 's3://archive/{name}', content: record, chunk_records: 1000}}\n{policies}"
        for most in (10_000, 1000)
    )
    dag = airflow.add_archive(name, yaml)
    airflow.pause(dag, False)
    assert set(airflow.wait_for_runs(dag, 1).values()) == {"success"}
    store = open_store(f"s3://archive/{name}", s3.options())
    with site_of(airflow, tmp_path_factory.mktemp("api")) as url:
        yield Scene(url, name, topic, yaml, corrected, early, lettered, kafka.bootstrap_servers, store)
    airflow.remove_archive(name)


def record(moment: datetime) -> Record:
    return Record(0, int(moment.timestamp() * 1000), b'{"shop": "Kassel", "amount": 12.5}')


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


@pytest.fixture
def visit(browser: Browser, scene: Scene) -> Iterator[Any]:
    """Opens a browser in which somebody is logged in."""
    yield partial(log_in, browser, scene.url)
    for context in browser.contexts:
        context.close()


def started(page: Page, airflow: Airflow, scene: Scene) -> None:
    """Wait until the run that the page has started has succeeded, and all others have ended."""
    status = page.locator("[role=status].ok")
    expect(status).to_contain_text("Started")
    name = re.findall(r"Started (.*?)\.\s", status.inner_text())[0]
    until(lambda: airflow.runs(scene.dag)[0], seconds=10)
    states = airflow.wait_for_runs(scene.dag, len(airflow.runs(scene.dag)))
    assert name.startswith("backfill") or states[name] == "success", airflow.tasks(scene.dag, name)


def test_the_page_is_in_airflows_navigation_and_leads_back_to_airflow(visit: Any, scene: Scene) -> None:
    page = visit("viktor", "/")
    page.get_by_role("link", name="Archives", exact=True).click()
    frame = page.frame_locator("iframe[title=Archives]")
    frame.get_by_role("link", name=scene.name, exact=True).click()
    expect(frame.locator("h1")).to_contain_text(scene.name)
    expect(page).to_have_url(re.compile(rf"{scene.url}/plugin/archiver/.*{scene.name}"))
    frame.get_by_role("link", name=f"DAG {scene.dag}").click()
    page.wait_for_url(f"{scene.url}/dags/{scene.dag}")


def test_the_dashboard_has_no_panel_while_all_is_well(visit: Any, scene: Scene) -> None:
    page, asked = visit("viktor"), f"{scene.url}/archiver/trouble"
    answer = page.request.get(asked).json()
    assert scene.name not in [each["name"] for each in answer["archives"]]
    # Other tests may have left archives in trouble.
    page.route(asked, lambda route: route.fulfill(json={"archives": [], "more": 0, "awaited": False}))
    with page.expect_response(asked):
        page.goto(scene.url)
    assert page.get_by_role("region", name="Archives in trouble").count() == 0


def test_strangers_see_the_login_and_viewers_see_no_forms(visit: Any, scene: Scene) -> None:
    answer = httpx.get(f"{scene.url}/archiver/archives/{scene.name}")
    assert (answer.status_code, answer.headers["location"].split("?")[0]) == (303, "/auth/login")
    assert scene.name not in httpx.get(f"{scene.url}/archiver/health").text
    assert httpx.get(f"{scene.url}/archiver/metrics").status_code == 401
    page = visit("viktor", f"/archiver/archives/{scene.name}")
    expect(page.locator("h1")).to_contain_text(scene.name)
    assert page.locator("form[method=post]").count() == 0
    page = visit("olga", f"/archiver/archives/{scene.name}")
    assert page.locator("[aria-labelledby=act] form[method=post]").count() == 6


def test_another_site_cannot_act_with_the_users_browser(visit: Any, scene: Scene, airflow: Airflow) -> None:
    page, before = visit("olga"), len(airflow.runs(scene.dag))
    target = f"{scene.url}/archiver/archives/{scene.name}/do/run"
    page.route("http://evil.example/", lambda route: route.fulfill(body="<h1>prizes</h1>", content_type="text/html"))
    page.goto("http://evil.example/")
    form = f"<form method=post action={target}><button>go</button></form>"
    page.evaluate(f"document.body.innerHTML = {form!r}")
    with page.expect_response(target) as answer:
        page.click("button")
    assert answer.value.status in (401, 403)
    assert len(airflow.runs(scene.dag)) == before


def test_a_healthy_archive_then_a_backfill_whose_hour_turns(visit: Any, scene: Scene, airflow: Airflow) -> None:
    page = visit("olga", f"/archiver/archives/{scene.name}")
    cell = page.locator(scene.cell(scene.early))
    assert cell.count() == 0 or "complete" not in (cell.locator("..").get_attribute("class") or "").split()
    form = page.locator("form[action$='/do/backfill']")
    for field in ("first", "last"):
        form.locator(f"input[name={field}]").fill(f"{scene.early:%Y-%m-%dT%H:00}")
    form.get_by_role("button").click()
    started(page, airflow, scene)
    reloaded(page, f"td.complete {scene.cell(scene.early)}")
    reloaded(page, "h1 .pill.healthy, h1 .pill.warning")
    page.click(scene.cell(scene.early))
    expect(page.locator(".pill.complete")).to_be_visible()
    keys = page.locator("th.key").all_inner_texts()
    # The first object has the records of the backfill.
    assert "+00000000000000000000." in keys[0]
    assert all(scene.store.head(key) for key in keys)
    log = page.get_by_role("link", name="log").first
    assert (log.get_attribute("href") or "").startswith(f"/dags/{scene.dag}/runs/")


def test_the_buttons_of_an_hour_replay_its_dead_letters_and_rebuild_it(
    visit: Any, scene: Scene, airflow: Airflow
) -> None:
    hours = f"/archiver/archives/{scene.name}/hours"
    lettered, early = f"{hours}/{scene.lettered:%Y-%m-%dT%H}", f"{hours}/{scene.early:%Y-%m-%dT%H}"
    page = visit("olga")
    # What does a dead letter look like, and why is it one? One click from the list.
    until(lambda: page.reload() and row_of(page, scene).locator("a[href$='/dead-letters']").count(), every=1)
    row_of(page, scene).locator("a[href$='/dead-letters']").click()
    expect(page.locator(".record .reason").first).to_contain_text("max_value_bytes")
    page.goto(f"{scene.url}{lettered}")
    expect(page.get_by_role("region", name="Reasons")).to_contain_text("max_value_bytes")
    (airflow.archives / f"{scene.name}.yaml").write_text(f"archive: {scene.name}\n{scene.corrected}")
    page.locator("form[action$='/do/dead-letters'] button").click()
    started(page, airflow, scene)
    page.goto(f"{scene.url}{lettered}")
    reloaded(page, "dt:text-is('Dead letters') + dd:text-is('0')")
    expect(page.locator("th.key", has_text="+r1.")).to_have_count(1)
    page.goto(f"{scene.url}{early}")
    page.locator("form[action$='/do/rebuild'] button").click()
    expect(page.get_by_role("alert")).to_contain_text("It rewrites")
    page.get_by_role("button", name="Yes, start it").click()
    started(page, airflow, scene)
    page.goto(f"{scene.url}{early}")
    reloaded(page, ".pill.complete")
    keys = page.locator("th.key").all_inner_texts()
    assert keys
    assert all(re.search(r"[+]r[12][.]", key) and scene.store.head(key) for key in keys), keys
    # Each run has a link to the log of the DAG run that worked on it.
    rows = page.get_by_role("region", name="Runs", exact=True).locator("tbody tr")
    assert rows.count() == rows.filter(has=page.get_by_role("link", name="log", exact=True)).count() > 0


def test_a_restore_is_started_from_the_page_and_shown_as_verified(visit: Any, scene: Scene, airflow: Airflow) -> None:
    page, dag, copy = visit("olga", f"/archiver/archives/{scene.name}"), f"restore_{scene.name}", f"{scene.topic}-copy"
    page.get_by_role("link", name="Restores, and restore to Kafka").click()
    form = page.locator("form[action$='/do/restore']")
    form.locator("textarea[name=rename]").fill(f"{scene.topic}={copy}")
    form.get_by_label("Create topics").check()
    form.get_by_role("button").click()
    expect(page.locator(".note", has_text="records of 1 partition")).to_contain_text(f"{scene.topic} to {copy}")
    page.get_by_role("button", name="Yes, start it").click()
    expect(page.locator("[role=status].ok")).to_contain_text("Started")
    [(run, state)] = airflow.wait_for_runs(dag, 1).items()
    assert state == "success"
    # The page has shown how far it was: the task has kept the last line that the job logged.
    assert airflow.xcom(dag, run, "restore", "progress")["text"].endswith("records/s")
    reloaded(page, "#restores .pill.complete:text-is('verified')")
    assert serious(page) == []


def test_a_late_record_and_a_lost_range_show(visit: Any, scene: Scene, airflow: Airflow) -> None:
    page = visit("olga", f"/archiver/archives/{scene.name}")
    moment = datetime.now(UTC)
    produce(scene.brokers, scene.topic, [record(moment)] * 5)
    admin = AdminClient({"bootstrap.servers": scene.brokers})
    [future] = admin.delete_records([TopicPartition(scene.topic, 0, -1)]).values()
    future.result(30)
    produce(scene.brokers, scene.topic, [record(scene.early)])
    reloaded(page, ".note.failing:has-text('lost offsets')")
    page.get_by_role("button", name="Record the loss and go on").click()
    expect(page.get_by_role("alert")).to_contain_text("5 offsets (")
    page.get_by_role("button", name="Yes, start it").click()
    started(page, airflow, scene)
    reloaded(page, f"td.late {scene.cell(scene.early)}")
    reloaded(page, "dd:text-is('5 offsets')")
    figures = metrics(scene)
    assert figures["kafka_archiver_lost_offsets"][scene.name] == 5
    assert figures["kafka_archiver_lag_records"][scene.name] == 0


def metrics(scene: Scene) -> dict[str, dict[str, float]]:
    """The metrics by name and archive, as Prometheus scrapes them."""
    text = httpx.get(f"{scene.url}/archiver/metrics", headers={"Authorization": "Bearer a-token"}).text
    return {
        family.name: {s.labels.get("archive", ""): s.value for s in family.samples}
        for family in text_string_to_metric_families(text)
    }


def test_a_failed_run_and_a_damaged_object_are_told_with_the_next_step(
    visit: Any, scene: Scene, airflow: Airflow
) -> None:
    run = airflow.trigger(scene.dag, rebuild={"run": "20200101T000000Z"})
    airflow.wait_for_runs(scene.dag, len(airflow.runs(scene.dag)))
    # The object of the last chunk: Kafka has its record still.
    keys = [stat.key for stat in scene.store.list(f"{scene.topic}/")]
    damaged = max(keys, key=lambda key: re.findall(r"[+]([0-9]{20})", key))
    scene.store.delete(damaged)
    archive = parse_archive(f"archive: {scene.name}\n{scene.yaml}", "page.yaml")
    publish(scene.store, audit(archive, scene.store, datetime.now(UTC)))
    page = visit("olga", f"/archiver/archives/{scene.name}")
    reloaded(page, "h1 .pill.unhealthy")
    reloaded(page, ".note.failing:has-text('damaged')")
    reloaded(page, "table.heat td.damaged")
    expect(page.locator("code", has_text=f"airflow archive repair {scene.name}").first).to_be_visible()
    expect(page.locator("form[action$='/do/repair'] input[type=checkbox][name=run]")).to_have_count(1)
    expect(page.locator(".note.failing").get_by_role("button", name="Repair 1 run")).to_be_visible()
    expect(page.locator(f"tr:has(.pill.failed) a[href*='{run.split('__')[0]}']").first).to_be_attached()
    answer = httpx.get(f"{scene.url}/archiver/health/{scene.name}", headers={"Authorization": "Bearer a-token"})
    checks = {check["name"]: check["verdict"] for check in answer.json()["checks"]}
    # Nothing but a request has failed: the archive goes on without it.
    assert (answer.status_code, checks["audit"], checks["runs"]) == (503, "failing", "warning")
    page.goto(scene.url)
    panel = page.get_by_role("region", name="Archives in trouble")
    expect(panel).to_contain_text("damaged", timeout=30_000)
    panel.get_by_role("link", name=scene.name).click()
    expect(page.frame_locator("iframe[title=Archive]").locator("h1")).to_contain_text(scene.name)


@pytest.mark.skipif(PROMETHEUS is None, reason="needs Debian's prometheus: apt-get install prometheus")
def test_prometheus_scrapes_the_page_draws_the_dashboard_and_raises_an_alert(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-token\n")
    text = (ROOT / "docs" / "howto" / "monitor.md").read_text()
    [example] = re.findall(r"^```\n(scrape_configs:.*?)^```", text, re.MULTILINE | re.DOTALL)
    example = example.replace("/etc/prometheus/archiver-token", str(tmp_path / "token"))
    example = example.replace("airflow.example.com:8080", scene.url.removeprefix("http://")).replace("60s", "1s")
    with prometheus(tmp_path, example) as server:
        until(server.firing, every=0.5)
        [target] = server.ask("targets")["activeTargets"]
        assert (target["health"], target["lastError"]) == ("up", "")
        fired = server.firing()
        # Of two archives, the audit of one has found damage (above). Its loss is of an hour that may be closed by now.
        assert set(fired) - {"KafkaArchiverIncompleteHours"} == {"KafkaArchiverDamaged"}
        assert fired["KafkaArchiverDamaged"]["labels"]["archive"] == scene.name
        assert scene.name in fired["KafkaArchiverDamaged"]["annotations"]["summary"]
        dashboard = json.loads((ROOT / "docs" / "monitoring" / "grafana-dashboard.json").read_text())
        [names] = [
            variable["query"]["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"
        ]
        metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", names).groups()
        assert scene.name in server.ask(f"label/{label}/values", **{"match[]": metric})
        drawn = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        answers = {expr: server.ask("query", query=expr.replace("$archive", scene.name))["result"] for expr in drawn}
        assert [expr for expr, samples in answers.items() if not samples] == []
        [lost] = answers['sum(kafka_archiver_lost_offsets{archive=~"$archive"})']
        assert lost["value"][1] == "5"


def test_the_button_repairs_what_is_damaged_and_the_sign_goes(visit: Any, scene: Scene, airflow: Airflow) -> None:
    page = visit("olga", f"/archiver/archives/{scene.name}")
    reloaded(page, "table.heat td.damaged")
    page.locator("[aria-labelledby=act] form[action$='/do/repair']").get_by_role("button").click()
    started(page, airflow, scene)
    # No audit has run since: the repair has read what it wrote.
    reloaded(page, ".facts div:has-text('clean'):has-text('1 object repaired since, read again at')")
    expect(page.locator("table.heat td.damaged")).to_have_count(0)
    expect(page.locator("form[action$='/do/repair']")).to_contain_text("whole again")
    # The loss, and the request that failed, are still to be accepted.
    reloaded(page, "h1 .pill.warning")


def row_of(page: Page, scene: Scene) -> Locator:
    """The archive's row in the list."""
    return page.get_by_role("row", name=re.compile(f"^{scene.name}"))


def test_each_question_of_an_operator_is_answered_within_two_clicks(visit: Any, scene: Scene) -> None:
    """Each begins at the list of all archives. The tests before have lost and damaged something, and mended that."""
    page = visit("olga", f"/archiver/archives/{scene.name}")
    page.evaluate("document.querySelectorAll('#problems details').forEach((folded) => { folded.open = true; })")
    page.get_by_role("button", name="Accept this loss").first.click()
    page.get_by_label("Why").fill("the broker's disk is gone")
    page.get_by_role("button", name="Accept").click()
    expect(page.locator("[role=status].ok")).to_contain_text("is accepted")
    clicks = 0

    def click(what: Locator) -> None:
        nonlocal clicks
        clicks += 1
        what.click()
        settled(page)

    def begin() -> Locator:
        nonlocal clicks
        assert clicks <= 2
        clicks = 0
        page.goto(f"{scene.url}/archiver/")
        settled(page)
        return row_of(page, scene)

    def open_archive() -> None:
        click(begin().get_by_role("link", name=scene.name, exact=True))

    def find(text: str) -> None:
        begin()
        page.get_by_label("Find").fill(text)
        click(page.get_by_role("button", name="Find"))

    def fact(name: str) -> Locator:
        return page.locator(f"dt:text-is('{name}') + dd")

    # 1. How far behind is it?
    expect(begin().locator("td").nth(2)).to_have_text(re.compile(r"\d+ ?(s|min)"))
    # 2. Is hour H whole? 3. Is the proof there, and which objects does it name?
    find(f"{scene.name} {scene.early:%Y-%m-%d %H}:00")
    expect(fact("Verdict")).to_contain_text("complete")
    assert page.locator("th.key").count() > 0
    click(page.get_by_role("link", name="Proof"))
    assert json.loads(page.locator("body").inner_text())["document"] == "kafka-archiver/hour"
    # 4. What failed, and why?
    click(begin().locator("a.pill"))
    expect(page.locator("#problems .note").first).to_be_in_viewport()
    expect(page.locator("#last-runs tr:has(.pill.failed)").first).to_be_visible()
    # 5. What was lost for ever? The offsets of which partition.
    click(begin().get_by_role("link", name="5", exact=True))
    expect(page.locator("#lost")).to_contain_text(f"{scene.topic}, partition 0: offsets ")
    # 6. Who accepted that? 7. How many records came yesterday? 8. Is what is stored intact?
    open_archive()
    people = page.get_by_role("region", name="Actions of people", exact=True).last
    expect(people.get_by_role("row", name=re.compile("olga.*acknowledge"))).to_contain_text("disk is gone")
    expect(page.locator("#problems details[open]:has-text('Accepted')")).to_contain_text("disk is gone")
    expect(page.locator("figcaption").first).to_contain_text(re.compile("yesterday [0-9,]+ records?"))
    expect(fact("Last audit")).to_contain_text("clean")
    # 9. Show me one record, and where it is stored.
    find(f"{scene.topic}+0@3")
    expect(page.locator("pre").first).to_contain_text("Kassel")
    [address] = page.locator("dt:text-is('stored in') + dd .mono").first.all_inner_texts()
    assert scene.store.head(address.removeprefix(f"s3://archive/{scene.name}/"))
    # 10. What was written in the last run?
    click(begin().locator("a[href*='/runs/']"))
    expect(page.locator("h1")).to_contain_text("Account of Run")
    # What would the next run do? What was restored, and is it proved?
    for link, answer in (("Preview the next run", "Preview of a run"), ("Restores", f"Restores of {scene.name}")):
        open_archive()
        click(page.get_by_role("link", name=link).first)
        expect(page.locator("h1")).to_contain_text(answer)
        assert serious(page) == []
    begin()


def test_the_form_of_a_new_archive_shows_the_keys_that_real_records_would_get(visit: Any, scene: Scene) -> None:
    page = visit("olga")
    page.get_by_role("link", name="New archive").click()
    page.locator("input[name=kafka]").fill("kafka_default")
    page.get_by_role("button").click()
    page.locator(f"input[name=topics][value='{scene.topic}']").check()
    page.locator("input[name=name]").fill("copied")
    page.locator("input[name=url]").fill("s3://archive/lake")
    page.locator("select[name=layout]").select_option("path")
    page.locator("input[name=path]").fill("by-hour/{topic}/{yyyy}/{MM}/{dd}/{HH}")
    page.locator("input[name=look]").check()
    page.get_by_role("button", name="Show the YAML").click()
    expect(page.get_by_role("region", name="Keys").locator("th.key").first).to_have_text(
        re.compile(rf"^by-hour/{scene.topic}/\d{{4}}/\d\d/\d\d/\d\d/{re.escape(scene.topic)}[+]0[+]\d{{20}}.jsonl.gz")
    )
    expect(page.get_by_label("YAML", exact=True)).to_contain_text("archive: copied")
    assert serious(page) == []
    assert parse_archive(page.get_by_label("YAML", exact=True).inner_text(), "copied.yaml").archive == "copied"


def test_newer_figures_take_the_place_of_old_ones_without_a_jump_and_not_under_somebodys_hands(
    visit: Any, scene: Scene
) -> None:
    page, address = visit("olga"), f"{scene.url}/archiver/archives/{scene.name}"
    asked: list[str] = []

    def old_at_first(route: Route) -> None:
        answer = route.fetch()
        asked.append(route.request.url)
        part = '<div id="figures" data-live>'
        old = answer.text().replace(part, f'{part}<p data-refresh="1">As of an hour ago</p>', 1)
        route.fulfill(response=answer, body=old if len(asked) < 3 else answer.text())

    page.route(address, old_at_first)
    page.clock.install()
    page.goto(address)
    expect(page.locator("#figures")).to_contain_text("As of an hour ago")
    page.evaluate("window.isTheSamePage = true")
    field = page.locator("form[action$='/do/rebuild'] input[name=hour]")
    field.fill("2026-11-21T05")
    until(lambda: page.clock.run_for(1500) or len(asked) >= 3)
    expect(page.locator("#figures")).not_to_contain_text("As of an hour ago")
    assert (page.evaluate("window.isTheSamePage"), field.input_value()) == (True, "2026-11-21T05")


def test_each_dag_has_a_tab_with_its_archive_and_each_run_one_with_its_account(
    visit: Any, scene: Scene, airflow: Airflow
) -> None:
    page = visit("viktor")
    page.goto(f"{scene.url}/dags/{scene.dag}/plugin/archive")
    expect(page.frame_locator("iframe[title=Archive]").locator("h1")).to_contain_text(scene.name)
    run = next(run["dag_run_id"] for run in airflow.runs(scene.dag) if run["state"] == "success")
    page.goto(f"{scene.url}/dags/{scene.dag}/runs/{run}/plugin/account")
    account = page.frame_locator("iframe[title=Account]")
    expect(account.locator("h1")).to_contain_text("Account of DAG run")
    expect(account.get_by_role("row", name=re.compile("^all"))).to_be_visible()


def test_on_a_phone_nothing_is_wider_than_the_screen(visit: Any, scene: Scene) -> None:
    page = visit("olga", viewport=PHONE, is_mobile=True, has_touch=True)
    for path in paths(scene):
        page.goto(f"{scene.url}/archiver{path}")
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
    page.goto(f"{scene.url}/archiver/archives/{scene.name}")
    settled(page)
    newest = page.locator("table.heat tbody tr:first-child a").last.evaluate("it => it.getBoundingClientRect().right")
    assert newest <= PHONE["width"]


def test_by_keyboard_alone_one_reaches_an_hour(visit: Any, scene: Scene) -> None:
    page = visit("viktor")
    focused = "document.activeElement"

    def tab_to(condition: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate(f"{focused}.matches({condition!r})"):
                return
        raise AssertionError(f"no Tab reaches {condition}")

    tab_to(f"a[href$='/archives/{scene.name}']")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/archives/{scene.name}")
    settled(page)
    tab_to("table.heat a")
    first = page.evaluate(f"{focused}.href")
    page.keyboard.press("ArrowRight")
    second = page.evaluate(f"{focused}.href")
    assert first != second
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(f"{focused}.href") == first
    assert page.evaluate(f"getComputedStyle({focused}).outlineStyle") == "solid"
    page.keyboard.press("Tab")
    assert not page.evaluate(f"{focused}.matches('table.heat a')"), "Tab leaves the table"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(first)
    expect(page.locator("h1")).to_contain_text("hour")


def test_by_keyboard_alone_one_sends_a_form(visit: Any, scene: Scene) -> None:
    page = visit("olga", f"/archiver/archives/{scene.name}")
    page.locator("form[action$='/do/backfill'] input[name=first]").focus()
    for hour in ("8000-01-01T05:00", "8000-01-01 06"):
        page.keyboard.type(hour)
        page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.tagName") != "BUTTON":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("future")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit: Any, scene: Scene, scheme: str) -> None:
    page = visit("olga", color_scheme=scheme)
    for path in paths(scene):
        page.goto(f"{scene.url}/archiver{path}")
        settled(page)
        assert serious(page) == [], path


def test_the_page_is_as_dark_as_airflow(visit: Any, scene: Scene) -> None:
    page = visit("viktor", color_scheme="light")

    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = background()
    page.evaluate("localStorage.setItem('theme', 'dark')")
    page.reload()
    assert background() != light
    page.goto(f"{scene.url}/plugin/archiver")
    stripes = page.frame_locator("iframe[title=Archives]").locator("html")
    airflows = "getComputedStyle(document.documentElement).getPropertyValue('--chakra-colors-bg-muted')"
    stripe = stripes.evaluate("it => getComputedStyle(it).getPropertyValue('--subtle')")
    assert (stripe, bool(stripe)) == (page.evaluate(airflows), True)


def paths(scene: Scene) -> list[str]:
    archive = f"/archives/{scene.name}"
    return ["/", archive, f"{archive}/hours/{scene.early:%Y-%m-%dT%H}", f"{archive}/plan", f"{archive}/year"]
