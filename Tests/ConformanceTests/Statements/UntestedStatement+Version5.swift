extension UntestedStatement {
    /// Statements of MQTT 5.0 without a test.
    static let version5: [UntestedStatement] = [
        UntestedStatement(
            five: "3.1.2-20", .bindsClients,
            "when a client sends PINGREQ; the broker's part is 3.1.2-22"),
        UntestedStatement(
            five: "3.1.2-21", .bindsClients,
            "which keep alive a client uses; test_version_5.py holds one to it"),
        UntestedStatement(five: "3.2.2-4", .bindsClients, "what a client makes of Session Present"),
        UntestedStatement(five: "3.2.2-5", .bindsClients, "what a client makes of Session Present"),
        UntestedStatement(five: "3.2.2-10", .offersAll, "every QoS is offered"),
        UntestedStatement(five: "3.2.2-11", .bindsClients, "every QoS is offered"),
        UntestedStatement(five: "3.2.2-12", .offersAll, "every QoS is offered"),
        UntestedStatement(five: "3.2.2-13", .offersAll, "retained messages are offered"),
        UntestedStatement(five: "3.2.2-14", .bindsClients, "retained messages are offered"),
        UntestedStatement(five: "3.2.2-18", .bindsClients, "aliases are offered"),
        UntestedStatement(five: "3.2.2-21", .bindsClients, "which keep alive a client uses"),
        UntestedStatement(five: "3.3.2-10", .bindsClients, "which aliases a client takes"),
        UntestedStatement(five: "3.3.4-8", .bindsClients, "what a client sends at a full window"),
        UntestedStatement(five: "3.15.2-2", .notOffered, "the broker sends no AUTH"),
        UntestedStatement(five: "3.15.2-3", .notOffered, "the broker sends no AUTH"),
        UntestedStatement(
            five: "4.3.3-9", .needsSettings,
            "a PUBREC that refuses needs access rules: test_version_5.py"),
        UntestedStatement(
            five: "4.5.0-2", .bindsClients, "a client acknowledges whatever its application does"),
        UntestedStatement(five: "4.6.0-1", .bindsClients, "in which order a client sends again"),
        UntestedStatement(five: "4.6.0-2", .bindsClients, "in which order a client acknowledges"),
        UntestedStatement(five: "4.6.0-3", .bindsClients, "in which order a client acknowledges"),
        UntestedStatement(five: "4.6.0-4", .bindsClients, "in which order a client acknowledges"),
        UntestedStatement(five: "4.12.0-2", .notOffered, "no Authentication Method is supported"),
        UntestedStatement(five: "4.12.0-3", .bindsClients, "no Authentication Method is supported"),
        UntestedStatement(five: "4.12.0-4", .notOffered, "no Authentication Method is supported"),
        UntestedStatement(five: "4.12.0-5", .notOffered, "no Authentication Method is supported"),
        UntestedStatement(five: "4.12.1-1", .bindsClients, "no Authentication Method is supported"),
        UntestedStatement(five: "4.12.1-2", .notOffered, "no Authentication Method is supported"),
    ]
}
