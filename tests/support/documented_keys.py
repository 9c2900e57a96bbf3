"""The keys that other tools document: of connectors, of the service's environment, of the configuration's sections."""


def _keys(text: str) -> list[str]:
    return text.split()


CONFLUENT = _keys("""
name connector.class tasks.max topics topics.regex key.converter value.converter header.converter config.action.reload
transforms transforms.x.type predicates predicates.p.type errors.tolerance errors.retry.timeout
errors.retry.delay.max.ms errors.log.enable errors.log.include.messages errors.deadletterqueue.topic.name
errors.deadletterqueue.topic.replication.factor errors.deadletterqueue.context.headers.enable
consumer.override.auto.offset.reset consumer.override.max.poll.records key.converter.schema.registry.url
value.converter.schema.registry.url value.converter.basic.auth.user.info value.converter.basic.auth.credentials.source
value.converter.schemas.enable format.class flush.size rotate.interval.ms rotate.schedule.interval.ms
schema.cache.size enhanced.avro.schema.support connect.meta.data avro.codec parquet.codec allow.optional.map.keys
retry.backoff.ms shutdown.timeout.ms filename.offset.zero.pad.width s3.bucket.name s3.region s3.part.size
s3.credentials.provider.class s3.credentials.provider.sts.role.arn aws.access.key.id aws.secret.access.key
s3.ssea.name s3.sse.customer.key s3.sse.kms.key.id s3.acl.canned s3.wan.mode s3.compression.type s3.compression.level
s3.part.retries s3.retry.backoff.ms format.bytearray.extension format.bytearray.separator s3.proxy.url s3.proxy.user
s3.proxy.password s3.http.send.expect.continue behavior.on.null.values s3.path.style.access.enabled store.kafka.keys
store.kafka.headers keys.format.class headers.format.class json.decimal.format s3.object.tagging
s3.object.behavior.on.tagging.error s3.elastic.buffer.enable s3.elastic.buffer.init.capacity
tombstone.encoded.partition s3.schema.partition.affix.type s3.send.digest partitioner.max.open.files
max.files.scan.limit enable.conditional.writes sts.role.arn sts.region sts.role.external.id sts.role.session.name
storage.class topics.dir store.url directory.delim file.delim partitioner.class partition.field.name
partition.field.format.path partition.duration.ms path.format locale timezone timestamp.extractor timestamp.field
schema.compatibility
""")
CLOUD = _keys("""
name connector.class tasks.max topics input.data.format output.data.format output.keys.format output.headers.format
kafka.auth.mode kafka.api.key kafka.api.secret kafka.service.account.id aws.access.key.id aws.secret.access.key
s3.bucket.name s3.region store.url s3.part.size s3.wan.mode s3.path.style.access topics.dir path.format time.interval
rotate.schedule.interval.ms rotate.interval.ms flush.size behavior.on.null.values timezone locale timestamp.field
compression.codec json.decimal.format store.kafka.keys store.kafka.headers schema.compatibility schema.context.name
value.subject.name.strategy tombstone.encoded.partition s3.ssea.name s3.sse.kms.key.id max.poll.records
max.poll.interval.ms auto.restart.on.user.error transforms predicates format.bytearray.separator
""")
AIVEN = _keys("""
name connector.class tasks.max topics topics.regex key.converter value.converter value.converter.schemas.enable
aws.access.key.id aws.secret.access.key aws.s3.bucket.name aws.s3.endpoint aws.s3.region aws.s3.prefix
aws.credentials.provider aws.s3.sse.algorithm aws.s3.part.size.bytes aws.sts.role.arn aws.sts.role.external.id
aws.sts.role.session.name aws.sts.role.session.duration aws.sts.config.endpoint aws.s3.backoff.delay.ms
aws.s3.backoff.max.delay.ms aws.s3.backoff.max.retries kafka.retry.backoff.ms file.name.template file.prefix.template
file.compression.type file.max.records file.name.timestamp.timezone file.name.timestamp.source timestamp.timezone
timestamp.source format.output.type format.output.fields format.output.fields.value.encoding format.output.envelope
aws_access_key_id aws_secret_access_key aws_s3_bucket aws_s3_endpoint aws_s3_region aws_s3_prefix output_compression
output_fields
""")
LENSES = _keys("""
name connector.class tasks.max topics topics.regex key.converter value.converter key.converter.schemas.enable
connect.s3.kcql connect.s3.aws.region connect.s3.aws.access.key connect.s3.aws.secret.key connect.s3.aws.auth.mode
connect.s3.custom.endpoint connect.s3.vhost.bucket connect.s3.path.style.access connect.s3.error.policy
connect.s3.max.retries connect.s3.retry.interval connect.s3.http.max.retries connect.s3.http.retry.interval
connect.s3.http.socket.timeout connect.s3.http.connection.timeout connect.s3.local.tmp.directory
connect.s3.padding.strategy connect.s3.padding.length connect.s3.compression.codec connect.s3.compression.level
connect.s3.seek.max.files connect.s3.indexes.name connect.s3.exactly.once.enable connect.s3.pool.max.connections
connect.s3.log.metrics connect.s3.skip.null.values connect.s3.schema.change.detector connect.s3.disable.flush.count
connect.s3.latest.schema.optimization.enabled connect.s3.indexes.gc.interval.seconds connect.progress.enabled
""")

# The names that earlier releases had.
LENSES_OLDER = _keys("""
aws.region aws.access.key aws.secret.key aws.auth.mode aws.custom.endpoint aws.vhost.bucket
""")
DEVIANTART = _keys("""
name connector.class tasks.max topics key.converter value.converter s3.bucket s3.prefix s3.endpoint s3.path_style
local.buffer.dir compressed_block_size
""")
ZOOZ = _keys("""
LOADING_MODULE PORT APP_ID FLUSH_INTERVAL_MINUTES MAX_FLUSH_RETRIES FLUSH_INTERVAL_MS BUFFERS_LOCAL_DIR
NUMBER_OF_FLUSH_WORKERS FLUSH_TIMEOUT_SECONDS COMPRESSION_TYPE USE_CACHE BUFFER_SIZE_BYTES MICROBATCH_INTERVAL_MS
PROCESS_LOOP_TIMEOUT_SECS SHUTDOWN_ABORT_TIMEOUT_SECS KAFKA_HOST SOURCE_KAFKA_TOPIC HEALTHY_KAFKA_LAG max_poll_records
DEFAULT_KAFKA_STARTPOINT S3_BUCKET_NAME S3_ACCESS_KEY S3_SECRET_KEY S3_UPLOAD_THREADS_PER_FILE
S3_MULTIPART_THRESHOLD_MB S3_ROOT_PATH S3_PATTERN_PATH S3_EXTENSTION S3_REGION S3_ENDPOINT SKIP_CORRUPTED_MESSAGES
PLAY_SECRET_KEY
""")
KAFKATOS3 = _keys("""
main.log.level main.working_directory consumer.consumer_processes consumer.kafka_bootstrap
consumer.kafka_consumer_group consumer.kafka_auto_offset_reset consumer.consumer_nice_level consumer.topic_whitelist
consumer.max_age_seconds consumer.consumer_class compression.compression_check_interval compression.compressor_workers
compression.compression_nice_level s3.s3upload_check_interval s3.s3uploader_workers s3.s3_bucket_name s3.s3_access_key
s3.s3_secret_key s3.topic_whitelist
""")
