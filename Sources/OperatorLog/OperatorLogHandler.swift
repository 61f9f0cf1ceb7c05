import Logging

/// Formats the events of one logger and submits the lines to the log's thread.
struct OperatorLogHandler: LogHandler {
    let label: String
    let sink: LogSink
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    /// `nil` follows the log's level.
    private var ownLevel: Logger.Level?

    init(label: String, sink: LogSink) {
        self.label = label
        self.sink = sink
    }

    var logLevel: Logger.Level {
        get { ownLevel ?? sink.level }
        set { ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var metadata = metadata
        if let provided = metadataProvider?.get() {
            metadata.merge(provided) { _, provided in provided }
        }
        if let error = event.error { metadata["error"] = "\(error)" }
        if let own = event.metadata { metadata.merge(own) { _, own in own } }
        sink.submit(
            sink.format.line(
                at: sink.clock(), level: event.level, label: label,
                message: event.message.description, metadata: metadata))
    }
}
