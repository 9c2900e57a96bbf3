# Spark with what the archiver's jobs need, and without Airflow: master, workers, and on Kubernetes executors and drivers.
# Each job brings its own archiver, which precedes the one in this image. From the root of the repository:
#   docker build --file include/images/executor.Dockerfile --tag kafka-archiver-executor:1.0.0 .

# 3.11 or 3.12; Airflow's image needs the same.
ARG PYTHON=3.11
FROM python:${PYTHON}-slim-bookworm AS wheel
COPY pyproject.toml LICENSE README.md /source/
COPY include/kafka_archiver /source/include/kafka_archiver
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel /source

FROM apache/spark:4.2.0-scala2.13-java17-ubuntu AS spark

# Driver and executors exchange pickle and Arrow data, so both need the same Python and packages: Spark's own images have
# another Python.
FROM python:${PYTHON}-slim-bookworm
ARG PYTHON
# Spark's scripts use ps, its entrypoint for Kubernetes the other three.
RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps gosu libnss-wrapper tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 185 --gid root --home-dir /opt/spark spark
ENV SPARK_HOME=/opt/spark PATH=/opt/spark/bin:$PATH PYSPARK_PYTHON=python${PYTHON}
COPY --from=spark --chown=spark:root /opt/spark /opt/spark
COPY --from=spark /opt/entrypoint.sh /opt/

COPY requirements.txt /tmp/
COPY --from=wheel /wheel /tmp/wheel
RUN pip install --no-cache-dir --constraint /tmp/requirements.txt "$(ls /tmp/wheel/*.whl)[executor]"

# Spark's Kafka source, for `source.reader: spark`.
COPY scripts/stack/ivy.xml scripts/stack/ivysettings.xml /tmp/
RUN cd /opt/spark/jars \
 && java -jar ivy-*.jar -settings /tmp/ivysettings.xml -ivy /tmp/ivy.xml -cache /tmp/ivy -confs spark \
      -types jar bundle -retrieve '[artifact]-[revision].[ext]' \
 && rm -rf /tmp/ivy

WORKDIR /opt/spark/work-dir
USER spark
ENTRYPOINT ["/opt/entrypoint.sh"]
