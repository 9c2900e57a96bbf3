"""Draws the pictures of the docs: the page in five situations, on the real stack. Only with ARCHIVER_SCREENSHOTS.

Each situation is one in which an operator looks: all is well, an hour is incomplete, the archive stands (also in
Airflow's own view), a record, a restore.
"""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from playwright.sync_api import Browser, Page, expect

from kafka_archiver.audit.inspection import audit, publish
from kafka_archiver.config import parse_archive
from kafka_archiver.store import open_store
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.airflow import Airflow
from tests.support.browser import CHROMIUM, PICTURES, chromium, log_in, picture, reloaded, settled, site_of
from tests.support.schedules import quiet_hours
from tests.support.topics import Record, new_topic, produce
from tests.support.waiting import until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium"),
    pytest.mark.skipif(not PICTURES, reason="draws the docs' pictures: ARCHIVER_SCREENSHOTS=docs/images"),
]
HOURS, SHOPS = 50, ("Kassel", "Lyon", "Porto", "Gdańsk")


@pytest.fixture
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


def order(number: int, moment: datetime, note: str = "") -> Record:
    """Return an order of a shop; a note makes it longer than the archive takes."""
    items = [{"sku": f"A-{number % 89}", "count": 1 + number % 3}, {"sku": f"B-{number % 13}", "count": 1}]
    value = {"id": number, "shop": SHOPS[number % 4], "amount": number % 9000 / 100, "items": items}
    text = json.dumps(value | ({"note": note} if note else {}), ensure_ascii=False).encode()
    headers = [("trace", f"{number * 2654435761 % 2**32:08x}".encode()), ("source", b"web")]
    return Record(number % 3, int(moment.timestamp() * 1000), text, f"customer-{number % 977}".encode(), headers)


def orders(until: datetime) -> Iterator[Record]:
    """Yield the orders of some days, more of them by day than by night."""
    number = 0
    for ago in range(HOURS, 0, -1):
        start = until - timedelta(hours=ago)
        many = int(900 + 700 * math.sin((start.hour - 8) / 12 * math.pi) + 90 * math.sin(ago * ago))
        for place in range(many):
            yield order(number, start + timedelta(hours=place / many))
            number += 1


def test_the_pictures_of_the_docs(airflow: Airflow, kafka: Kafka, s3: S3, browser: Browser, tmp_path: Path) -> None:
    schedule, last = quiet_hours()
    brokers, moment, topic = kafka.bootstrap_servers, datetime.now(UTC), new_topic(kafka.bootstrap_servers, 3, "orders")
    produce(brokers, topic, orders(moment))
    yaml = (
        f"description: The orders of all shops\nschedule: {schedule}\npolicies: {{bad_record: dead_letter}}\n"
        f"source: {{topics: [orders], start: {last - timedelta(hours=26):%Y-%m-%dT%H:%M:%SZ}, max_value_bytes: 300,\n"
        "  max_records_per_run: 15000}\nstore: {url: 's3://archive/lake', content: record}\n"
    )
    dag = airflow.add_archive("orders", yaml)
    airflow.pause(dag, False)
    airflow.wait_for_runs(dag, 1)
    until(lambda: airflow.request("GET", "/dags/audit_orders", missing_ok=True), seconds=90, every=1)
    airflow.pause("audit_orders", False)
    run(airflow, dag, max_records=50_000)
    # A fill from the page is one run.
    yaml = yaml.replace("max_records_per_run: 15000", "max_records_per_run: 50000000")
    (airflow.archives / "orders.yaml").write_text(f"archive: orders\naudit: {{schedule: null}}\n{yaml}")
    store = open_store("s3://archive/lake", s3.options())
    with site_of(airflow, tmp_path) as site:
        page = log_in(browser, site, "olga", "/archiver/archives/orders")

        def open_page(path: str = "") -> None:
            page.goto(f"{site}/archiver/archives/orders{path}")
            settled(page)

        early = f"{last - timedelta(hours=30):%Y-%m-%dT%H}"
        form = page.locator("form[action$='/do/backfill']")
        for field in ("first", "last"):
            form.locator(f"input[name={field}]").fill(f"{early}:00")
        form.get_by_role("button").click()
        ended(airflow, page, dag)
        open_page(f"/hours/{early}")
        reloaded(page, ".pill.incomplete")
        picture(page, "hour", "[aria-label=Objects]")

        page.get_by_role("button", name="Fill the archive").click()
        ended(airflow, page, dag)
        archive = parse_archive(f"archive: orders\n{yaml}", "orders.yaml")
        publish(store, audit(archive, store, datetime.now(UTC)))
        open_page()
        reloaded(page, "#problems .note.ok")
        picture(page, "archive", "#trends")

        too_long = order(88_123, datetime.now(UTC), "please ring twice, the bell of the side door is loud; " * 4)
        produce(brokers, topic, [too_long])
        run(airflow, dag)
        open_page(f"/hours/{datetime.now(UTC):%Y-%m-%dT%H}")
        page.get_by_role("link", name="dead letters").first.click()
        picture(page, "record", "main")

        produce(brokers, topic, [order(number, datetime.now(UTC)) for number in range(60)])
        admin = AdminClient({"bootstrap.servers": brokers})
        [future] = admin.delete_records([TopicPartition(topic, 0, -1)]).values()
        future.result(30)
        failed = run(airflow, dag, "failed")
        page.goto(f"{site}/dags/{dag}/runs/{failed}")
        expect(page.get_by_text("Upstream Failed").first).to_be_visible(timeout=60_000)
        picture(page, "airflow", "tbody")
        open_page()
        reloaded(page, ".note.failing:has-text('lost offsets')")
        page.evaluate("document.querySelectorAll('#problems details').forEach((folded) => { folded.open = true; })")
        picture(page, "trouble", "#coverage")

        page.get_by_role("link", name="Restores, and restore to Kafka").click()
        form = page.locator("form[action$='/do/restore']")
        form.locator("textarea[name=rename]").fill("orders=orders-restored")
        form.get_by_label("Create topics").check()
        form.get_by_role("button").click()
        expect(page.locator(".note", has_text="records of 3 partitions")).to_be_visible()
        picture(page, "restore", "main")
    airflow.remove_archive("orders")


def run(airflow: Airflow, dag: str, state: str = "success", **conf: int) -> str:
    """Trigger a run, wait for its end, and return its name."""
    name = airflow.trigger(dag, **conf)
    assert airflow.wait_for_runs(dag, len(airflow.runs(dag)))[name] == state, airflow.tasks(dag, name)
    return name


def ended(airflow: Airflow, page: Page, dag: str) -> None:
    """Wait until what the page has started has ended."""
    expect(page.locator("[role=status].ok")).to_contain_text("Started")
    airflow.wait_for_runs(dag, len(airflow.runs(dag)))
