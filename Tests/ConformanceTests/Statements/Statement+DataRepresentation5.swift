extension Statement {
    /// Chapters 1 and 2 of MQTT 5.0.
    static let dataRepresentation5: [Statement] = [
        Statement(
            five: "1.5.4-1", .both,
            "strings are well-formed UTF-8 without surrogates (U+D800-DFFF)"),
        Statement(five: "1.5.4-2", .both, "no U+0000 in a string; 0x81"),
        Statement(
            five: "1.5.4-3", .both,
            "EF BB BF is U+FEFF wherever it stands; never skipped or stripped"),
        Statement(five: "1.5.5-1", .both, "Variable Byte Integers take the fewest bytes possible"),
        Statement(
            five: "1.5.7-1", .both,
            "name and value of a string pair both keep the rules of strings"),
        Statement(
            five: "2.1.3-1", .both,
            "reserved flag bits carry the listed value; else malformed, 0x81"),
        Statement(five: "2.2.1-2", .both, "no packet id in a QoS 0 PUBLISH"),
        Statement(
            five: "2.2.1-3", .client,
            "a new SUBSCRIBE, UNSUBSCRIBE or QoS > 0 PUBLISH takes a free identifier, never 0"),
        Statement(five: "2.2.1-4", .server, "so does a new QoS > 0 PUBLISH of the server"),
        Statement(
            five: "2.2.1-5", .both,
            "PUBACK, PUBREC, PUBREL, PUBCOMP carry the id of their PUBLISH"),
        Statement(five: "2.2.1-6", .server, "SUBACK, UNSUBACK carry the id of their request"),
        Statement(five: "2.2.2-1", .both, "no properties: a Property Length of 0 is written"),
    ]
}
