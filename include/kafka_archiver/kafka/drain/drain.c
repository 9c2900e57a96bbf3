/* Copies librdkafka's messages into columns, and columns into messages. The only C of this package; library.py calls it.

   It allocates nothing, keeps nothing, and links to nothing: librdkafka's functions come in tables. All memory that it
   writes is the caller's, and its sizes come with it: a column that is too small is an answer, never a write.
   Messages stay librdkafka's until drain_drop; columns have copies. Of what is sent librdkafka makes copies. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* rd_kafka_message_t of rdkafka.h, the same in all versions 1.x and 2.x. */
struct message {
    int err;
    void *topic;
    int32_t partition;
    const uint8_t *value;
    size_t value_size;
    const uint8_t *key;
    size_t key_size;
    int64_t offset;
    void *opaque;
};

struct functions {
    int64_t (*timestamp)(const struct message *, int *type);
    int (*headers)(const struct message *, void **headers);
    int (*header)(const void *headers, size_t place, const char **name, const void **value, size_t *size);
    void (*destroy)(struct message *);
};

/* The bytes of a column of bytes, and the number of its rows. */
struct size {
    int64_t rows;
    int64_t bytes;
};

struct sizes {
    struct size values, keys, names, headers;
};

/* An Arrow column of bytes: its capacity, a bit for each row that is not null, where each row ends, and the bytes. */
struct column {
    struct size most;
    uint8_t *present;
    int32_t *ends;
    uint8_t *bytes;
    struct size used;
    int64_t nulls;
};

struct columns {
    int64_t most;
    int64_t *offsets;
    int64_t *times;
    int32_t *types;        /* null: offsets, times and values alone */
    int32_t *header_ends;  /* where the headers of each record end */
    struct column values, keys, names, headers;
};

struct fault {
    int64_t before;  /* how many of the records come before it */
    int64_t code;
    int64_t partition;
    int64_t offset;
};

/* Divides messages into records, which stay in `messages`, and errors, which move to `errors`, both in their order.
   `errors` and `faults` have room for `count`. Returns the number of records. */
int64_t drain_divide(struct message **messages, int64_t count, struct message **errors, struct fault *faults)
{
    int64_t records = 0, others = 0;
    for (int64_t i = 0; i < count; i++) {
        struct message *message = messages[i];
        if (message->err) {
            struct fault fault = {records, message->err, message->partition, message->offset};
            faults[others] = fault;
            errors[others++] = message;
        } else {
            messages[records++] = message;
        }
    }
    return records;
}

/* Writes the offset of each record. */
void drain_offsets(struct message *const *records, int64_t count, int64_t *offsets)
{
    for (int64_t i = 0; i < count; i++)
        offsets[i] = records[i]->offset;
}

/* Returns the first record that is not of the first one's partition, or `count`. */
int64_t drain_stranger(struct message *const *records, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        if (records[i]->topic != records[0]->topic || records[i]->partition != records[0]->partition)
            return i;
    return count;
}

/* Returns the topic (rd_kafka_topic_t) of a message. */
void *drain_topic(const struct message *message, int32_t *partition)
{
    *partition = message->partition;
    return message->topic;
}

/* Adds the sizes of records: values and keys of all, headers of one in so many; 0: of none. */
void drain_measure(const struct functions *librdkafka, struct message *const *records, int64_t count, int64_t every,
                   struct sizes *sizes)
{
    for (int64_t i = 0; i < count; i++) {
        const struct message *record = records[i];
        void *headers;
        sizes->values.bytes += record->value ? (int64_t)record->value_size : 0;
        sizes->keys.bytes += record->key ? (int64_t)record->key_size : 0;
        if (!every || i % every || librdkafka->headers(record, &headers))
            continue;
        const char *name;
        const void *value;
        size_t size;
        for (size_t place = 0; !librdkafka->header(headers, place, &name, &value, &size); place++) {
            sizes->names.bytes += (int64_t)strlen(name);
            sizes->headers.bytes += value ? (int64_t)size : 0;
            sizes->headers.rows++;
        }
    }
    sizes->values.rows += count;
    sizes->keys.rows += count;
    sizes->names.rows = sizes->headers.rows;
}

/* Appends a row; null if there are no bytes. Returns 0, or 1 if the column is too small. */
static int append(struct column *column, const void *bytes, size_t size)
{
    int64_t row = column->used.rows;
    if (row >= column->most.rows || (bytes && size > (uint64_t)(column->most.bytes - column->used.bytes)))
        return 1;
    if (bytes) {
        if (size)
            memcpy(column->bytes + column->used.bytes, bytes, size);
        column->used.bytes += (int64_t)size;
        column->present[row / 8] |= (uint8_t)(1u << (row % 8));
    } else {
        column->nulls++;
    }
    column->used.rows = row + 1;
    column->ends[row + 1] = (int32_t)column->used.bytes;
    return 0;
}

/* Copies records into empty columns, whose `present` and first `ends` are zero. Returns 0, or 1 if one is too small. */
int drain_copy(const struct functions *librdkafka, struct message *const *records, int64_t count,
               struct columns *columns)
{
    if (count > columns->most)
        return 1;
    for (int64_t i = 0; i < count; i++) {
        const struct message *record = records[i];
        int type = 0;
        int64_t time = librdkafka->timestamp(record, &type);
        columns->offsets[i] = record->offset;
        /* librdkafka gives 0 for a record without a time, Kafka -1. Its types are Kafka's plus one. */
        columns->times[i] = type == 0 ? -1 : time;
        if (append(&columns->values, record->value, record->value_size))
            return 1;
        if (!columns->types)
            continue;
        columns->types[i] = type - 1;
        if (append(&columns->keys, record->key, record->key_size))
            return 1;
        void *headers;
        if (!librdkafka->headers(record, &headers)) {
            const char *name;
            const void *value;
            size_t size;
            for (size_t place = 0; !librdkafka->header(headers, place, &name, &value, &size); place++)
                if (append(&columns->names, name, strlen(name)) || append(&columns->headers, value, size))
                    return 1;
        }
        columns->header_ends[i + 1] = (int32_t)columns->headers.used.rows;
    }
    return 0;
}

/* Gives messages back to librdkafka. */
void drain_drop(const struct functions *librdkafka, struct message **messages, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        librdkafka->destroy(messages[i]);
}

/* rd_kafka_vu_t of rdkafka.h: an argument of produceva. */
struct argument {
    int type;
    union {
        void *pointer;
        int number;
        int32_t partition;
        int64_t time;
        struct {
            const void *bytes;
            size_t size;
        } memory;
        char pad[64];
    } value;
};

enum { TOPIC = 2, PARTITION, VALUE, KEY, OPAQUE, FLAGS, TIMESTAMP, HEADERS = 10, ARGUMENTS = 8 };
enum { COPY = 2, QUEUE_FULL = -184 };

struct producing {
    void *(*produce)(void *producer, const struct argument *arguments, size_t count);
    void *(*new_headers)(size_t count);
    int (*add_header)(void *headers, const char *name, ptrdiff_t name_size, const void *value, ptrdiff_t size);
    void (*drop_headers)(void *headers);
    int (*code)(const void *error);
    void (*drop_error)(void *error);
};

/* An Arrow column of bytes that is read. `first`: the row of its memory that is row 0. */
struct cells {
    const uint8_t *present; /* null: no row is null */
    int64_t first;
    const int64_t *ends;
    const uint8_t *bytes;
};

struct rows {
    const int64_t *times;
    const int32_t *header_ends; /* of row 0: where its headers begin */
    struct cells values, keys, names, headers;
};

/* The answers about the records of a transaction, whose numbers begin at 1. */
struct answers {
    int64_t records;
    int64_t failed;
    int64_t error; /* of the first that failed by itself; if all were dropped, of the last */
    int64_t first; /* offset of record 1; negative: the broker did not say */
    int64_t last;  /* offset of the record with the highest number so far */
    int64_t number;
};

/* Returns the bytes of a row; null for null. */
static const void *cell(const struct cells *column, int64_t row, size_t *size)
{
    int64_t place = column->first + row;
    *size = 0;
    if (column->present && !(column->present[place / 8] >> (place % 8) & 1))
        return 0;
    *size = (size_t)(column->ends[place + 1] - column->ends[place]);
    return *size ? (const void *)(column->bytes + column->ends[place]) : "";
}

/* Returns the headers of a row, or null if there are none. */
static void *headers_of(const struct producing *librdkafka, const struct rows *rows, int64_t row)
{
    int64_t begin = rows->header_ends[row] - rows->header_ends[0], end = rows->header_ends[row + 1] - rows->header_ends[0];
    if (begin == end)
        return 0;
    void *headers = librdkafka->new_headers((size_t)(end - begin));
    for (int64_t i = begin; i < end; i++) {
        size_t name_size, size;
        const char *name = cell(&rows->names, i, &name_size);
        const void *value = cell(&rows->headers, i, &size);
        librdkafka->add_header(headers, name, (ptrdiff_t)name_size, value, (ptrdiff_t)size);
    }
    return headers;
}

/* Hands rows `start` to `end` to a producer; the first gets number `number`. Returns how many it took: fewer if its queue
   is full, or at an error, which is written to `error`. */
int64_t drain_send(const struct producing *librdkafka, void *producer, void *topic, int32_t partition,
                   const struct rows *rows, int64_t start, int64_t end, int64_t number, void **error)
{
    struct argument arguments[ARGUMENTS] = {
        {.type = TOPIC, .value.pointer = topic},
        {.type = PARTITION, .value.partition = partition},
        {.type = FLAGS, .value.number = COPY},
        {.type = TIMESTAMP},
        {.type = OPAQUE},
        {.type = VALUE},
        {.type = KEY},
        {.type = HEADERS},
    };
    *error = 0;
    for (int64_t row = start; row < end; row++) {
        size_t size;
        arguments[3].value.time = rows->times[row];
        arguments[4].value.pointer = (void *)(intptr_t)(number + row - start);
        arguments[5].value.memory.bytes = cell(&rows->values, row, &size);
        arguments[5].value.memory.size = size;
        arguments[6].value.memory.bytes = cell(&rows->keys, row, &size);
        arguments[6].value.memory.size = size;
        void *headers = headers_of(librdkafka, rows, row);
        arguments[7].value.pointer = headers;
        void *failure = librdkafka->produce(producer, arguments, headers ? ARGUMENTS : ARGUMENTS - 1);
        if (!failure)
            continue;
        if (headers)
            librdkafka->drop_headers(headers);
        if (librdkafka->code(failure) == QUEUE_FULL)
            librdkafka->drop_error(failure);
        else
            *error = failure;
        return row - start;
    }
    return end - start;
}

/* RD_KAFKA_RESP_ERR__PURGE_QUEUE, _PURGE_INFLIGHT: dropped, because another record failed, or the producer is closed.
   librdkafka may say so before it says why the other one failed. */
static int is_purged(int64_t error)
{
    return error == -152 || error == -151;
}

/* Notes the answer about a record. librdkafka calls it while the producer is polled. */
void drain_answer(void *producer, const struct message *record, void *opaque)
{
    struct answers *answers = opaque;
    int64_t number = (int64_t)(intptr_t)record->opaque;
    (void)producer;
    answers->records++;
    if (record->err) {
        if (!answers->failed++ || is_purged(answers->error))
            answers->error = record->err;
        return;
    }
    if (number == 1)
        answers->first = record->offset;
    if (number >= answers->number) {
        answers->number = number;
        answers->last = record->offset;
    }
}
