/// SQL for receipts, of version 3.
let receiptTables = """
    -- number: rises. at_ms: UNIX time in milliseconds.
    CREATE TABLE receipts (
        number INTEGER PRIMARY KEY,
        at_ms INTEGER NOT NULL,
        message_id BLOB NOT NULL,
        topic BLOB NOT NULL
    );

    -- place: among the receivers of the receipt, from 0. outcome: 0 open, 1 acknowledged, 2 sent with
    -- QoS 0, 3 expired, 4 dropped. event: its number for the webhook; 0 for none.
    CREATE TABLE receipt_receivers (
        receipt INTEGER NOT NULL,
        place INTEGER NOT NULL,
        session INTEGER NOT NULL,
        position INTEGER NOT NULL,
        client_identifier BLOB NOT NULL,
        outcome INTEGER NOT NULL DEFAULT 0,
        reason INTEGER NOT NULL DEFAULT 0,
        at_ms INTEGER NOT NULL DEFAULT 0,
        event INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (receipt, place)
    ) WITHOUT ROWID;

    -- One row. first: receipts below are dropped. last_event: the highest number given when receipts
    -- were dropped last. taken: events up to it are taken.
    CREATE TABLE receipt_progress (
        first INTEGER NOT NULL,
        last_event INTEGER NOT NULL,
        taken INTEGER NOT NULL
    );
    INSERT INTO receipt_progress VALUES (0, 0, 0);

    """
