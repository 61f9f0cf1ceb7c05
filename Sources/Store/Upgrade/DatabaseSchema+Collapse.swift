/// SQL for queue positions that may be replaced, of version 3.
let collapseTable = """
    -- A queue position whose message a later one of the same key replaces while it waits. key: names
    -- topic and collapse key. sequences: eight bytes each, little-endian.
    CREATE TABLE collapsible (
        session INTEGER NOT NULL,
        position INTEGER NOT NULL,
        key BLOB NOT NULL,
        sequences BLOB NOT NULL,
        PRIMARY KEY (session, position)
    ) WITHOUT ROWID;

    """
