extension Setting {
    static let httpLoginSettings: [Setting] = [
        .single(
            "auth.http.url", \.auth.http.url, ValueFormat.webURL.orUnset(),
            "A service of the company that is asked about logins, by POST with a JSON document. Left out, it is not asked."
        ),
        .single(
            "auth.http.ca_file", \.auth.http.caFile, ValueFormat.path("a PEM file").orUnset(),
            "Authorities that may have issued the service's certificate. Left out, those that the system trusts."
        ),
        .single(
            "auth.http.token_file", \.auth.http.tokenFile,
            ValueFormat.path("a file with a secret").orUnset(),
            "Its one line, 16 to 1024 letters, digits and signs, is shown to the service as Authorization: Bearer; others may not read the file."
        ),
        .single(
            "auth.http.allow_plain", \.auth.http.allowPlain, .boolean,
            "Allows HTTP without TLS to another machine: passwords can then be read on the network, and answers be forged."
        ),
        .single(
            "auth.http.timeout", \.auth.http.timeout,
            .duration(.milliseconds(100)...(.seconds(30))),
            "Time for the answer to a request; a login waits as long again for a request to become free."
        ),
        .single(
            "auth.http.max_in_flight", \.auth.http.maxInFlight, .number(1...1_024),
            "Requests at a time, each on a connection of its own, which are kept."),
        .single(
            "auth.http.max_waiting", \.auth.http.maxWaiting, .number(0...65_536),
            "Logins that wait for a request to become free; a further one is told to come again (CONNACK 0x03)."
        ),
        .single(
            "auth.http.remember", \.auth.http.remember,
            .duration(.seconds(1)...(.seconds(86_400))).orZero(),
            "The most time for which an answer that lets in is remembered, if the service says so (remember_s)."
        ),
        .single(
            "auth.http.remember_denied", \.auth.http.rememberDenied,
            .duration(.seconds(1)...(.seconds(60))).orZero(),
            "The same for an answer that does not let in."),
        .single(
            "auth.http.when_unavailable", \.auth.http.whenUnavailable,
            .word(noun: "a rule for a service that is down"),
            "Who gets in while the service gives no answer: nobody new, or also those whom it has let in before with an answer to be remembered. Connected clients stay."
        ),
        .single(
            "auth.http.outdated", \.auth.http.outdated,
            .duration(.seconds(1)...(.seconds(604_800))),
            "With when_unavailable: remembered, for how long an answer that is out of date lets in."
        ),
        .single(
            "auth.http.breaker_failures", \.auth.http.breakerFailures, .number(1...10_000),
            "Failures in a row after which the service is not asked for a while."),
        .single(
            "auth.http.breaker_pause", \.auth.http.breakerPause,
            .duration(.milliseconds(100)...(.seconds(300))),
            "That while; then one login at a time is asked about until an answer comes."),
    ]

    /// Keys that a reload changes.
    static let reloadableHTTPLoginKeys = Set(
        [
            "timeout", "max_in_flight", "max_waiting", "remember", "remember_denied",
            "when_unavailable", "outdated", "breaker_failures", "breaker_pause",
        ].map { "auth.http.\($0)" })
}
