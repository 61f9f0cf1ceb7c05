import BrokerAPI
import FoundationEssentials
import PlainText

/// An answer in two forms: decoded for tables, and as the broker sent it for `--json`.
struct Answer<Model: Sendable>: Sendable {
    let model: Model
    let json: [UInt8]
}

/// The calls of the HTTP API that `hermesctl` makes.
struct AdminClient: Sendable {
    let endpoint: AdminEndpoint
    /// The bearer token; `nil` over the Unix socket.
    let token: String?
    let transport: any AdminTransport

    func status() async throws(CommandFailure) -> Answer<BrokerStatus> {
        try await get(["v1", "status"])
    }

    func client(_ clientID: String) async throws(CommandFailure) -> Answer<ClientDetail> {
        try await get(["v1", "clients", clientID])
    }

    /// What a client is doing, in plain words; also whether a topic is for it, or what became of a
    /// message for it.
    func explanation(
        of clientID: String, topic: String?, message: String?
    ) async throws(CommandFailure) -> ClientExplanation {
        var query: [(name: String, value: String)] = []
        if let topic { query.append(("topic", topic)) }
        if let message { query.append(("message", message)) }
        let answer: Answer<ClientExplanation> = try await get(
            ["v1", "clients", clientID, "explain"], query: query)
        return answer.model
    }

    /// Fetches up to `query.limit` clients, from as many pages as needed.
    func clients(_ query: ClientQuery) async throws(CommandFailure) -> ClientPage {
        var result = ClientPage(clients: [], next: query.cursor)
        repeat {
            var page = query
            page.limit = min(query.limit - result.clients.count, PageSize.largest)
            page.cursor = result.next
            let answer: Answer<ClientPage> = try await get(
                ["v1", "clients"], query: Self.items(page))
            // A page that leads to itself would never end.
            if let next = answer.model.next, let cursor = page.cursor, next.hasBytes(of: cursor) {
                throw CommandFailure(
                    .unexpectedAnswer, "\(endpoint) sent a page whose next is the page itself.")
            }
            result.clients += answer.model.clients
            result.next = answer.model.next
        } while result.next != nil && result.clients.count < query.limit
        return result
    }

    /// Closes the client's connection. Throws ``ExitStatus/refused`` when there is no such client.
    func disconnect(_ clientID: String) async throws(CommandFailure) -> Answer<DisconnectResult> {
        let response = try await send(.delete, ["v1", "clients", clientID])
        if response.status == 204 {
            return Answer(
                model: DisconnectResult(clientID: clientID, disconnected: true), json: [])
        }
        return try decode(response)
    }

    /// Fetches up to `limit` messages of a queue, from as many pages as needed.
    func queue(_ clientID: String, limit: Int) async throws(CommandFailure) -> QueuePage {
        let (messages, next) = try await gather(
            ["v1", "clients", clientID, "queue"], limit: limit
        ) { (page: QueuePage) in (page.messages, page.next) }
        return QueuePage(clientID: clientID, messages: messages, next: next)
    }

    func dropQueue(_ clientID: String) async throws(CommandFailure) -> Answer<QueueDropResult> {
        try decode(await send(.delete, ["v1", "clients", clientID, "queue"]))
    }

    func acceptLoss() async throws(CommandFailure) -> Answer<AcceptLossResult> {
        try decode(await send(.post, ["v1", "store", "accept-loss"]))
    }

    /// Returns when the copy is complete. `directory` is an absolute path on the broker's machine.
    func backUp(to directory: String) async throws(CommandFailure) -> Answer<BackupResult> {
        try decode(
            await send(.post, ["v1", "backup"], query: [(name: "directory", value: directory)]))
    }

    func publish(
        _ payload: [UInt8], topic: String, qos: Int?, retain: Bool, messageID: String?,
        expiresInSeconds: Int64?, key: String?, receipts: Bool, collapseKey: String? = nil,
        wake: String? = nil
    ) async throws(CommandFailure) -> Answer<PublishResult> {
        var query = [(name: "topic", value: topic)]
        if let qos { query.append(("qos", "\(qos)")) }
        query.append(("retain", "\(retain)"))
        if let messageID { query.append(("message_id", messageID)) }
        if let expiresInSeconds { query.append(("expires_in_s", "\(expiresInSeconds)")) }
        if receipts { query.append(("receipts", "true")) }
        if let collapseKey { query.append(("collapse_key", collapseKey)) }
        if let wake { query.append(("wake", wake)) }
        return try decode(
            await send(.post, ["v1", "publish"], query: query, body: payload, key: key))
    }

    /// What became of a message that was published with receipts.
    func receipt(_ messageID: String) async throws(CommandFailure) -> Answer<MessageReceipt> {
        try await get(["v1", "messages", messageID])
    }

    /// Messages that are published later, at most so many.
    func scheduled(limit: Int) async throws(CommandFailure) -> ScheduledPage {
        let (messages, next) = try await gather(["v1", "scheduled"], limit: limit) {
            (page: ScheduledPage) in (page.messages, page.next)
        }
        return ScheduledPage(messages: messages, next: next)
    }

    /// Removes a message before it is published.
    func cancelScheduled(
        _ messageID: String
    ) async throws(CommandFailure) -> Answer<ScheduledMessage> {
        try decode(await send(.delete, ["v1", "scheduled", messageID]))
    }

    private static func items(_ query: ClientQuery) -> [(name: String, value: String)] {
        var items = [(name: "limit", value: "\(query.limit)")]
        if let connected = query.connected { items.append(("connected", "\(connected)")) }
        if let prefix = query.prefix { items.append(("prefix", prefix)) }
        if let userName = query.userName { items.append(("user_name", userName)) }
        if let address = query.address { items.append(("address", address)) }
        if let version = query.protocolVersion { items.append(("protocol", version)) }
        if let beforeMs = query.beforeMs { items.append(("before_ms", "\(beforeMs)")) }
        if let fromMs = query.fromMs { items.append(("from_ms", "\(fromMs)")) }
        if query.order != .clientID { items.append(("sort", query.order.rawValue)) }
        if let cursor = query.cursor { items.append(("cursor", cursor)) }
        return items
    }

    /// Publishes the messages that a descriptor brings, a JSON object on each line; `take` gets the
    /// results in parts.
    func publishBatch(
        from descriptor: CInt, named name: String,
        _ take: (ArraySlice<UInt8>) throws(CommandFailure) -> Void
    ) async throws(CommandFailure) {
        try await stream(["v1", "messages", "batch"], from: descriptor, named: name, take)
    }

    /// Posts the lines that a descriptor brings; `take` gets the results in parts.
    func stream(
        _ segments: [String], from descriptor: CInt, named name: String,
        _ take: (ArraySlice<UInt8>) throws(CommandFailure) -> Void
    ) async throws(CommandFailure) {
        let response = try await transport.stream(
            AdminRequest(
                method: .post, url: endpoint.url(segments, query: []), token: token, body: nil),
            from: descriptor, named: name, take: take)
        guard (200..<300).contains(response.status) else { throw refusal(response) }
    }

    /// Fetches items from as many pages as needed; also returns the cursor of what follows them.
    func gather<Page: Decodable & Sendable, Item: Sendable>(
        _ segments: [String], query filter: [(name: String, value: String)] = [], limit: Int,
        _ content: (Page) -> (items: [Item], next: String?)
    ) async throws(CommandFailure) -> ([Item], String?) {
        var items: [Item] = []
        var cursor: String?
        repeat {
            let size = min(limit - items.count, PageSize.largest)
            var query = filter + [(name: "limit", value: "\(size)")]
            if let cursor { query.append((name: "cursor", value: cursor)) }
            let answer: Answer<Page> = try await get(segments, query: query)
            let (found, next) = content(answer.model)
            // A page that does not advance would never end.
            if let next, let cursor, next.hasBytes(of: cursor) {
                throw CommandFailure(
                    .unexpectedAnswer, "\(endpoint) sent a page that continues with itself.")
            }
            items += found
            cursor = next
        } while cursor != nil && items.count < limit
        return (items, cursor)
    }

    func get<Model: Decodable>(
        _ segments: [String], query: [(name: String, value: String)] = []
    ) async throws(CommandFailure) -> Answer<Model> {
        try decode(await send(.get, segments, query: query))
    }

    /// Sends a request without a body.
    func send<Model: Decodable>(
        _ method: AdminRequest.Method, _ segments: [String]
    ) async throws(CommandFailure) -> Answer<Model> {
        try decode(await send(method, segments))
    }

    /// Sends a request and returns a successful response; throws for any other.
    private func send(
        _ method: AdminRequest.Method, _ segments: [String],
        query: [(name: String, value: String)] = [], body: [UInt8]? = nil,
        key: String? = nil
    ) async throws(CommandFailure) -> AdminResponse {
        try await send(
            AdminRequest(
                method: method, url: endpoint.url(segments, query: query), token: token,
                body: body, idempotencyKey: key))
    }

    private func send(_ request: AdminRequest) async throws(CommandFailure) -> AdminResponse {
        let response = try await transport.send(request)
        guard (200..<300).contains(response.status) else { throw refusal(response) }
        return response
    }

    /// Sends a body as JSON.
    func send<Model: Decodable>(
        _ method: AdminRequest.Method, _ segments: [String],
        query: [(name: String, value: String)] = [], json: some Encodable, key: String? = nil
    ) async throws(CommandFailure) -> Answer<Model> {
        try decode(
            await send(
                AdminRequest(
                    method: method, url: endpoint.url(segments, query: query), token: token,
                    body: Array(try JSONOutput.line(json).utf8), idempotencyKey: key,
                    contentType: "application/json")))
    }

    /// The text of the broker's access rules.
    func accessRules() async throws(CommandFailure) -> [UInt8] {
        try await send(.get, ["v1", "access-rules"]).body
    }

    /// Replaces the broker's access rules, if they still are those of an entity tag.
    func setAccessRules(
        _ text: [UInt8], ifMatch tag: String?
    ) async throws(CommandFailure) -> Answer<AccessRulesSet> {
        var request = AdminRequest(
            method: .put, url: endpoint.url(["v1", "access-rules"], query: []), token: token,
            body: text, contentType: "text/plain; charset=utf-8")
        request.ifMatch = tag
        return try decode(await send(request))
    }

    /// Deletes what has no answer but its absence.
    func remove(
        _ segments: [String], query: [(name: String, value: String)] = []
    ) async throws(CommandFailure) {
        _ = try await send(.delete, segments, query: query)
    }

    func post<Model: Decodable>(
        _ segments: [String], query: [(name: String, value: String)] = []
    ) async throws(CommandFailure) -> Answer<Model> {
        try decode(await send(.post, segments, query: query))
    }

    func delete<Model: Decodable>(
        _ segments: [String], query: [(name: String, value: String)] = []
    ) async throws(CommandFailure) -> Answer<Model> {
        try decode(await send(.delete, segments, query: query))
    }

    private func decode<Model: Decodable>(
        _ response: AdminResponse
    ) throws(CommandFailure) -> Answer<Model> {
        do {
            let model = try JSONDecoder().decode(Model.self, from: Data(response.body))
            return Answer(model: model, json: response.body)
        } catch {
            throw CommandFailure(
                .unexpectedAnswer,
                """
                the answer of \(endpoint) is not what a Hermes broker of this version sends. \
                Check the address, and that hermesctl and hermesd have the same version.
                """)
        }
    }

    /// The failure in the broker's own words, if it sent a problem document.
    func refusal(_ response: AdminResponse) -> CommandFailure {
        guard response.mediaType?.hasBytes(of: ProblemModel.contentType) == true,
            let problem = try? JSONDecoder().decode(
                ProblemModel.self, from: Data(response.body))
        else {
            return CommandFailure(
                .unexpectedAnswer,
                """
                \(endpoint) answered with status \(response.status) and without an explanation. \
                Check that it is the address of a Hermes broker.
                """)
        }
        let status: ExitStatus =
            response.status == 401 || response.status == 403 ? .unauthorized : .refused
        return CommandFailure(
            status,
            VisibleText.printable(
                "\(problem.title): \(problem.detail) \(CommandWords.translated(problem.fix))"))
    }
}
