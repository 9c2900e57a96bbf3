"""The model test on a real broker and a real S3 server: few sequences here, more by `tests.support.model_run`."""

import pytest

from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.model_run import real, run

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


def test_the_model_holds_on_real_servers(kafka: Kafka, s3: S3) -> None:
    run(real(kafka, s3), examples=3, steps=10, shrink=False, number=1)
