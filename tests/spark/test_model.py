"""The model test with Spark's SQL: few sequences here, more by `tests.support.model_run --sql`."""

from typing import TYPE_CHECKING

import pytest

from tests.support.model_run import run
from tests.support.sql_model import sql_model

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]


def test_every_attempt_with_sql_writes_the_same_whatever_the_settings_of_its_machine(spark: "SparkSession") -> None:
    run(sql_model(spark), examples=5, steps=8, shrink=False, number=3)
