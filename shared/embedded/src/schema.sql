-- One file: the ledger (delivery, payload, attempt) and the queue (message, dead_message). This is
-- version 1; schema_2.sql adds to it.
--
-- Times are milliseconds since 1970-01-01T00:00:00Z. Columns beside `record` repeat what the
-- indexes and the compare-and-set need; the record's text is what is read back.

CREATE TABLE delivery (
    id              INTEGER PRIMARY KEY,
    delivery_id     TEXT    NOT NULL,
    tenant          TEXT    NOT NULL,
    destination     TEXT    NOT NULL,
    first_queued_at INTEGER NOT NULL,
    deadline        INTEGER,
    -- What every change compares.
    state           TEXT    NOT NULL,
    revision        INTEGER NOT NULL,
    -- When the reconciler looks at it; NULL where there is nothing to look after.
    look_at         INTEGER,
    -- While held: the deadline, or the largest integer where there is none (those go last).
    -- NULL while not held.
    release_order   INTEGER,
    -- Why and when automation ended without a delivery; NULL otherwise.
    reason          TEXT,
    ended_at        INTEGER,
    -- The whole record as JSON.
    record          TEXT    NOT NULL,
    UNIQUE (delivery_id, tenant)
) STRICT;

-- What is due for a look. Whatever succeeded is not in it, so its cost does not know history.
CREATE INDEX delivery_by_look ON delivery (look_at, tenant, delivery_id)
    WHERE look_at IS NOT NULL;

-- What is held, in the order in which it will be released.
CREATE INDEX delivery_by_hold ON delivery (destination, release_order, tenant, delivery_id)
    WHERE release_order IS NOT NULL;

-- Dead letters as an operator reviews them; it covers the summary.
CREATE INDEX delivery_by_reason ON delivery (tenant, destination, reason, ended_at, delivery_id, deadline)
    WHERE state = 'dead_lettered';

-- Deliveries as an operator lists them.
CREATE INDEX delivery_by_time ON delivery (tenant, first_queued_at, delivery_id);

-- The frozen bytes, under the `id` of their delivery: written in one transaction with it.
CREATE TABLE payload (
    delivery INTEGER PRIMARY KEY,
    bytes    BLOB NOT NULL
) STRICT;

-- Evidence: inserted, never changed.
CREATE TABLE attempt (
    delivery_id TEXT    NOT NULL,
    tenant      TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    -- The claim under which it ran, and who says what it came to.
    token       TEXT    NOT NULL,
    witness     TEXT    NOT NULL,
    evidence    TEXT    NOT NULL,
    PRIMARY KEY (delivery_id, tenant, number, token, witness)
) STRICT;

-- Wake-ups. `id` is the order of sending.
CREATE TABLE message (
    id            INTEGER PRIMARY KEY,
    message_id    TEXT    NOT NULL,
    body          TEXT    NOT NULL,
    -- Attributes of a message that came back from dead_message: a JSON object.
    attributes    TEXT    NOT NULL DEFAULT '{}',
    visible_at    INTEGER NOT NULL,
    receive_count INTEGER NOT NULL DEFAULT 0,
    -- Of the last receiving: the only receipt that counts.
    receipt       TEXT
) STRICT;

CREATE INDEX message_by_visibility ON message (visible_at, id);

-- The dead-letter queue.
CREATE TABLE dead_message (
    id         INTEGER PRIMARY KEY,
    message_id TEXT    NOT NULL UNIQUE,
    body       TEXT    NOT NULL,
    attributes TEXT    NOT NULL,
    buried_at  INTEGER NOT NULL
) STRICT;
