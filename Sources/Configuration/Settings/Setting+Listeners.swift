extension Setting {
    /// Keys of a listener.
    static let listenerSettings: [Setting] = [
        .listener(
            "address", \.address, .address,
            "Where MQTT clients connect. 0.0.0.0 and :: take every address of the machine."),
        .listener(
            "port", \.port, .number(0...65_535, noun: "a port"), flag: "--port",
            "Its TCP port. 0 takes a free one, which the log names."),
        .listener(
            "allow_anonymous", \.allowAnonymous, ValueFormat.boolean.optional("auto"),
            flag: "--allow-anonymous",
            "Whether clients without a user name are admitted. auto admits them on a loopback address while there is neither a password_file nor auth.jwt nor proxy_from."
        ),
        .listener(
            "proxy_from", \.proxyFrom, .networks,
            "Proxies in front of this listener. A connection from these addresses must begin with a PROXY header (version 1 or 2, before TLS), and the address in it is the client's; any other connection must not. 0.0.0.0/0 and ::/0 stand for every address."
        ),
        .listener(
            "protocol", \.transport, .word(noun: "a protocol"),
            "What carries the packets of MQTT: the connection itself, or frames of WebSocket in it, for web pages. TLS and proxy_from go with both."
        ),
        .listener(
            "websocket.path", \.webSocket.path, .requestPath,
            "The path at which WebSocket is served; every other one is answered with 404. A query behind it is ignored, but for a token."
        ),
        .listener(
            "websocket.origins", \.webSocket.origins, .origins,
            "Origins whose web pages may connect. A request with an Origin that is not listed is answered with 403; one without, which no browser sends, is not held to it."
        ),
        .listener(
            "websocket.token", \.webSocket.token, .word(noun: "a place of tokens"),
            "Where the request may bring a token in place of the password of CONNECT: as access_token in the query, which proxies may log; in the header Authorization: Bearer, which no browser sends; or in one of both."
        ),
        .listener(
            "tls.certificate", \.tls.certificates, .paths("a PEM file"),
            "Serves TLS with this certificate; the certificates that signed it follow in the file. With several, the server name that a client asks for chooses one; the first serves all other names."
        ),
        .listener(
            "tls.key", \.tls.keys, .paths("a PEM file"),
            "Its private key, which others may not read; several in the order of the certificates."
        ),
        .listener(
            "tls.minimum_version", \.tls.minimumVersion, .word(noun: "a version of TLS"),
            "The oldest version of TLS that a client may speak."),
        .listener(
            "tls.client_certificates", \.tls.clientCertificates,
            .word(noun: "a rule for clients' certificates"),
            "Whether clients show a certificate: never, if they have one, or always."),
        .listener(
            "tls.client_ca_file", \.tls.clientCAFile, ValueFormat.path("a PEM file").optional(),
            "Authorities that may have issued the certificates of clients."),
        .listener(
            "tls.crl_file", \.tls.crlFile, ValueFormat.path("a PEM file").orUnset(),
            "Revoked certificates of clients. With it, a client is refused unless the lists of all authorities above it are present, the root's included, and none has expired."
        ),
        .listener(
            "tls.user_name_from_certificate", \.tls.userNameFromCertificate, .boolean,
            "Takes the user name from the common name of a client's certificate. The client then needs no password, and a user name in its CONNECT is ignored."
        ),
    ]
}
