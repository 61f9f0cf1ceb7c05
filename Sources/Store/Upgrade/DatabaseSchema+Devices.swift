/// SQL for devices, of version 4.
let upgradeToVersion4 = """
    -- user_name: NULL for any. set_aside: 1 when the push service does not know the token.
    -- woken_session, woken_position: messages of that session below this position were told by a wake.
    CREATE TABLE devices (
        client_identifier BLOB NOT NULL PRIMARY KEY,
        user_name BLOB,
        token BLOB NOT NULL,
        bundle BLOB NOT NULL,
        kind INTEGER NOT NULL,
        environment INTEGER NOT NULL,
        registered_ms INTEGER NOT NULL,
        set_aside INTEGER NOT NULL,
        woken_session INTEGER NOT NULL,
        woken_position INTEGER NOT NULL
    ) WITHOUT ROWID;

    """
