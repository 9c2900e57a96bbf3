"""Hand the endpoints to a driver on another machine, without showing them to others. Pure.

YARN: a file that is private to the job's user. (A variable would be in launch_container.sh, which the containers' logs
repeat.) Kubernetes: a Secret that the operator creates. (Everything that spark-submit sends is in the driver's pod or
in a ConfigMap.)
"""

import re
from collections.abc import Mapping

from kafka_archiver.config import Archive
from kafka_archiver.jobs.endpoints import ENDPOINTS
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.secrets import SECRET_NAME
from kafka_archiver.orchestration.submit.spark_conf import spark_conf

FILE = "endpoints.json"
# For YARN: the driver reads the file that spark-submit ships.
BY_FILE = {f"spark.yarn.appMasterEnv.{ENDPOINTS}": f"@{FILE}"}
_KEY = "endpoints"
_MODE = "spark.submit.deployMode"
_VARIABLES = ("spark.executorEnv.", "spark.yarn.appMasterEnv.", "spark.kubernetes.driverEnv.")
# Settings whose value only says where the secret is.
_REFERENCE = re.compile(r"\.(secretKeyRef|secrets)\.|(file|path|provider)$", re.IGNORECASE)


def handover_settings(archive: Archive, master: str, cluster: bool) -> dict[str, str]:
    """Return Spark's settings that bring the endpoints to the driver; none where it inherits our environment.

    :param master: of the Spark connection.
    :param cluster: whether the driver runs in the cluster (deploy mode `cluster`).
    :raises ConfigError: the cluster has no private way, or others could read a secret in spark.conf.
    """
    if _MODE in archive.spark.conf:
        raise ConfigError(f"`{_MODE}` of spark.conf: expected it as `deploy-mode` in the extra of the Spark connection")
    kubernetes, yarn = "k8s" in master, "yarn" in master
    if kubernetes or yarn:
        _refuse_readable(spark_conf(archive.spark.conf), kubernetes, cluster)
    if not cluster:
        return {}
    if kubernetes:
        return _by_secret(archive)
    if yarn:
        return BY_FILE
    raise ConfigError(
        f"Spark connection {archive.spark.connection!r} asks for deploy mode 'cluster' at {master}; Spark runs Python "
        "jobs there in mode 'client' only: set its extra `deploy-mode` to 'client'"
    )


def _by_secret(archive: Archive) -> dict[str, str]:
    if archive.spark.kubernetes_secret is None:
        proposed = f"archive-{re.sub('[^a-z0-9.-]', '-', archive.archive.lower())}"
        raise ConfigError(
            "the driver runs on Kubernetes, and spark-submit cannot hand it the addresses and credentials of brokers "
            "and store privately: everybody who may read the driver's pod or ConfigMaps could read them. Expected "
            "a Secret with them in the driver's namespace, and its name in the YAML:\n"
            f"  kubectl create secret generic {proposed} --from-file={_KEY}={FILE}\n"
            f"  spark: {{kubernetes_secret: {proposed}}}\n"
            f"{FILE} has `kafka` (librdkafka's properties) and `store` (endpoint_url, aws_access_key_id, …); see "
            "docs/install/spark.md"
        )
    return {f"spark.kubernetes.driver.secretKeyRef.{ENDPOINTS}": f"{archive.spark.kubernetes_secret}:{_KEY}"}


def _refuse_readable(conf: Mapping[str, str], kubernetes: bool, cluster: bool) -> None:
    names = ", ".join(
        f"`{name}`"
        for name, value in conf.items()
        if ((kubernetes and cluster) or name.startswith(_VARIABLES))
        and SECRET_NAME.search(name)
        and not _REFERENCE.search(name)
        and value not in ("true", "false")
    )
    where, instead = (
        ("a ConfigMap or the specifications of pods", "a Secret, and spark.kubernetes.*.secretKeyRef.VARIABLE")
        if kubernetes
        else ("launch_container.sh and the logs of containers", "a Hadoop credential provider, or spark.files")
    )
    if names:
        raise ConfigError(f"{names} of spark.conf would be readable in {where}; expected {instead} for secrets")
