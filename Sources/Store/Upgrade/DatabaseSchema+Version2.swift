/// SQL for the additions of version 2.
///
/// A queued message keeps the shared subscription that chose its session. When the session ends,
/// also after a restart, the message goes to another member.
let upgradeToVersion2 = """
    -- shared_filter: the shared subscription that the message came by, as the client asked for it.
    ALTER TABLE queue ADD COLUMN shared_filter BLOB;

    -- holds_shared: some row of its queue may have one; never 0 while one has.
    -- ended: the session is over, and its queue stays until other members have what is theirs.
    ALTER TABLE sessions ADD COLUMN holds_shared INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;

    DROP VIEW session_list;
    CREATE VIEW session_list AS
        SELECT number, json_quote(CAST(client_identifier AS TEXT)) AS client,
            json_quote(CAST(user_name AS TEXT)) AS user,
            CASE WHEN ended THEN 'ended' WHEN attached THEN 'connected'
                ELSE 'away since ' || datetime(since_ms / 1000, 'unixepoch') END AS state,
            horizon, end, waiting_messages, waiting_bytes
        FROM sessions;
    DROP VIEW queue_list;
    CREATE VIEW queue_list AS
        SELECT session, json_quote(CAST(client_identifier AS TEXT)) AS client, position,
            position < horizon AS may_be_sent, released, queue.qos, queue.message,
            json_quote(CAST(coalesce(queue.topic, messages.topic) AS TEXT)) AS topic,
            length(coalesce(queue.payload, messages.payload)) AS payload_bytes,
            datetime(nullif(coalesce(queue.expires_at_ms, messages.expires_at_ms), 0) / 1000,
                'unixepoch') AS expires,
            json_quote(CAST(shared_filter AS TEXT)) AS shared_subscription
        FROM queue JOIN sessions ON sessions.number = session
            LEFT JOIN messages ON shared AND messages.number = message;

    """
