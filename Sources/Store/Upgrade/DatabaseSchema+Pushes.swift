/// SQL for tags and pushes, of version 3.
let pushTables = """
    CREATE TABLE tags (
        client_identifier BLOB NOT NULL,
        tag BLOB NOT NULL,
        PRIMARY KEY (client_identifier, tag)
    ) WITHOUT ROWID;

    -- due_ms: UNIX time in milliseconds at which it begins. expires_in_ms: from then on; 0 for never.
    -- receipt: 1 when its receivers are followed. began_ms: 0 before it began. target: the clients, in an order that seed defines.
    -- cursor: those in front of it have been reached. ended_ms: 0 before its end, after which payload and target are empty.
    CREATE TABLE pushes (
        number INTEGER PRIMARY KEY,
        created_ms INTEGER NOT NULL,
        due_ms INTEGER NOT NULL,
        expires_in_ms INTEGER NOT NULL,
        spread_ms INTEGER NOT NULL,
        push_id BLOB NOT NULL,
        topic BLOB NOT NULL,
        payload BLOB NOT NULL,
        qos INTEGER NOT NULL,
        receipt INTEGER NOT NULL,
        target BLOB NOT NULL,
        seed INTEGER NOT NULL,
        state INTEGER NOT NULL,
        cursor INTEGER NOT NULL,
        matched INTEGER NOT NULL,
        reached INTEGER NOT NULL,
        online INTEGER NOT NULL,
        queued INTEGER NOT NULL,
        dropped INTEGER NOT NULL,
        without_session INTEGER NOT NULL,
        denied INTEGER NOT NULL,
        began_ms INTEGER NOT NULL,
        ended_ms INTEGER NOT NULL
    );

    CREATE VIEW tag_list AS
        SELECT json_quote(CAST(tag AS TEXT)) AS tag,
            json_quote(CAST(client_identifier AS TEXT)) AS client
        FROM tags;

    """
