/// SQL for scheduled messages, of version 3.
let scheduledTables = """
    -- number: rises. due_ms: UNIX time in milliseconds at which it is published. expires_in_ms: from
    -- then on; 0 for never. receipt: 1 when its receivers are followed.
    CREATE TABLE scheduled (
        number INTEGER PRIMARY KEY,
        due_ms INTEGER NOT NULL,
        expires_in_ms INTEGER NOT NULL,
        message_id BLOB NOT NULL,
        topic BLOB NOT NULL,
        payload BLOB NOT NULL,
        qos INTEGER NOT NULL,
        retain INTEGER NOT NULL,
        receipt INTEGER NOT NULL
    );

    """
