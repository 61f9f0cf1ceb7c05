/// SQL for facts, of version 5 (docs/decisions/0038).
let factTables = """
    -- What features keep. fact_table: a number of fact_tables. owner: the partition of what the
    -- fact is about. Numbers in key and value have their most significant byte first.
    CREATE TABLE facts (
        fact_table INTEGER NOT NULL,
        key BLOB NOT NULL,
        owner INTEGER NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (fact_table, key)
    ) WITHOUT ROWID;

    -- Names for people; nothing depends on them.
    CREATE TABLE fact_tables (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL
    );

    CREATE VIEW fact_list AS
        SELECT coalesce(name, fact_table) AS fact_table, owner, lower(hex(key)) AS key,
            CASE WHEN instr(key, x'00') = 0 AND CAST(key AS TEXT) NOT GLOB '*[^ -~]*'
                THEN json_quote(CAST(key AS TEXT)) END AS key_text,
            lower(hex(value)) AS value
        FROM facts LEFT JOIN fact_tables ON number = fact_table;

    """
