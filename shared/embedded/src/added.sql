-- What came after the first files: made where it is missing, in old files and in new ones.

-- What is used of the budgets of destinations. `usage` is JSON.
CREATE TABLE IF NOT EXISTS budget (
    destination TEXT    PRIMARY KEY,
    revision    INTEGER NOT NULL,
    usage       TEXT    NOT NULL
) STRICT;

-- Wake-ups by whose they are, so that one with many keeps nobody else's waiting (`turns.rs`). NULL for a
-- body that does not say it.
CREATE INDEX IF NOT EXISTS message_by_group
    ON message (iif(json_valid(body), (body ->> 'tenant') || '#' || (body ->> 'destination'), NULL), visible_at, id);
