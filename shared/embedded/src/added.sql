-- What came after the first files: made where it is missing, in old files and in new ones.

-- What is used of the budgets of destinations. `usage` is JSON.
CREATE TABLE IF NOT EXISTS budget (
    destination TEXT    PRIMARY KEY,
    revision    INTEGER NOT NULL,
    usage       TEXT    NOT NULL
) STRICT;
