"""The example dashboard and alert rules: PromQL that parses, over metrics that the page has."""

import json
import re
from collections.abc import Iterator

import promql_parser
import pytest
import yaml

from kafka_archiver.orchestration.page.metrics import NAMES
from scripts.stack.paths import ROOT

pytestmark = pytest.mark.unit

FOLDER = ROOT / "docs" / "monitoring"
RULES = yaml.safe_load((FOLDER / "alert-rules.yaml").read_text())
DASHBOARD = json.loads((FOLDER / "grafana-dashboard.json").read_text())


def expressions() -> Iterator[str]:
    for group in RULES["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


@pytest.mark.parametrize("expression", list(expressions()))
def test_each_expression_is_promql_over_our_metrics(expression: str) -> None:
    promql_parser.parse(expression)
    names = set(re.findall(r"kafka_archiver_\w+", expression))
    assert names
    assert names <= NAMES


def test_the_check_notices_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r".+"):
        promql_parser.parse("sum(kafka_archiver_up")
    assert "kafka_archiver_lag" not in NAMES


def test_rules_say_what_to_do() -> None:
    rules = [rule for group in RULES["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"\d+[smhd]", rule.get("for", "1m"))
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert set(rule["annotations"]) == {"summary", "description"}


def test_the_dashboard_is_complete() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells)), "panels overlap"
    assert {one["name"] for one in DASHBOARD["templating"]["list"]} == {"source", "archive"}
