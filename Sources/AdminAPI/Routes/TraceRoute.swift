import Addresses
import BrokerAPI
import Hummingbird
import NIOCore
import PlainText

extension Route {
    /// `GET /v1/trace`: what a client, a topic or an address does, line by line as it happens.
    static func trace(_ broker: any BrokerControl) -> Route {
        Route(
            method: .get, path: "/v1/trace", access: .admin,
            query: ["client_id", "topic", "address", "seconds", "rate", "payloads"]
        ) { request throws(Problem) in
            let wanted = try TraceRequest(request.query)
            let id: UInt32? = try await broker.ask { .beginTrace(wanted, $0) }
            guard let id else {
                throw Problem(
                    .overloaded, "\(TraceRequest.most) traces are under way.",
                    fix: "Wait until one ends, or end one.")
            }
            // Nobody reads the body, whose end would end the trace.
            if request.isHead { broker.send(.endTrace(id)) }
            return Response(
                status: .ok, headers: [.contentType: "application/x-ndjson"],
                body: ResponseBody { writer in
                    do {
                        try await TraceStream(broker: broker, id: id).run(&writer)
                    } catch {
                        broker.send(.endTrace(id))
                        throw error
                    }
                    broker.send(.endTrace(id))
                    try await writer.finish(nil)
                })
        }
    }
}

/// Passes the lines of one trace on, until it is over or its reader has gone.
private struct TraceStream {
    private static let pause = Duration.milliseconds(200)
    /// Pauses without a line after which an empty one shows whether the reader is still there.
    private static let quietPauses = 25

    let broker: any BrokerControl
    let id: UInt32

    func run(_ writer: inout any ResponseBodyWriter) async throws {
        var quiet = 0
        while true {
            let answer: TraceLines = try await broker.ask { .traceLines(id, $0) }
            var text = ByteBuffer()
            for line in answer.lines {
                guard var json = jsonLine(line) else { continue }
                text.writeBuffer(&json)
                text.writeStaticString("\n")
            }
            quiet = answer.lines.isEmpty ? quiet + 1 : 0
            if quiet == Self.quietPauses {
                text.writeStaticString("\n")
                quiet = 0
            }
            if text.readableBytes > 0 { try await writer.write(text) }
            if answer.isOver { break }
            try await Task.sleep(for: Self.pause)
        }
    }
}

extension TraceRequest {
    fileprivate init(_ query: QueryItems) throws(Problem) {
        self.init(
            try Self.subject(query),
            seconds: try query.integer("seconds", in: Self.seconds) ?? Self.usualSeconds,
            linesPerSecond: try query.integer("rate", in: Self.rates) ?? Self.usualRate,
            showsPayloads: try query.bool("payloads") ?? false)
    }

    private static func subject(_ query: QueryItems) throws(Problem) -> Subject {
        switch (query["client_id"], query["topic"], query["address"]) {
        case (let clientID?, nil, nil):
            _ = try ClientIDText(clientID, field: "client_id")
            return .client(clientID)
        case (nil, let filter?, nil):
            guard TopicFilterText.isFilter(filter) else {
                throw Problem(
                    .invalidQuery, "\"\(filter.visible())\" is no topic filter [MQTT-4.7.1-2].",
                    field: "topic", fix: "Write a topic or a filter, as orders/1 or orders/#.")
            }
            return .topic(filter: filter)
        case (nil, nil, let address?):
            guard IPNetwork(address) != nil else {
                throw Problem(
                    .invalidQuery, "The address is \"\(address.visible())\", which is none.",
                    field: "address",
                    fix: "Give an address or a network, as 10.1.2.3 or 10.1.0.0/16.")
            }
            return .address(address)
        default:
            throw Problem(
                .invalidQuery, "A trace follows one thing.", field: "client_id",
                fix: "Give one of client_id, topic and address.")
        }
    }
}
