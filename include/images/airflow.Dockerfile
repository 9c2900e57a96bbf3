# Airflow with the archiver: API server, scheduler, DAG processor, triggerer and workers; Spark's driver in client mode
# runs in the worker. From the root of the repository:
#   docker build --file include/images/airflow.Dockerfile --tag kafka-archiver-airflow:1.0.0 .

# 3.11 or 3.12; the executors' image needs the same.
ARG PYTHON=3.11
FROM python:${PYTHON}-slim-bookworm AS wheel
COPY pyproject.toml LICENSE README.md /source/
COPY include/kafka_archiver /source/include/kafka_archiver
# What reads and decodes records in C: each job brings it to its executors, and they have no compiler.
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/* \
 && python /source/include/kafka_archiver/records/native/compile.py
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel /source

# "slim" has no providers: the versions of the full image's conflict with requirements.txt.
FROM apache/airflow:slim-3.3.2-python${PYTHON}
ARG PYTHON
USER root
# Spark's scripts use ps.
RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*
USER airflow

COPY requirements.txt /tmp/
COPY --from=wheel /wheel /tmp/wheel
# Airflow's extras are what the official Helm chart's defaults need. Its newest Celery provider cannot import Celery 5.7.
RUN pip install --no-cache-dir --constraint /tmp/requirements.txt "$(ls /tmp/wheel/*.whl)[airflow,executor]" \
 "apache-airflow[celery,cncf-kubernetes,fab,postgres,statsd]" "celery<5.7"

# Spark's Kafka source, for `source.reader: spark`: in pyspark's jars, it needs no settings.
COPY scripts/stack/ivy.xml scripts/stack/ivysettings.xml /tmp/
RUN cd "$(python -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)')/jars" \
 && java -jar ivy-*.jar -settings /tmp/ivysettings.xml -ivy /tmp/ivy.xml -cache /tmp/ivy -confs spark \
      -types jar bundle -retrieve '[artifact]-[revision].[ext]' \
 && rm -rf /tmp/ivy

# A named volume takes its owner from this directory.
RUN mkdir -p /opt/airflow/state
# Driver and executors need the same Python.
ENV PYSPARK_PYTHON=python${PYTHON} PYSPARK_DRIVER_PYTHON=python
