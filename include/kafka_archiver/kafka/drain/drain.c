/* Copies librdkafka's messages into columns. The only C of this package; library.py calls it.

   It allocates nothing, keeps nothing, and links to nothing: librdkafka's functions come in a table. All memory that it
   writes is the caller's, and its sizes come with it: a column that is too small is an answer, never a write.
   Messages stay librdkafka's until drain_drop; columns have copies. */
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
