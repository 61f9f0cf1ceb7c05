/// SQL for the additions of version 6.
///
/// A start finds the queued messages that expire, and reads no others (docs/decisions/0045).
let upgradeToVersion6 = """
    -- expires_at_ms: since this version also in rows whose content lies in messages.
    UPDATE queue SET expires_at_ms =
            (SELECT expires_at_ms FROM messages WHERE messages.number = queue.message)
        WHERE shared;
    -- Only of messages that expire; the index holds the key of the row, too.
    CREATE INDEX queue_expiry ON queue (expires_at_ms, bytes) WHERE expires_at_ms > 0;

    """
