/// SQL for the tables of version 1 (docs/decisions/0009).
///
/// Client identifiers, user names, topics, filters, channels and payloads are blobs: the bytes as
/// the client sent them, compared byte by byte. The views show them as quoted text, for an operator
/// with `sqlite3`. Times are UNIX times in milliseconds.
let schemaVersion1 = """
    -- applied_segment: the last journal segment whose changes are in here.
    -- last_session, last_message: the highest numbers ever given.
    CREATE TABLE meta (
        name TEXT PRIMARY KEY,
        value INTEGER NOT NULL
    ) WITHOUT ROWID;
    INSERT INTO meta VALUES ('applied_segment', 0), ('last_session', 0), ('last_message', 0);

    -- Positions of the queue below horizon may have been sent; end is the next one to be given.
    -- waiting_messages and waiting_bytes are the sums over the session's rows in queue.
    CREATE TABLE sessions (
        number INTEGER PRIMARY KEY,
        client_identifier BLOB NOT NULL,
        user_name BLOB,
        attached INTEGER NOT NULL,
        since_ms INTEGER NOT NULL,
        horizon INTEGER NOT NULL,
        end INTEGER NOT NULL,
        waiting_messages INTEGER NOT NULL,
        waiting_bytes INTEGER NOT NULL
    );

    CREATE TABLE subscriptions (
        session INTEGER NOT NULL,
        filter BLOB NOT NULL,
        qos INTEGER NOT NULL,
        PRIMARY KEY (session, filter)
    ) WITHOUT ROWID;

    -- A message that waits for one session alone lies in its row; with shared = 1 it lies in
    -- messages. A released one (PUBREC came, PUBREL is owed) has no content any more.
    -- bytes: topic and payload. qos and retain: as it goes to this session.
    CREATE TABLE queue (
        session INTEGER NOT NULL,
        position INTEGER NOT NULL,
        message INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        qos INTEGER NOT NULL,
        retain INTEGER NOT NULL,
        released INTEGER NOT NULL,
        shared INTEGER NOT NULL,
        published_qos INTEGER,
        published_retain INTEGER,
        expires_at_ms INTEGER,
        topic BLOB,
        payload BLOB,
        PRIMARY KEY (session, position)
    ) WITHOUT ROWID;

    -- Content that several receivers wait for, retained values, wills, and large payloads.
    -- reference_count: rows of queue, retained and wills that name it.
    CREATE TABLE messages (
        number INTEGER PRIMARY KEY,
        reference_count INTEGER NOT NULL,
        published_qos INTEGER NOT NULL,
        published_retain INTEGER NOT NULL,
        expires_at_ms INTEGER NOT NULL,
        topic BLOB NOT NULL,
        payload BLOB NOT NULL
    );

    -- QoS 2 packet identifiers of clients that await their PUBREL.
    CREATE TABLE inbound (
        session INTEGER NOT NULL,
        packet_identifier INTEGER NOT NULL,
        PRIMARY KEY (session, packet_identifier)
    ) WITHOUT ROWID;

    -- The retained message of each topic.
    CREATE TABLE retained (
        message INTEGER PRIMARY KEY,
        topic BLOB NOT NULL UNIQUE
    );

    CREATE TABLE wills (
        session INTEGER PRIMARY KEY,
        message INTEGER NOT NULL
    );

    -- The last number given in each channel.
    CREATE TABLE sequences (
        channel BLOB PRIMARY KEY,
        number INTEGER NOT NULL
    ) WITHOUT ROWID;

    CREATE VIEW session_list AS
        SELECT number, json_quote(CAST(client_identifier AS TEXT)) AS client,
            json_quote(CAST(user_name AS TEXT)) AS user,
            CASE attached WHEN 1 THEN 'connected'
                ELSE 'offline since ' || datetime(since_ms / 1000, 'unixepoch') END AS state,
            horizon, end, waiting_messages, waiting_bytes
        FROM sessions;
    CREATE VIEW subscription_list AS
        SELECT session, json_quote(CAST(client_identifier AS TEXT)) AS client,
            json_quote(CAST(filter AS TEXT)) AS filter, qos
        FROM subscriptions JOIN sessions ON number = session;
    CREATE VIEW queue_list AS
        SELECT session, json_quote(CAST(client_identifier AS TEXT)) AS client, position,
            position < horizon AS may_be_sent, released, queue.qos, queue.message,
            json_quote(CAST(coalesce(queue.topic, messages.topic) AS TEXT)) AS topic,
            length(coalesce(queue.payload, messages.payload)) AS payload_bytes,
            datetime(nullif(coalesce(queue.expires_at_ms, messages.expires_at_ms), 0) / 1000,
                'unixepoch') AS expires
        FROM queue JOIN sessions ON sessions.number = session
            LEFT JOIN messages ON shared AND messages.number = message;
    CREATE VIEW retained_list AS
        SELECT json_quote(CAST(retained.topic AS TEXT)) AS topic, message,
            published_qos AS qos, length(payload) AS payload_bytes
        FROM retained JOIN messages ON number = message;
    CREATE VIEW will_list AS
        SELECT session, json_quote(CAST(client_identifier AS TEXT)) AS client,
            json_quote(CAST(topic AS TEXT)) AS topic, published_qos AS qos,
            published_retain AS retain, length(payload) AS payload_bytes
        FROM wills JOIN messages ON messages.number = message
            JOIN sessions ON sessions.number = session;
    CREATE VIEW sequence_list AS
        SELECT json_quote(CAST(channel AS TEXT)) AS channel, number FROM sequences;

    """
