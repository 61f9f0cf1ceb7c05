/// SQL that removes the tables of versions 1 to 4 whose rows are facts since version 5.
let dropFormerTables = """
    DROP VIEW publish_key_list;
    DROP VIEW tag_list;
    DROP VIEW sequence_list;
    DROP TABLE sequences;
    DROP TABLE publish_keys;
    DROP TABLE receipts;
    DROP TABLE receipt_receivers;
    DROP TABLE receipt_progress;
    DROP TABLE scheduled;
    DROP TABLE collapsible;
    DROP TABLE tags;
    DROP TABLE pushes;
    DROP TABLE devices;

    """
