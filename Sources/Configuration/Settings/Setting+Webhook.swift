extension Setting {
    static let webhookSettings: [Setting] = [
        .single(
            "webhook.url", \.webhook.url, ValueFormat.webURL.optional(),
            "Where the broker posts what became of messages with receipts. Left out, it posts nothing."
        ),
        .single(
            "webhook.secret_file", \.webhook.secretFile,
            ValueFormat.path("a file with a secret").optional(),
            "Its one line, 16 to 1024 letters, digits and signs, signs each request; others may not read the file."
        ),
        .single(
            "webhook.ca_file", \.webhook.caFile, ValueFormat.path("a PEM file").orUnset(),
            "Authorities that may have issued the receiver's certificate. Left out, those that the system trusts."
        ),
        .single(
            "webhook.timeout", \.webhook.timeout, .duration(.milliseconds(100)...(.seconds(60))),
            "Time for the answer to a request; later it has failed and is sent again."),
        .single(
            "webhook.max_pause", \.webhook.maxPause, .duration(.seconds(1)...(.seconds(3_600))),
            "The longest pause between two attempts. The first is a second at most, and each one may be twice as long as the one before."
        ),
        .single(
            "webhook.allow_plain", \.webhook.allowPlain, .boolean,
            "Allows HTTP without TLS to a host that is another machine: the events can then be read on the network."
        ),
    ]
}
