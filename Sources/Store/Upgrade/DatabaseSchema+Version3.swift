/// SQL for the additions of version 3.
///
/// Keys under which messages were published over HTTP, so that a repeat gets the first answer.
let upgradeToVersion3 = """
    -- key: of publisher and key. digest: of what was asked for. message_id: the identifier that was
    -- made. Each has 16 bytes. The counts are those of the first answer.
    -- bucket: hours since 1970, times 65,536, and a number within the hour; dropped as a whole.
    CREATE TABLE publish_keys (
        bucket INTEGER NOT NULL,
        key BLOB NOT NULL,
        digest BLOB NOT NULL,
        message_id BLOB NOT NULL,
        matched INTEGER NOT NULL,
        online INTEGER NOT NULL,
        queued INTEGER NOT NULL,
        dropped INTEGER NOT NULL,
        PRIMARY KEY (bucket, key)
    ) WITHOUT ROWID;

    CREATE VIEW publish_key_list AS
        SELECT datetime(bucket / 65536 * 3600, 'unixepoch') AS hour, lower(hex(key)) AS key,
            lower(hex(message_id)) AS message_id, matched, online, queued, dropped
        FROM publish_keys;

    """
