"""The example dashboard and alert rules: PromQL that parses, over metrics that the page has."""

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import promql_parser
import pytest
import yaml

from kafka_archiver.orchestration.page.metrics import NAMES
from scripts.stack.paths import ROOT
from tests.support.prometheus import PROMTOOL

pytestmark = pytest.mark.unit

FOLDER = ROOT / "docs" / "monitoring"
RULES = yaml.safe_load((FOLDER / "alert-rules.yaml").read_text())
CASES = ROOT / "tests" / "unit" / "alert-rules.test.yaml"
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


@pytest.mark.skipif(PROMTOOL is None, reason="needs Debian's prometheus: apt-get install prometheus")
def test_promtool_takes_the_rules_and_each_fires_when_it_should(tmp_path: Path) -> None:
    for file in (FOLDER / "alert-rules.yaml", CASES):
        shutil.copy(file, tmp_path)
    for arguments in (["check", "rules", "alert-rules.yaml"], ["test", "rules", CASES.name]):
        done = subprocess.run([str(PROMTOOL), *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_is_given_each_alert_firing_and_silent() -> None:
    cases: dict[str, set[bool]] = defaultdict(set)
    for test in yaml.safe_load(CASES.read_text())["tests"]:
        for case in test["alert_rule_test"]:
            cases[case["alertname"]].add("exp_alerts" in case)
    assert cases == {rule["alert"]: {True, False} for group in RULES["groups"] for rule in group["rules"]}


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
    assert {variable["name"] for variable in DASHBOARD["templating"]["list"]} == {"source", "archive"}
