# One image for Airflow and for Spark. The driver runs inside an Airflow task (client mode) and talks pickle and
# Arrow with the workers' Python: one image is one Python 3.11, one pyspark and one set of packages on both sides.
# "slim" is Airflow without other providers, whose pins would fight with requirements.txt.
FROM apache/airflow:slim-3.3.2-python3.11

USER root
# ps is used by Spark's scripts.
RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*
USER airflow

COPY requirements.txt /tmp/requirements.txt
RUN pip install --no-cache-dir -r /tmp/requirements.txt

# Spark's Kafka source, into pyspark's own jars: driver, master and workers have it without further settings.
COPY scripts/stack/ivy.xml scripts/stack/ivysettings.xml /tmp/
RUN cd "$(python -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)')/jars" \
 && java -jar ivy-*.jar -settings /tmp/ivysettings.xml -ivy /tmp/ivy.xml -cache /tmp/ivy -confs spark \
      -types jar bundle -retrieve '[artifact]-[revision].[ext]' \
 && rm -rf /tmp/ivy

# Installed, so that Airflow finds the provider's entry point; docker-compose.yaml lays the checkout over it.
COPY --chown=airflow:0 pyproject.toml LICENSE /opt/archiver/
COPY --chown=airflow:0 include /opt/archiver/include
RUN pip install --no-cache-dir --no-deps --no-build-isolation -e /opt/archiver
# A named volume takes its owner from here.
RUN mkdir -p /opt/airflow/state
WORKDIR /opt/archiver
