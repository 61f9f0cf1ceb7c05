import Structures

/// The records of stages that do not fit a ``StagedSocket``, and what listeners ask of WebSocket.
struct StageTables: ~Copyable {
    /// Never read; see the same in ``Reactor``.
    private let addressOnly: any Sendable = ()
    var records = Slab<RecordStage>()
    var webSockets = Slab<WebSocketStage>()
    /// By listener; `nil` for one without WebSocket.
    private var webSocketRules: [WebSocketRules?] = []

    mutating func setRules(_ rules: WebSocketRules, ofListener listener: Int) {
        precondition(listener < Int(UInt8.max), "listener \(listener) is beyond the largest number")
        while webSocketRules.count <= listener { webSocketRules.append(nil) }
        webSocketRules[listener] = rules
    }

    /// The stage that carries bytes to the owner: over TLS records or plain bytes, and with the rules of
    /// a listener for WebSocket, or `nil`.
    mutating func last(over records: RecordStage.Index?, webSocket listener: UInt8?) -> Stage {
        guard let listener else { return records.map { .records($0) } ?? .plain }
        let place = webSockets.insert(WebSocketStage(listener: listener, carrier: records))
        return .webSocket(WebSocketStage.Index(number: place))
    }

    /// The rules for the request that a WebSocket stage waits for; `nil` once it has come.
    @inline(__always)
    func rules(awaitedBy place: WebSocketStage.Index) -> WebSocketRules? {
        guard let listener = webSockets[place.number].awaitedListener else { return nil }
        guard listener < webSocketRules.count, let rules = webSocketRules[listener] else {
            preconditionFailure("listener \(listener) has no rules for WebSocket")
        }
        return rules
    }

    /// True when a WebSocket stage has something to send without the owner's output.
    func owesRoom(_ place: WebSocketStage.Index) -> Bool {
        webSockets[place.number].owesRoom
            || webSockets[place.number].recordPlace.map { records[$0].owesKeyUpdate } ?? false
    }

    /// Ends and frees a record stage.
    mutating func closeRecords(_ place: UInt32, _ descriptor: CInt, _ bench: inout Workbench) {
        records[place].close(descriptor, &bench)
        records.remove(place)
    }

    /// Ends and frees a WebSocket stage, and the one that carries it.
    mutating func closeWebSocket(_ place: UInt32, _ descriptor: CInt, _ bench: inout Workbench) {
        if webSockets[place].owesAnswer {
            webSockets[place].sendEnd(descriptor, &records, &bench)
            bench.discardInput(descriptor)
        } else {
            webSockets[place].sendEnd(descriptor, &records, &bench)
        }
        webSockets[place].close(&bench)
        if let carrier = webSockets[place].recordPlace {
            closeRecords(carrier, descriptor, &bench)
        }
        webSockets.remove(place)
    }
}
