extension Setting {
    /// All keys, in the order of the documentation.
    static let all: [Setting] =
        listenerSettings + topSettings + authSettings + httpLoginSettings + adminSettings
        + limitSettings + lockoutSettings + loggingSettings + orderSettings + receiptSettings
        + webhookSettings + wakeSettings

    static let maximumListeners = 64

    private static let topSettings: [Setting] = [
        .single(
            "data_directory", \.dataDirectory, .path("a folder"), flag: "--data-directory",
            "Folder that belongs to one running broker; it is created with mode 0700."),
        .single(
            "password_file", \.passwordFile, ValueFormat.path("a password file").orUnset(),
            flag: "--password-file",
            "Users and their password hashes, written by `hermesctl users add`."),
        .single(
            "acl_file", \.aclFile, ValueFormat.path("an ACL file").orUnset(),
            flag: "--acl-file",
            "Rights to publish and subscribe, one rule a line; an empty file denies everything. Without it every client may publish and subscribe to everything."
        ),
        .single(
            "durability", \.durability, .durability, flag: "--durability",
            "When an acknowledgement may be sent: with sync, once the data is on disk; with interval 50ms, as soon as it is written, and it is on disk within that time; with none, at once, and a restart loses sessions, queues and retained messages."
        ),
        .single(
            "disk_reserve", \.diskReserveBytes, .size(0...(1 << 40)),
            "New messages wait while the file system of data_directory has less free space than this, beside what the broker needs to move and remove what it has; acknowledgements and removals continue."
        ),
        .single(
            "sys_interval", \.sysInterval,
            ValueFormat.duration(.seconds(1)...(.seconds(3_600))).orZero(),
            "How often the broker publishes its own figures on $SYS/broker/... while a client subscribes to them. 0 turns these topics off."
        ),
    ]

    private static let adminSettings: [Setting] = [
        .single(
            "admin.address", \.admin.address, .address,
            "Where the HTTP API for operators and the back office listens."),
        .single(
            "admin.port", \.admin.port, .number(0...65_535, noun: "a port"), flag: "--admin-port",
            "Its TCP port. 0 takes a free one, which the log names."),
        .single(
            "admin.unix_socket", \.admin.unixSocket,
            // sockaddr_un holds 108 bytes with the closing NUL.
            ValueFormat.path("a Unix socket", limit: 107).optional(),
            "A Unix socket for the same API, mode 0600; a caller that can open it needs no token."),
        .single(
            "admin.tokens_file", \.admin.tokensFile, ValueFormat.path("a token file").optional(),
            "Tokens with scopes, written by `hermesctl tokens create`. Left out, it is the file tokens in data_directory."
        ),
        .single(
            "admin.max_failures", \.admin.maxFailures, .number(1...100_000),
            "Unknown tokens that one address may present in a minute; then the answer is 429. A valid token is accepted all the same."
        ),
        .single(
            "admin.tls.certificate", \.admin.tls.certificate,
            ValueFormat.path("a PEM file").optional(),
            "Serves HTTPS with this certificate; the certificates that signed it follow in the file."
        ),
        .single(
            "admin.tls.key", \.admin.tls.key, ValueFormat.path("a PEM file").optional(),
            "Its private key, which others may not read."),
        .single(
            "admin.tls.minimum_version", \.admin.tls.minimumVersion,
            .word(noun: "a version of TLS"),
            "The oldest version of TLS that a caller may speak."),
        .single(
            "admin.tls.client_ca_file", \.admin.tls.clientCAFile,
            ValueFormat.path("a PEM file").orUnset(),
            "Callers must show a certificate that one of these issued, beside their token."),
        .single(
            "admin.allow_plain", \.admin.allowPlain, .boolean,
            "Allows HTTP without TLS on an address that other machines reach: tokens and messages can then be read on the network."
        ),
        .single(
            "admin.page", \.admin.page, .word(noun: "a choice"),
            "Serves the operator's page at /ui/. With auto it is served when admin.address is loopback."
        ),
    ]

    private static let limitSettings: [Setting] = [
        .single(
            "limits.connect_timeout", \.limits.connectTimeout,
            .duration(.milliseconds(100)...(.seconds(3_600))), flag: "--connect-timeout",
            "Time from accepting a connection to its complete CONNECT; later the connection is closed."
        ),
        .single(
            "limits.max_keep_alive", \.limits.maxKeepAlive,
            ValueFormat.duration(.seconds(1)...(.seconds(65_535))).optional("off"),
            "The longest keep alive; a client that asks for a longer one, or for none, gets this one."
        ),
        .single(
            "limits.max_connect_packet", \.limits.maxConnectPacketBytes,
            .size(64...maximumPacketBytes),
            "The first packet of a connection, before its CONNECT is accepted. Left out, it is never above max_packet."
        ),
        .single(
            "limits.max_packet", \.limits.maxPacketBytes, .size(64...maximumPacketBytes),
            flag: "--max-packet",
            "Any later packet, header and payload; a longer one closes the connection."),
        .single(
            "limits.max_client_id", \.limits.maxClientIDBytes, .size(23...65_536),
            "A client identifier; a client with a longer one is refused with 0x02, unless it has a session already."
        ),
        .single(
            "limits.max_user_name", \.limits.maxUserNameBytes, .size(1...65_536),
            "A user name; a client with a longer one is refused with 0x04, unless it has a session already."
        ),
        .single(
            "limits.max_topic_levels", \.limits.maxTopicLevels, .number(1...65_535),
            "Levels of a topic name or filter."),
        .single(
            "limits.max_subscriptions", \.limits.maxSubscriptions, .number(1...10_000_000),
            "Subscriptions of one session; a filter counts once for every eight of its levels. A further one is answered with 0x80."
        ),
        .single(
            "limits.subscription_bytes", \.limits.subscriptionBytes, .size(1_024...(64 << 30)),
            "The same, counted in bytes: a filter counts its own, 64 for each level, and 32. A further one is answered with 0x80. A session never gets more than a quarter of session_bytes."
        ),
        .single(
            "limits.max_in_flight", \.limits.maxInFlight, .number(1...65_535),
            flag: "--max-in-flight",
            "QoS 1 and 2 messages sent to one client and not yet acknowledged; further ones wait in order."
        ),
        .single(
            "limits.max_inbound_qos2", \.limits.maxInboundQoS2, .number(1...65_535),
            "QoS 2 messages of one client that wait for its PUBREL; beyond it the connection closes."
        ),
        .single(
            "limits.max_unacknowledged_publishes", \.limits.maxUnacknowledgedPublishes,
            .number(1...65_535),
            "PUBLISH, SUBSCRIBE and UNSUBSCRIBE packets of one client that the broker has not acknowledged yet; above it the client is not read until half of them are acknowledged."
        ),
        .single(
            "limits.max_unacknowledged_bytes", \.limits.maxUnacknowledgedPublishBytes,
            .size(1_024...(1 << 30)),
            "The same, counted in bytes."),
        .single(
            "limits.queue_messages", \.limits.queueMessages, .number(1...65_000),
            flag: "--queue-messages",
            "Messages that wait for one offline client; for a connected, slow one up to 60,000 may wait."
        ),
        .single(
            "limits.queue_bytes", \.limits.queueBytes, .size(1_024...(64 << 30)),
            "The same, counted in bytes. Left out, it is never below max_packet."),
        .single(
            "limits.queue_policy", \.limits.queuePolicy, .word(noun: "a queue policy"),
            "Which message a full queue drops: the oldest or the newest."),
        .single(
            "limits.max_sessions", \.limits.maxSessions, .number(1...10_000_000),
            "Persistent sessions; a client that would need one more is refused."),
        .single(
            "limits.session_bytes", \.limits.sessionBytes, .memoryLimit((64 << 10)...(1 << 50)),
            "All sessions together: 256 bytes for each, its client identifier, user name, will and subscriptions. Beyond it, a client that would need a new persistent session is refused, and a further subscription is answered with 0x80. auto is half of memory."
        ),
        .single(
            "limits.session_bytes_per_user", \.limits.sessionBytesPerUser,
            .memoryLimit((64 << 10)...(1 << 50)),
            "The same of one user name that a password or certificate proves. auto is half of session_bytes."
        ),
        .single(
            "limits.max_retained", \.limits.maxRetained, .number(1...10_000_000),
            "Retained messages; a topic counts once for every eight of its levels. A further one is delivered and not retained; it is acknowledged all the same, because MQTT has no other answer."
        ),
        .single(
            "limits.retained_bytes", \.limits.retainedBytes, .size(1_024...(64 << 30)),
            "The same, counted in bytes of all of them together; for a message that replaces another, the difference counts."
        ),
        .single(
            "limits.idempotency_keys", \.limits.idempotencyKeys, .number(0...10_000_000),
            "Keys of messages published over HTTP (Idempotency-Key, message_id), kept for a day so that a repeat is not published again. Beyond it the oldest go first. 0 keeps none, and refuses requests with an Idempotency-Key."
        ),
        .single(
            "limits.receipts", \.limits.receipts, .number(0...10_000_000),
            "Receipts of messages published over HTTP, kept for a day; a message counts once, and each of its receivers once. Beyond it the oldest go first. 0 keeps none, and refuses messages with receipts."
        ),
        .single(
            "limits.scheduled", \.limits.scheduled, .number(0...10_000_000),
            "Messages that are published later (deliver_at). A further one is refused."
        ),
        .single(
            "limits.scheduled_bytes", \.limits.scheduledBytes, .size(1_024...(64 << 30)),
            "The same, counted in bytes of topics, payloads and identifiers of all of them together, and of pushes."
        ),
        .single(
            "limits.collapsible", \.limits.collapsible, .number(0...100_000_000),
            "Queued messages with a collapse_key, counted for each receiver, that a later one may replace. A further one is queued and stays. 0 replaces none."
        ),
        .single(
            "limits.pushes", \.limits.pushes, .number(0...10_000),
            "Pushes that are kept: scheduled, under way, and those that ended in the last day. Beyond it the one that ended first goes; when none has ended, a further one is refused. 0 refuses all."
        ),
        .single(
            "limits.tag_bytes", \.limits.tagBytes, .size(0...(64 << 30)),
            "Tags of clients, counted in bytes of tags and of the identifiers of clients with tags. A further one is refused. 0 refuses all."
        ),
        .single(
            "limits.device_bytes", \.limits.deviceBytes, .size(0...(64 << 30)),
            "Devices that phones have registered, with the wakes that they are owed: 356 bytes each and their texts. A further one is refused. 0 refuses all."
        ),
        .single(
            "limits.history_bytes", \.limits.historyBytes, .size(0...(64 << 30)),
            "What happened to each client lately, for hermesctl explain, in bytes. Beyond it the client goes that nothing has happened to for longest. 0 keeps nothing."
        ),
        .single(
            "limits.report_bytes", \.limits.reportBytes, .size(0...(64 << 30)),
            "The newest report of each client (hermes/reports/<client identifier>), counted in bytes of reports and identifiers. Beyond it the oldest report goes. 0 reads no reports."
        ),
        .single(
            "limits.session_expiry", \.limits.sessionExpiry,
            .duration(.seconds(1)...(.seconds(3_650 * 86_400))),
            "Time from a client's disconnection until its persistent session expires and is removed."
        ),
        .single(
            "limits.max_connections", \.limits.maxConnections,
            ValueFormat.number(1...10_000_000).optional("auto"),
            "Connections at a time. auto takes what the descriptor limit leaves after a reserve."),
        .single(
            "limits.connections_per_address", \.limits.connectionsPerAddress,
            .addressLimit(10_000_000),
            "Connections of one address at a time; a further one is closed at once. An IPv6 address counts by its /64 network. auto is half of max_connections, and no limit on loopback."
        ),
        .single(
            "limits.connect_rate", \.limits.connectRate,
            ValueFormat.number(1...1_000_000).orOff(),
            "Connections accepted in a second, and at once after a quiet one; further ones wait to be accepted."
        ),
        .single(
            "limits.connect_rate_per_address", \.limits.connectRatePerAddress,
            .addressLimit(1_000_000),
            "The same of one address; a further one is closed at once. auto is half of connect_rate, and no limit on loopback."
        ),
        .single(
            "limits.max_handshakes", \.limits.maxHandshakes, .number(1...1_000_000),
            "TLS handshakes at a time. At the limit a new client takes the place of one that has not answered for 2 s or longer, or else waits to be accepted."
        ),
        .single(
            "limits.handshakes_per_address", \.limits.handshakesPerAddress,
            .addressLimit(1_000_000),
            "The same of one address; a further one is closed at once. auto is half of max_handshakes, and no limit on loopback."
        ),
        .single(
            "limits.memory", \.limits.memory, .memoryLimit((16 << 20)...(1 << 50)),
            "Private memory of the process. Above it, new connections wait, for connect_timeout at most; 5 % above it, unfinished packets and large publishers are cut back; 10 % above it, slow readers are closed, largest first. If nothing is left to be closed, new connections are admitted and nothing new is kept. auto is 80 % of the memory of the control group or the machine."
        ),
        .single(
            "limits.unfinished_bytes", \.limits.unfinishedBytes, .size((64 << 10)...(64 << 30)),
            "Unfinished packets of all clients together; beyond it, connections whose packet began longest ago are closed. Left out, it is never below four times max_packet."
        ),
        .single(
            "limits.output_bytes", \.limits.outputBytes, .size(1_024...(1 << 30)),
            "Unsent bytes of one connection above which QoS 0 is dropped and QoS 1 and 2 wait."),
        .single(
            "limits.drain_timeout", \.limits.drainTimeout,
            .duration(.zero...(.seconds(3_600))),
            "How long a stop waits for unsent output."),
    ]

    private static let loggingSettings: [Setting] = [
        .single(
            "logging.level", \.logging.level, .word(noun: "a log level"), flag: "--logging-level",
            "The least important events that are logged."),
        .single(
            "logging.connections", \.logging.connections, .word(noun: "a log level"),
            "The level of the lines about each connection and its end. Below logging.level they are left out."
        ),
        .single(
            "logging.format", \.logging.format, .word(noun: "a log format"),
            "Lines for people, or one JSON object a line."),
    ]

    private static let orderSettings: [Setting] = [
        .single(
            "orders.topic_template", \.orders.topicTemplate,
            .topicTemplate(required: ["sales_id", "order_id"]),
            "Topic of order status updates."),
        .single(
            "orders.channel_template", \.orders.channelTemplate,
            .topicTemplate(required: ["sales_id"]),
            "Channel in which their sequence numbers count, one by one."),
        .single(
            "orders.qos", \.orders.qos, .qos,
            "QoS of order status updates."),
    ]

    /// The largest packet that MQTT can frame, less its header.
    private static let maximumPacketBytes = 256 << 20
}
