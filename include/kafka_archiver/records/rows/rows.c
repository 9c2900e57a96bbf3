/* Reads Avro or JSON into Arrow columns, record by record. filled.py calls it and says what each node is.

   It allocates nothing, keeps nothing, and links to nothing. All memory that it writes is the caller's, and its sizes
   come with it: what does not fit is counted, never written, and the caller calls again with more memory. A record that
   is not what the schema says, or is too irregular, leaves no trace but its mark: Python reads it and says why. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum kind {
    NOTHING,  /* no bytes; always null */
    BOOLEAN,
    INTEGER,  /* stored as `width` bytes */
    INTEGER_AS_REAL,
    REAL,     /* `size` bytes, stored as `width` */
    TEXT,
    FIXED,
    DECIMAL,
    UUID,
    SYMBOL,
    RECORD,
    LIST,
    MAP,
    OPTIONAL, /* a union whose one column is its child's */
    UNION,    /* a union with a column for each place */
    REFUSED,
};

enum { GOOD, BAD };

/* More entries of one map than this are compared by Python. */
#define MOST_ENTRIES 64
#define NOWHERE (-1)
/* Names of one JSON object that have columns. */
#define MOST_NAMES 256

/* What a node has of records so far. `used`: bytes of a text, items of a list. */
struct count {
    int64_t rows, used, nulls;
};

struct node {
    int32_t kind, width;
    int64_t size;       /* bytes of a fixed; -1: the length is before them; of a symbol: how many there are */
    int64_t low, high;  /* the bounds of an integer; of a decimal see `decimal` */
    int32_t first, parts;    /* its children, or the branches of a union, in the table of parts */
    int32_t place, places;   /* the columns of a union, in the table of parts */
    int64_t most_rows, most_used;
    uint8_t *present;   /* null: no row can be null */
    uint8_t *data;      /* numbers, bits, or where each row ends */
    uint8_t *bytes;     /* of a text; of a symbol: 1 for each that is known */
};

struct program {
    const struct node *nodes;
    const int32_t *parts;  /* nodes; of branches: node and place, in turn */
    struct count *counts;
    const uint8_t *names;      /* of JSON: the name of each part is between two of these ends */
    const int32_t *name_ends;
};

struct reader {
    const uint8_t *at, *end;
};

static int64_t left(const struct reader *reader)
{
    return reader->end - reader->at;
}

static int number(struct reader *reader, int64_t *value)
{
    uint64_t bits = 0;
    for (unsigned shift = 0; shift <= 63; shift += 7) {
        if (reader->at == reader->end)
            return BAD;
        uint8_t byte = *reader->at++;
        bits |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            if (shift == 63 && byte > 1)
                return BAD;
            *value = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
            return GOOD;
        }
    }
    return BAD;
}

/* The next bytes: `size` of them, or as many as the number before them says. */
static int bytes(struct reader *reader, int64_t size, const uint8_t **start, int64_t *length)
{
    *length = size;
    if (size < 0 && number(reader, length))
        return BAD;
    if (*length < 0 || *length > left(reader))
        return BAD;
    *start = reader->at;
    reader->at += *length;
    return GOOD;
}

static void bit(uint8_t *bits, int64_t row, int is_set)
{
    uint8_t mask = (uint8_t)(1u << (row % 8));
    bits[row / 8] = (uint8_t)(is_set ? bits[row / 8] | mask : bits[row / 8] & ~mask);
}

/* Begins a row. Returns its number, or NOWHERE if there is no memory for it. */
static int64_t row(const struct node *node, struct count *count, int is_present)
{
    int64_t row = count->rows++;
    count->nulls += !is_present;
    if (row >= node->most_rows)
        return NOWHERE;
    if (node->present)
        bit(node->present, row, is_present);
    return row;
}

static void fixed(const struct node *node, struct count *count, const void *value, size_t size)
{
    int64_t at = row(node, count, value != NULL);
    if (at == NOWHERE)
        return;
    if (value)
        memcpy(node->data + at * (int64_t)size, value, size);
    else
        memset(node->data + at * (int64_t)size, 0, size);
}

static void ends(const struct node *node, struct count *count, int is_present)
{
    int64_t at = row(node, count, is_present);
    int32_t end = (int32_t)count->used;
    if (at != NOWHERE)
        memcpy(node->data + 4 * (at + 1), &end, 4);
}

static void nothing(const struct program *program, int32_t number)
{
    const struct node *node = &program->nodes[number];
    struct count *count = &program->counts[number];
    const int32_t *parts = program->parts;
    switch (node->kind) {
    case BOOLEAN: {
        int64_t at = row(node, count, 0);
        if (at != NOWHERE)
            bit(node->data, at, 0);
        return;
    }
    case INTEGER:
    case INTEGER_AS_REAL:
    case REAL:
    case FIXED:
    case DECIMAL:
    case UUID:
    case SYMBOL:
        fixed(node, count, NULL, (size_t)node->width);
        return;
    case TEXT:
    case LIST:
    case MAP:
        ends(node, count, 0);
        return;
    case OPTIONAL:
    case UNION:
        row(node, count, 0);
        for (int32_t i = 0; i < node->places; i++)
            nothing(program, parts[node->place + i]);
        return;
    case RECORD:
        row(node, count, 0);
        for (int32_t i = 0; i < node->parts; i++)
            nothing(program, parts[node->first + i]);
        return;
    default:
        row(node, count, 0);
    }
}

static int real(struct reader *reader, const struct node *node, struct count *count)
{
    const uint8_t *start;
    int64_t length;
    if (bytes(reader, node->size, &start, &length))
        return BAD;
    if (node->size == 8) {
        fixed(node, count, start, 8);
        return GOOD;
    }
    uint32_t bits;
    memcpy(&bits, start, 4);
    if ((bits & 0x7f800000u) == 0x7f800000u && bits & 0x7fffffu)
        bits |= 1u << 22;  /* as every conversion to a double does */
    if (node->width == 4) {
        fixed(node, count, &bits, 4);
        return GOOD;
    }
    float narrow;
    memcpy(&narrow, &bits, 4);
    double wide = narrow;
    fixed(node, count, &wide, 8);
    return GOOD;
}

static void integer(const struct node *node, struct count *count, int64_t value)
{
    if (node->kind == INTEGER && node->width == 8) {
        fixed(node, count, &value, 8);
    } else if (node->kind == INTEGER) {
        int32_t narrow = (int32_t)value;
        fixed(node, count, &narrow, 4);
    } else if (node->width == 8) {
        double real = (double)value;
        fixed(node, count, &real, 8);
    } else {
        float real = (float)value;
        fixed(node, count, &real, 4);
    }
}

/* `low`: 10 to the power of the precision, if it has 64 bits, else 0; `high`: its upper half then. */
static int decimal(struct reader *reader, const struct node *node, struct count *count)
{
    const uint8_t *start;
    int64_t length;
    if (bytes(reader, node->size, &start, &length) || !length || length > 16)
        return BAD;
    uint8_t digits[16];
    memset(digits, start[0] > 0x7f ? 0xff : 0, 16);
    for (int64_t i = 0; i < length; i++)
        digits[i] = start[length - 1 - i];
    uint64_t low, limit = (uint64_t)node->low;
    int64_t high;
    memcpy(&low, digits, 8);
    memcpy(&high, digits + 8, 8);
    if (limit ? !((high == 0 && low < limit) || (high == -1 && low > 0 - limit)) :
                !(high < node->high && high > -node->high))
        return BAD;
    fixed(node, count, digits, 16);
    return GOOD;
}

static int digit(uint8_t letter)
{
    return letter >= '0' && letter <= '9' ? letter - '0' : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 :
           letter >= 'A' && letter <= 'F' ? letter - 'A' + 10 : -1;
}

static int uuid(struct reader *reader, const struct node *node, struct count *count)
{
    const uint8_t *start;
    int64_t length;
    if (bytes(reader, -1, &start, &length) || length != 36)
        return BAD;
    uint8_t value[16];
    int place = 0;
    for (int i = 0; i < 36; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (start[i] != '-')
                return BAD;
            continue;
        }
        int high = digit(start[i]), low = digit(start[i + 1]);
        if (high < 0 || low < 0)
            return BAD;
        value[place++] = (uint8_t)(high << 4 | low);
        i++;
    }
    fixed(node, count, value, 16);
    return GOOD;
}

/* Returns BAD if one of the last `entries` keys is there twice, or there are too many to compare. */
static int twice(const struct node *keys, const struct count *count, int64_t entries)
{
    if (entries > MOST_ENTRIES)
        return BAD;
    if (count->rows > keys->most_rows || count->used > keys->most_used)
        return GOOD;  /* not all of them were written: this is read again */
    int32_t places[MOST_ENTRIES + 1];
    memcpy(places, keys->data + 4 * (count->rows - entries), 4 * (size_t)(entries + 1));
    for (int64_t i = 1; i < entries; i++)
        for (int64_t j = 0; j < i; j++) {
            int32_t size = places[i + 1] - places[i];
            if (size == places[j + 1] - places[j] &&
                !memcmp(keys->bytes + places[i], keys->bytes + places[j], (size_t)size))
                return BAD;
        }
    return GOOD;
}

static int value(struct reader *reader, const struct program *program, int32_t number);

static int list(struct reader *reader, const struct program *program, int32_t at)
{
    const struct node *node = &program->nodes[at];
    struct count *count = &program->counts[at];
    int64_t items = 0, some;
    for (;;) {
        if (number(reader, &some))
            return BAD;
        if (!some)
            break;
        int64_t size;
        if (some < 0) {
            if (some == INT64_MIN || number(reader, &size))
                return BAD;
            some = -some;
        }
        if (some > left(reader))
            return BAD;
        for (int64_t i = 0; i < some; i++)
            for (int32_t part = 0; part < node->parts; part++)
                if (value(reader, program, program->parts[node->first + part]))
                    return BAD;
        items += some;
    }
    if (node->kind == MAP) {
        int32_t keys = program->parts[node->first];
        if (twice(&program->nodes[keys], &program->counts[keys], items))
            return BAD;
    }
    count->used += items;
    ends(node, count, 1);
    return GOOD;
}

static int branch(struct reader *reader, const struct program *program, int32_t at)
{
    const struct node *node = &program->nodes[at];
    const int32_t *parts = program->parts;
    int64_t chosen;
    if (number(reader, &chosen) || chosen < 0 || chosen >= node->parts)
        return BAD;
    int32_t read = parts[node->first + 2 * chosen], place = parts[node->first + 2 * chosen + 1];
    row(node, &program->counts[at], place != NOWHERE);
    for (int32_t i = 0; i < node->places; i++)
        if (i != place)
            nothing(program, parts[node->place + i]);
    return value(reader, program, read);
}

/* Reads one value of a node into its columns. */
static int value(struct reader *reader, const struct program *program, int32_t at)
{
    const struct node *node = &program->nodes[at];
    struct count *count = &program->counts[at];
    const uint8_t *start;
    int64_t length, whole;
    int32_t symbol;
    switch (node->kind) {
    case NOTHING:
        row(node, count, 0);
        return GOOD;
    case BOOLEAN:
        if (bytes(reader, 1, &start, &length) || *start > 1)
            return BAD;
        whole = row(node, count, 1);
        if (whole != NOWHERE)
            bit(node->data, whole, *start);
        return GOOD;
    case INTEGER:
    case INTEGER_AS_REAL:
        if (number(reader, &whole) || whole < node->low || whole > node->high)
            return BAD;
        integer(node, count, whole);
        return GOOD;
    case REAL:
        return real(reader, node, count);
    case TEXT:
        if (bytes(reader, -1, &start, &length))
            return BAD;
        if (count->used + length <= node->most_used && length)
            memcpy(node->bytes + count->used, start, (size_t)length);
        count->used += length;
        ends(node, count, 1);
        return GOOD;
    case FIXED:
        if (bytes(reader, node->size, &start, &length))
            return BAD;
        fixed(node, count, start, (size_t)length);
        return GOOD;
    case DECIMAL:
        return decimal(reader, node, count);
    case UUID:
        return uuid(reader, node, count);
    case SYMBOL:
        if (number(reader, &whole) || whole < 0 || whole >= node->size || !node->bytes[whole])
            return BAD;
        symbol = (int32_t)whole;
        fixed(node, count, &symbol, 4);
        return GOOD;
    case RECORD:
        for (int32_t i = 0; i < node->parts; i++)
            if (value(reader, program, program->parts[node->first + i]))
                return BAD;
        row(node, count, 1);
        return GOOD;
    case LIST:
    case MAP:
        return list(reader, program, at);
    case OPTIONAL:
    case UNION:
        return branch(reader, program, at);
    default:
        return BAD;
    }
}

/* --- JSON. What is certain is read here; escapes of four digits, long numbers, names that have no column, and whatever
   is no JSON are left to Python. --- */

static void space(struct reader *reader)
{
    while (reader->at < reader->end &&
           (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\r' || *reader->at == '\t'))
        reader->at++;
}

static int next(struct reader *reader, uint8_t letter)
{
    space(reader);
    if (reader->at == reader->end || *reader->at != letter)
        return 0;
    reader->at++;
    return 1;
}

static int word(struct reader *reader, const char *letters, int64_t size)
{
    if (left(reader) < size || memcmp(reader->at, letters, (size_t)size))
        return BAD;
    reader->at += size;
    return GOOD;
}

/* The letters between two quotes. `escaped`: some of them are escapes. */
static int quoted(struct reader *reader, const uint8_t **start, int64_t *length, int *escaped)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    *escaped = 0;
    if (!next(reader, '"'))
        return BAD;
    *start = reader->at;
    const uint8_t *at = reader->at;
    for (;;) {
        while (reader->end - at >= 8) {
            uint64_t letters;
            memcpy(&letters, at, 8);
            uint64_t quotes = letters ^ ones * '"', slashes = letters ^ ones * '\\';
            if ((((quotes - ones) & ~quotes) | ((slashes - ones) & ~slashes) | ((letters - ones * 32) & ~letters)) & high)
                break;
            at += 8;
        }
        if (at == reader->end || *at < 32)
            return BAD;
        if (*at == '"')
            break;
        if (*at == '\\') {
            *escaped = 1;
            if (++at == reader->end || *at < 32)
                return BAD;
        }
        at++;
    }
    *length = at - *start;
    reader->at = at + 1;
    return GOOD;
}

static void text(const struct node *node, struct count *count, const uint8_t *start, int64_t length)
{
    if (length && count->used + length <= node->most_used)
        memcpy(node->bytes + count->used, start, (size_t)length);
    count->used += length;
}

static int unescaped(const struct node *node, struct count *count, const uint8_t *start, int64_t length)
{
    const uint8_t *at = start, *end = start + length;
    while (at < end) {
        const uint8_t *plain = at;
        while (at < end && *at != '\\')
            at++;
        text(node, count, plain, at - plain);
        if (at == end)
            return GOOD;
        uint8_t letter = at[1];
        letter = letter == 'n' ? '\n' : letter == 't' ? '\t' : letter == 'r' ? '\r' : letter == 'b' ? '\b' :
                 letter == 'f' ? '\f' : letter == '"' || letter == '\\' || letter == '/' ? letter : 0;
        if (!letter)
            return BAD;
        text(node, count, &letter, 1);
        at += 2;
    }
    return GOOD;
}

static int string(struct reader *reader, const struct node *node, struct count *count)
{
    const uint8_t *start;
    int64_t length;
    int escaped;
    if (quoted(reader, &start, &length, &escaped))
        return BAD;
    if (!escaped)
        text(node, count, start, length);
    else if (unescaped(node, count, start, length))
        return BAD;
    ends(node, count, 1);
    return GOOD;
}

/* A number as its digits say: `value` times 10 to the power of `exponent`. */
static int digits(struct reader *reader, int *negative, uint64_t *value, int *exponent, int *whole)
{
    const uint8_t *at = reader->at, *end = reader->end;
    int count = 0;
    *negative = at < end && *at == '-';
    at += *negative;
    *value = 0, *exponent = 0, *whole = 1;
    if (at == end || *at < '0' || *at > '9' || (*at == '0' && at + 1 < end && at[1] >= '0' && at[1] <= '9'))
        return BAD;
    for (; at < end && *at >= '0' && *at <= '9'; at++, count++)
        *value = *value * 10 + (uint64_t)(*at - '0');
    if (at < end && *at == '.') {
        *whole = 0;
        const uint8_t *point = ++at;
        for (; at < end && *at >= '0' && *at <= '9'; at++, count++, (*exponent)--)
            *value = *value * 10 + (uint64_t)(*at - '0');
        if (at == point)
            return BAD;
    }
    /* More digits may not be in `value`. */
    if (count > 18)
        return BAD;
    if (at < end && (*at == 'e' || *at == 'E')) {
        *whole = 0;
        int power = 0, below;
        at++;
        below = at < end && *at == '-';
        at += at < end && (*at == '-' || *at == '+');
        const uint8_t *first = at;
        for (; at < end && *at >= '0' && *at <= '9' && at - first < 4; at++)
            power = power * 10 + (*at - '0');
        if (at == first || at - first > 3)
            return BAD;
        *exponent += below ? -power : power;
    }
    reader->at = at;
    return GOOD;
}

static int json_real(struct reader *reader, const struct node *node, struct count *count)
{
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
                                    1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    int negative, exponent, whole;
    uint64_t value;
    if (digits(reader, &negative, &value, &exponent, &whole))
        return BAD;
    /* Both are exact then, so one division or multiplication rounds as it has to. */
    if (value > (uint64_t)1 << 53 || exponent < -22 || exponent > 22 || (negative && !value))
        return BAD;
    double real = exponent < 0 ? (double)value / powers[-exponent] : (double)value * powers[exponent];
    if (negative)
        real = -real;
    if (node->width == 4) {
        float narrow = (float)real;
        fixed(node, count, &narrow, 4);
    } else {
        fixed(node, count, &real, 8);
    }
    return GOOD;
}

static int json_value(struct reader *reader, const struct program *program, int32_t at);

static int object(struct reader *reader, const struct program *program, int32_t at)
{
    const struct node *node = &program->nodes[at];
    uint64_t seen[MOST_NAMES / 64] = {0};
    int32_t place = 0;
    if (!next(reader, '{'))
        return BAD;
    if (!next(reader, '}')) {
        do {
            const uint8_t *name;
            int64_t length;
            int escaped;
            int32_t tries = 0;
            if (quoted(reader, &name, &length, &escaped) || escaped || !next(reader, ':'))
                return BAD;
            /* Most documents have their names in one order. */
            for (;; tries++, place++) {
                if (tries == node->parts)
                    return BAD;
                if (place >= node->parts)
                    place = 0;
                const int32_t *name_ends = program->name_ends + node->first + place;
                if (name_ends[1] - name_ends[0] == length && !memcmp(program->names + name_ends[0], name, (size_t)length))
                    break;
            }
            uint64_t mark = (uint64_t)1 << (place % 64);
            if (seen[place / 64] & mark || json_value(reader, program, program->parts[node->first + place]))
                return BAD;
            seen[place / 64] |= mark;
            place++;
        } while (next(reader, ','));
        if (!next(reader, '}'))
            return BAD;
    }
    for (int32_t i = 0; i < node->parts; i++)
        if (!(seen[i / 64] >> (i % 64) & 1))
            nothing(program, program->parts[node->first + i]);
    row(node, &program->counts[at], 1);
    return GOOD;
}

/* The items between brackets, or the entries between braces. */
static int json_list(struct reader *reader, const struct program *program, int32_t at)
{
    const struct node *node = &program->nodes[at];
    struct count *count = &program->counts[at];
    int is_map = node->kind == MAP;
    const int32_t *parts = program->parts + node->first;
    int64_t items = 0;
    if (!next(reader, is_map ? '{' : '['))
        return BAD;
    if (!next(reader, is_map ? '}' : ']')) {
        do {
            if (is_map && (string(reader, &program->nodes[parts[0]], &program->counts[parts[0]]) || !next(reader, ':')))
                return BAD;
            if (json_value(reader, program, parts[is_map]))
                return BAD;
            items++;
        } while (next(reader, ','));
        if (!next(reader, is_map ? '}' : ']'))
            return BAD;
    }
    if (is_map && twice(&program->nodes[parts[0]], &program->counts[parts[0]], items))
        return BAD;
    count->used += items;
    ends(node, count, 1);
    return GOOD;
}

static int json_value(struct reader *reader, const struct program *program, int32_t at)
{
    const struct node *node = &program->nodes[at];
    struct count *count = &program->counts[at];
    int negative, exponent, whole;
    uint64_t size;
    int64_t value;
    space(reader);
    if (reader->at == reader->end)
        return BAD;
    if (*reader->at == 'n') {
        nothing(program, at);
        return word(reader, "null", 4);
    }
    switch (node->kind) {
    case BOOLEAN:
        whole = *reader->at == 't';
        if (word(reader, whole ? "true" : "false", whole ? 4 : 5))
            return BAD;
        value = row(node, count, 1);
        if (value != NOWHERE)
            bit(node->data, value, whole);
        return GOOD;
    case INTEGER:
        if (digits(reader, &negative, &size, &exponent, &whole) || !whole)
            return BAD;
        value = negative ? -(int64_t)size : (int64_t)size;
        if (value < node->low || value > node->high)
            return BAD;
        integer(node, count, value);
        return GOOD;
    case REAL:
        return json_real(reader, node, count);
    case TEXT:
        return string(reader, node, count);
    case RECORD:
        return object(reader, program, at);
    case LIST:
    case MAP:
        return json_list(reader, program, at);
    default:
        return BAD;
    }
}

/* Reads records: bytes of `data` between each start and end. `kept` and `counts` have room for as many counts as there
   are nodes; `bad` has a byte for each record, 1 for one that has left nothing. Returns the number of these. */
int64_t rows_read(const uint8_t *data, const int64_t *starts, const int64_t *stops, int64_t records, int is_json,
                  const struct program *program, int64_t nodes, struct count *kept, uint8_t *bad)
{
    int64_t bad_records = 0;
    for (int64_t i = 0; i < nodes; i++) {
        int32_t kind = program->nodes[i].kind;
        if (kind == TEXT || kind == LIST || kind == MAP)
            memset(program->nodes[i].data, 0, 4);
    }
    for (int64_t i = 0; i < records; i++) {
        memcpy(kept, program->counts, (size_t)nodes * sizeof(struct count));
        struct reader reader = {data + starts[i], data + stops[i]};
        bad[i] = (uint8_t)(is_json ? json_value(&reader, program, 0) : value(&reader, program, 0));
        if (is_json)
            space(&reader);
        bad[i] |= left(&reader) != 0;
        if (bad[i]) {
            memcpy(program->counts, kept, (size_t)nodes * sizeof(struct count));
            bad_records++;
        }
    }
    return bad_records;
}

/* Writes the schema id of each of the registry's frames: byte 0, then the id in four bytes; -1: there is no frame. */
void rows_frames(const uint8_t *data, const int64_t *starts, const int64_t *stops, int64_t records, int64_t *ids)
{
    for (int64_t i = 0; i < records; i++) {
        const uint8_t *frame = data + starts[i];
        if (stops[i] - starts[i] < 5 || frame[0])
            ids[i] = -1;
        else
            ids[i] = (int64_t)frame[1] << 24 | frame[2] << 16 | frame[3] << 8 | frame[4];
    }
}
