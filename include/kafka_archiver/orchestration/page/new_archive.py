"""A form for a new archive: topics from the brokers, the keys of real records, and the YAML to copy. Writes no file."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

import yaml
from fastapi import APIRouter, HTTPException, Request, Response

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.errors import ArchiverError, BadRecordError, ConfigError
from kafka_archiver.messages.yaml_faults import FaultyYamlError
from kafka_archiver.model.settings import Content
from kafka_archiver.orchestration.connections.kafka import cluster_endpoint
from kafka_archiver.orchestration.folder import config_folder
from kafka_archiver.orchestration.metadata.triggering import note
from kafka_archiver.orchestration.page.access import RECORDS_SETTING, PageSnapshots, Visitor, may_declare, shows_records
from kafka_archiver.orchestration.page.archives import BROKER_SECONDS, open_for_page
from kafka_archiver.orchestration.page.render import render
from kafka_archiver.planning.settings import settings_of
from kafka_archiver.records.formats.registry import names as formats
from kafka_archiver.state.key_preview import PreviewedObject, preview_keys

# Layouts that the form offers; with `path` and `fields` come the values of a field.
LAYOUTS = ("hourly", "daily", "topic_partition", "path", "fields")
DECODERS = ("bytes", "string", "json")
# Topics that are shown as boxes; of more, the names are typed.
BOXES = 200
_NOT_INTERNAL = re.compile(r"(?!__).+")


class DeclarationForm(NamedTuple):
    """The fields, each with the YAML's default.

    `fields`: paths of the record by which the layout `fields` files, one in a line.
    """

    name: str = ""
    kafka: str = "kafka_default"
    topics: Sequence[str] = ()
    start: str = "earliest"
    decode: str = "bytes"
    schedule: str = "@hourly"
    url: str = ""
    aws: str = "aws_default"
    layout: str = "hourly"
    path: str = ""
    fields: str = ""
    format: str = "jsonl"
    content: str = "value"

    @property
    def missing(self) -> list[str]:
        """The titles of the fields without which there is no YAML."""
        fields = {"Name": self.name, "Store": self.url, "a topic": self.topics}
        return [title for title, value in fields.items() if not value]


def yaml_of(form: DeclarationForm) -> str:
    """Return the YAML, without what is the default."""
    values = {key: value for key, value in form._asdict().items() if value and value != form._field_defaults[key]}
    source = {
        **_some(values, "kafka"),
        "topics": list(form.topics),
        **_some(values, "start"),
        **({"value": {"decode": form.decode}} if "decode" in values else {}),
    }
    layout: Any = {"path": form.path} if form.layout == "path" else None
    if form.layout == "fields":
        layout = {"fields": [line.strip() for line in form.fields.splitlines() if line.strip()]}
    store = {
        "url": form.url,
        **_some(values, "aws"),
        **({"layout": layout} if layout else _some(values, "layout")),
        **_some(values, "format", "content"),
    }
    document = {"archive": form.name, **_some(values, "schedule"), "source": source, "store": store}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)


def _some(values: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: values[key] for key in keys if key in values}


router = APIRouter()


@router.get("/new")
def new_archive(request: Request, who: Visitor, archive_snapshots: PageSnapshots, look: str = "") -> Response:
    """Show the form, and the YAML once it is filled."""
    if not may_declare(who):
        raise HTTPException(403, "Who may edit and trigger all DAGs may declare an archive here; you may not")
    filled = _form(request)
    topics, silent = _topics(filled.kafka) if "kafka" in request.query_params else (None, "")
    text = "" if filled.missing else yaml_of(filled)
    archive, error = _parsed(text, filled.name) if text else (None, None)
    if archive and archive.archive in archive_snapshots.archives().valid:
        error = ConfigError(f"there is an archive {archive.archive} already; give this one another name")
    previewed: Sequence[PreviewedObject] = ()
    unseen = ""
    if archive and look:
        previewed, unseen = _preview(archive, who.get_name())
    return render(
        request,
        "new.html",
        form=filled,
        missing=filled.missing if "name" in request.query_params else [],
        topics=topics,
        boxes=BOXES,
        silent=silent,
        text=text,
        archive=archive,
        error=error,
        faults_of_yaml=error.faults if isinstance(error, FaultyYamlError) else (),
        look=bool(look),
        previewed=previewed,
        unseen=unseen,
        folder=config_folder(),
        layouts=LAYOUTS,
        decoders=DECODERS,
        formats=formats(),
        contents=get_args(Content),
    )


def _form(request: Request) -> DeclarationForm:
    asked = request.query_params
    values = {key: asked[key].strip() for key in DeclarationForm._fields if key != "topics" and asked.get(key)}
    lines = (line.strip() for value in asked.getlist("topics") for line in value.splitlines())
    return DeclarationForm(**values, topics=[line for line in lines if line])


def _topics(connection: str) -> tuple[list[str] | None, str]:
    """Return the topics of a Kafka connection, or why they are not known."""
    try:
        return sorted(t.name for t in Cluster(cluster_endpoint(connection), BROKER_SECONDS).topics(_NOT_INTERNAL)), ""
    except ArchiverError as error:
        return None, str(error)


def _parsed(text: str, name: str) -> tuple[Archive | None, ConfigError | None]:
    """Return the archive of a YAML, checked as each file is, or what is wrong with it."""
    try:
        # No environment: a form must not read that of the server.
        archive = parse_archive(text, f"{name}.yaml", {})
        settings_of(archive)
    except ConfigError as error:
        return None, error
    return archive, None


def _preview(archive: Archive, who: str) -> tuple[Sequence[PreviewedObject], str]:
    """Return the objects of the newest records, or why none are shown."""
    if not shows_records(archive):
        return (), f"Records are not read here; {RECORDS_SETTING} decides it"
    note("archiver_look", dag_id(archive.archive), who, topics=archive.source.topics, of="a new archive")
    try:
        return preview_keys(open_for_page(archive)), ""
    except BadRecordError as error:
        # The advice is about runs of a DAG that does not exist yet.
        return (), error.message
    except ArchiverError as error:
        return (), str(error)
