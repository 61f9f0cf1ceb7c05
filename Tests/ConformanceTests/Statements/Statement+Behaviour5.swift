extension Statement {
    /// Chapters 4 and 6 of MQTT 5.0.
    static let behaviour5: [Statement] = [
        Statement(
            five: "4.1.0-1", .both, "no session state is thrown away while the connection is open"),
        Statement(
            five: "4.1.0-2", .server, "a session ends once it is closed and its expiry has passed"),
        Statement(five: "4.2-1", .both, "an ordered, lossless transport"),
        Statement(five: "4.3.1-1", .both, "QoS 0: sent with QoS 0, DUP 0"),
        Statement(five: "4.3.2-1", .both, "QoS 1 sender: a free packet id for each new message"),
        Statement(five: "4.3.2-2", .both, "QoS 1 sender: sent with the identifier, QoS 1, DUP 0"),
        Statement(five: "4.3.2-3", .both, "QoS 1: unacknowledged until PUBACK"),
        Statement(
            five: "4.3.2-4", .both, "receiver: PUBACK with that id, having taken the message over"),
        Statement(
            five: "4.3.2-5", .both, "after PUBACK the same id is a new message, whatever DUP says"),
        Statement(five: "4.3.3-1", .both, "QoS 2 sender: a free packet id"),
        Statement(five: "4.3.3-2", .both, "QoS 2 sender: sent with the identifier, QoS 2, DUP 0"),
        Statement(five: "4.3.3-3", .both, "QoS 2: unacknowledged until PUBREC"),
        Statement(
            five: "4.3.3-4", .both,
            "PUBREC below 0x80: PUBREL with the same id (0x80 or above: none)"),
        Statement(five: "4.3.3-5", .both, "PUBREL unacknowledged until PUBCOMP"),
        Statement(five: "4.3.3-6", .both, "after PUBREL the PUBLISH is not sent again"),
        Statement(five: "4.3.3-7", .both, "once PUBLISH was sent, expiry applies no more"),
        Statement(five: "4.3.3-8", .both, "receiver: PUBREC with that id, having taken it over"),
        Statement(five: "4.3.3-9", .both, "after PUBREC of 0x80 or above the id is a new message"),
        Statement(
            five: "4.3.3-10", .both,
            "until PUBREL, a repeated id gets PUBREC again and is not passed on twice"),
        Statement(five: "4.3.3-11", .both, "PUBREL is answered by PUBCOMP with its id"),
        Statement(five: "4.3.3-12", .both, "after PUBCOMP the id is a new message"),
        Statement(
            five: "4.3.3-13", .both, "the exchange is finished even if the message has expired"),
        Statement(
            five: "4.4.0-1", .both,
            "Session resumed: re-send unacknowledged PUBLISH and PUBREL with their ids"),
        Statement(
            five: "4.4.0-2", .both,
            "PUBACK or PUBREC of 0x80 or above acknowledges too: no re-send"),
        Statement(five: "4.5.0-1", .server, "every matching session gets the message"),
        Statement(five: "4.5.0-2", .client, "every PUBLISH is acknowledged, wanted or not"),
        Statement(five: "4.6.0-1", .client, "re-sent PUBLISH in the original order"),
        Statement(five: "4.6.0-2", .client, "PUBACKs in the order of arrival"),
        Statement(five: "4.6.0-3", .client, "PUBRECs in the order of arrival"),
        Statement(five: "4.6.0-4", .client, "PUBRELs in the order of the PUBRECs"),
        Statement(
            five: "4.6.0-5", .server,
            "messages of one client, topic and QoS go out in the order of receipt"),
        Statement(five: "4.6.0-6", .server, "every topic is ordered unless configured otherwise"),
        Statement(five: "4.7.0-1", .both, "wildcards are for filters"),
        Statement(five: "4.7.1-1", .client, "# alone or after /, and last"),
        Statement(five: "4.7.1-2", .client, "+ fills a whole level"),
        Statement(five: "4.7.2-1", .server, "filters that begin with a wildcard match no $ topic"),
        Statement(five: "4.7.3-1", .both, "topics and filters have at least one character"),
        Statement(five: "4.7.3-2", .both, "topics and filters have no U+0000"),
        Statement(five: "4.7.3-3", .both, "topics and filters have at most 65,535 bytes"),
        Statement(five: "4.7.3-4", .server, "matching normalises and replaces nothing"),
        Statement(five: "4.8.2-1", .client, "$share/ and a share name of at least one character"),
        Statement(
            five: "4.8.2-2", .client, "a share name without / + #, followed by / and a filter"),
        Statement(five: "4.8.2-3", .server, "each member is served at its own granted QoS"),
        Statement(
            five: "4.8.2-4", .server,
            "a QoS 2 delivery begun is finished with that member when it is back"),
        Statement(
            five: "4.8.2-5", .server,
            "a QoS 2 delivery begun goes to nobody else if that session ends"),
        Statement(
            five: "4.8.2-6", .server, "what a member refuses by 0x80 or above goes to nobody else"),
        Statement(five: "4.9.0-1", .both, "initial send quota: 1 to the peer's Receive Maximum"),
        Statement(five: "4.9.0-2", .both, "each QoS > 0 PUBLISH takes one; at 0 no more of them"),
        Statement(five: "4.9.0-3", .both, "all other packets are handled on at quota 0"),
        Statement(
            five: "4.12.0-1", .server,
            "method not supported: may CONNACK 0x8C or 0x87, must close"),
        Statement(five: "4.12.0-2", .server, "more data needed: AUTH 0x18"),
        Statement(five: "4.12.0-3", .client, "the client's answer to AUTH 0x18 is AUTH 0x18"),
        Statement(
            five: "4.12.0-4", .server,
            "refusal at any step: may CONNACK 0x80 or above, must close"),
        Statement(
            five: "4.12.0-5", .both,
            "all AUTHs and a successful CONNACK repeat the Authentication Method of CONNECT"),
        Statement(
            five: "4.12.0-6", .server, "CONNECT without a method: no AUTH, no method in CONNACK"),
        Statement(five: "4.12.0-7", .client, "CONNECT without a method: no AUTH; 0x82"),
        Statement(
            five: "4.12.1-1", .client,
            "after CONNACK, AUTH 0x19 with the same method begins re-authentication"),
        Statement(
            five: "4.12.1-2", .both, "failed re-authentication: should DISCONNECT, must close"),
        Statement(
            five: "4.13.1-1", .server,
            "malformed packet or protocol error with a named code: close"),
        Statement(
            five: "4.13.2-1", .both,
            "code 0x80 or above in CONNACK or DISCONNECT: close, sent or not"),
        Statement(
            five: "6.0.0-1", .both, "binary frames only; another data frame closes the connection"),
        Statement(five: "6.0.0-2", .both, "packets may be split over or share frames"),
        Statement(five: "6.0.0-3", .client, "the client offers mqtt"),
        Statement(five: "6.0.0-4", .server, "the server selects mqtt"),
    ]
}
