extension Statement {
    /// Sections 3.1 and 3.2 of MQTT 5.0.
    static let connecting5: [Statement] = [
        Statement(five: "3.1.0-1", .client, "CONNECT comes first"),
        Statement(five: "3.1.0-2", .server, "a second CONNECT: 0x82, close"),
        Statement(five: "3.1.2-1", .server, "name other than 'MQTT': may CONNACK 0x84, must close"),
        Statement(five: "3.1.2-2", .server, "version not spoken: may CONNACK 0x84, must close"),
        Statement(five: "3.1.2-3", .server, "check that the reserved connect flag is 0; else 0x81"),
        Statement(five: "3.1.2-4", .both, "Clean Start 1: throw away any session, begin a new one"),
        Statement(five: "3.1.2-5", .server, "Clean Start 0 and a session there: go on with it"),
        Statement(five: "3.1.2-6", .server, "Clean Start 0 and none: make one"),
        Statement(five: "3.1.2-7", .server, "Will Flag 1: the will is kept with the session"),
        Statement(
            five: "3.1.2-8", .server,
            "the will is published after the close, once its delay or the session is over"),
        Statement(
            five: "3.1.2-9", .client,
            "Will Flag 1: will properties, topic and payload are present"),
        Statement(
            five: "3.1.2-10", .server,
            "a will is used up once, by its publication or DISCONNECT 0x00"),
        Statement(five: "3.1.2-11", .client, "Will Flag 0: will QoS 0"),
        Statement(five: "3.1.2-12", .client, "Will Flag 1: will QoS 0, 1 or 2; 3 is 0x81"),
        Statement(five: "3.1.2-13", .client, "Will Flag 0: will retain 0"),
        Statement(five: "3.1.2-14", .server, "will retain 0: will published without retaining"),
        Statement(five: "3.1.2-15", .server, "will retain 1: published and retained"),
        Statement(five: "3.1.2-16", .client, "user name flag 0: no such field"),
        Statement(five: "3.1.2-17", .client, "user name flag 1: the field is there"),
        Statement(five: "3.1.2-18", .client, "password flag 0: no such field"),
        Statement(
            five: "3.1.2-19", .client,
            "password flag 1: the field is there (now allowed without a user name)"),
        Statement(five: "3.1.2-20", .client, "keep alive not 0 and nothing else to send: PINGREQ"),
        Statement(five: "3.1.2-21", .client, "a Server Keep Alive replaces the client's own"),
        Statement(five: "3.1.2-22", .server, "silence of 1.5 keep alives ends the connection"),
        Statement(
            five: "3.1.2-23", .both, "keep the session after the close if Session Expiry > 0"),
        Statement(
            five: "3.1.2-24", .server,
            "never send a packet beyond the client's Maximum Packet Size"),
        Statement(
            five: "3.1.2-25", .server,
            "a message too large for a client is dropped there, as if it had been sent"),
        Statement(five: "3.1.2-26", .server, "no Topic Alias above the client's maximum"),
        Statement(five: "3.1.2-27", .server, "client's maximum absent or 0: no aliases at all"),
        Statement(
            five: "3.1.2-28", .server, "Request Response Information 0: no Response Information"),
        Statement(
            five: "3.1.2-29", .server,
            "Request Problem Information 0: no Reason String or User Property in answers"),
        Statement(
            five: "3.1.2-30", .client,
            "CONNECT with an Authentication Method: only AUTH and DISCONNECT until CONNACK"),
        Statement(five: "3.1.3-1", .client, "the payload's order"),
        Statement(five: "3.1.3-2", .both, "the client id names the session on both sides"),
        Statement(five: "3.1.3-3", .client, "client id always present, first"),
        Statement(five: "3.1.3-4", .client, "the client identifier is UTF-8"),
        Statement(five: "3.1.3-5", .server, "1 to 23 bytes of 0-9a-zA-Z must be accepted"),
        Statement(five: "3.1.3-6", .server, "an empty id may be accepted, with either Clean Start"),
        Statement(
            five: "3.1.3-7", .server, "an assigned identifier is returned, and names the session"),
        Statement(five: "3.1.3-8", .server, "id refused: may CONNACK 0x85, must close"),
        Statement(
            five: "3.1.3-9", .server, "a new connection within the delay takes the will back"),
        Statement(
            five: "3.1.3-10", .server,
            "User Properties of the will keep their order when it is published"),
        Statement(five: "3.1.3-11", .client, "will topic is a UTF-8 string"),
        Statement(five: "3.1.3-12", .client, "the user name is UTF-8"),
        Statement(five: "3.1.4-1", .server, "a malformed CONNECT ends the connection"),
        Statement(five: "3.1.4-2", .server, "so does one that fails any other check"),
        Statement(
            five: "3.1.4-3", .server,
            "id already connected: old connection gets DISCONNECT 0x8E and is closed"),
        Statement(five: "3.1.4-4", .server, "after a take-over Clean Start is carried out"),
        Statement(five: "3.1.4-5", .server, "then CONNACK 0x00 is sent"),
        Statement(
            five: "3.1.4-6", .server,
            "after refusing, process nothing that followed CONNECT, except AUTH"),
        Statement(five: "3.2.0-1", .server, "nothing but AUTH goes out before CONNACK 0x00"),
        Statement(five: "3.2.0-2", .server, "one CONNACK for each connection"),
        Statement(five: "3.2.2-1", .server, "bits 7-1 of the flags are 0"),
        Statement(five: "3.2.2-2", .server, "Clean Start 1: Session Present 0, code 0x00"),
        Statement(
            five: "3.2.2-3", .server,
            "Clean Start 0: Session Present 1 if there is state, else 0; code 0x00"),
        Statement(five: "3.2.2-4", .client, "Session Present 1 without own state: close"),
        Statement(
            five: "3.2.2-5", .client, "Session Present 0 with own state: discard it or close"),
        Statement(five: "3.2.2-6", .server, "code not 0: Session Present 0"),
        Statement(five: "3.2.2-7", .server, "code 0x80 or above: close"),
        Statement(five: "3.2.2-8", .server, "only codes of the CONNACK table"),
        Statement(five: "3.2.2-9", .server, "no QoS 1 or 2: say so by Maximum QoS"),
        Statement(
            five: "3.2.2-10", .server,
            "a server with a Maximum QoS accepts SUBSCRIBE of any QoS all the same"),
        Statement(five: "3.2.2-11", .client, "no PUBLISH above Maximum QoS; 0x9B"),
        Statement(
            five: "3.2.2-12", .server, "will QoS above Maximum QoS: refuse, should 0x9B, close"),
        Statement(
            five: "3.2.2-13", .server,
            "will retain without Retain Available: refuse, should 0x9A, close"),
        Statement(five: "3.2.2-14", .client, "Retain Available 0: no RETAIN 1; 0x9A"),
        Statement(
            five: "3.2.2-15", .client, "no packet above the server's Maximum Packet Size; 0x95"),
        Statement(
            five: "3.2.2-16", .server,
            "empty client id: CONNACK carries an assigned one that no session uses"),
        Statement(five: "3.2.2-17", .client, "no alias above the server's maximum; 0x94"),
        Statement(five: "3.2.2-18", .client, "no Topic Alias Maximum: no aliases; 0x94"),
        Statement(
            five: "3.2.2-19", .server,
            "Reason String only if CONNACK then still fits the client's maximum"),
        Statement(five: "3.2.2-20", .server, "User Property in CONNACK the same"),
        Statement(five: "3.2.2-21", .client, "Server Keep Alive is the one to use"),
        Statement(five: "3.2.2-22", .server, "no Server Keep Alive: the client's counts"),
    ]
}
