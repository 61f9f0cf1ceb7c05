/// SQL for the identifiers of messages, of version 3.
let messageIDColumns = """
    -- message_id: the identifier of a message that was published over HTTP, beside its content.
    ALTER TABLE queue ADD COLUMN message_id BLOB;
    ALTER TABLE messages ADD COLUMN message_id BLOB;

    DROP VIEW queue_list;
    CREATE VIEW queue_list AS
        SELECT session, json_quote(CAST(client_identifier AS TEXT)) AS client, position,
            position < horizon AS may_be_sent, released, queue.qos, queue.message,
            json_quote(CAST(coalesce(queue.topic, messages.topic) AS TEXT)) AS topic,
            length(coalesce(queue.payload, messages.payload)) AS payload_bytes,
            datetime(nullif(coalesce(queue.expires_at_ms, messages.expires_at_ms), 0) / 1000,
                'unixepoch') AS expires,
            json_quote(CAST(shared_filter AS TEXT)) AS shared_subscription,
            json_quote(CAST(coalesce(queue.message_id, messages.message_id) AS TEXT)) AS message_id
        FROM queue JOIN sessions ON sessions.number = session
            LEFT JOIN messages ON shared AND messages.number = message;

    """
