-- What version 2 adds: orders and their audit, the history of the configuration, and a dead-letter
-- queue that can be browsed. Nothing that version 1 wrote is written again.

-- What operators decided, for the workers to carry out; how far that has come stands in the text.
CREATE TABLE orders (
    -- A tenant, or * for what concerns more than one.
    book     TEXT    NOT NULL,
    order_id TEXT    NOT NULL,
    -- The identifier behind its prefix, which sorts by time.
    digits   TEXT    NOT NULL,
    -- What every change compares.
    revision INTEGER NOT NULL,
    is_open  INTEGER NOT NULL,
    -- The whole order as JSON.
    document TEXT    NOT NULL,
    PRIMARY KEY (book, order_id)
) STRICT;

-- What is still to be carried out or kept in force. What is done is not in it, so its cost does not
-- know history.
CREATE INDEX orders_open ON orders (digits, book, order_id) WHERE is_open = 1;

-- Orders as an operator lists them.
CREATE INDEX orders_by_time ON orders (book, digits DESC, order_id);

-- Who did what, when and why: inserted, never changed.
CREATE TABLE audit (
    book  TEXT    NOT NULL,
    -- The place in the book, from 1 on without gaps.
    seq   INTEGER NOT NULL,
    -- The whole entry as JSON.
    entry TEXT    NOT NULL,
    PRIMARY KEY (book, seq)
) STRICT, WITHOUT ROWID;

-- The newest entry of each book, kept apart: so it shows if the end of a book was cut off.
CREATE TABLE audit_head (
    book  TEXT    PRIMARY KEY,
    seq   INTEGER NOT NULL,
    hash  TEXT    NOT NULL,
    entry TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- The configurations that were in force; the greatest number is.
CREATE TABLE revision (
    number INTEGER PRIMARY KEY,
    -- Which one, who, when and why, as JSON.
    facts  TEXT    NOT NULL
) STRICT;

-- What a configuration says, under its digest: inserted, never changed.
CREATE TABLE document (
    revision TEXT PRIMARY KEY,
    text     TEXT NOT NULL
) STRICT;

-- While somebody looks at a dead-letter message, it is hidden; afterwards this says when that was, so
-- that whoever looks at a few sees those first that were not looked at for longest.
ALTER TABLE dead_message ADD COLUMN hidden_until INTEGER NOT NULL DEFAULT 0;
-- Of the last look: the only receipt that counts.
ALTER TABLE dead_message ADD COLUMN receipt TEXT;

CREATE INDEX dead_message_by_visibility ON dead_message (hidden_until, id);
