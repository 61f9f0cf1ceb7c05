import Testing

/// The flows of the shard have a direction: a flow file calls only files that stand below it. What
/// has to go upwards (a take-over that waits, an opening whose queue has come) is a value that the
/// shard's parts keep until the turn takes it.
@Suite("The order of the flow files")
struct FlowOrderTests {
    /// The flow files of the kernel, the uppermost first.
    private static let order = [
        "Shard+Turn", "Shard+Packets", "Shard+Packets5", "Shard+Publish", "Shard+Received",
        "Shard+Bans", "Shard+Restore",
        "Shard+Drain",
        "Shard+HangUp", "Shard+Connect", "Shard+Authenticate", "Shard+Completions", "Shard+Slices",
        "Shard+Open", "Shard+Close", "Shard+Wills", "Shard+Filters", "Shard+Subscribe",
        "Shard+System",
        "Shard+StoreWaits", "Shard+Features", "Shard+Place", "Shard+HandOver", "Shard+Route",
        "Shard+Match", "Shard+Choose", "Shard+Resend", "Shard+Deliver", "Shard+Copies",
        "Shard+Forms",
        "Shard+Rights",
        "Shard+Load",
        "Shard+Refuse", "Shard+Answers5",
        "Shard+TakeOver",
        "Shard+Acknowledge", "Shard+Expiry", "Shard+QueueEnds", "Shard+Drops", "Shard+Room",
        "Shard+Commits",
        "Shard",
    ]

    /// One flow file: the methods that it declares, and the names that it calls on the shard.
    private struct Flow {
        let name: String
        var declared: Set<String> = []
        var calls: [(method: String, line: Int)] = []

        init(_ file: SourceFile) {
            name = String(file.path.split(separator: "/").last?.dropLast(6) ?? "")
            for (index, line) in file.lines.enumerated() {
                let code = line.code
                if let method = code.firstMatch(of: #/\bfunc\s+(\w+)/#)?.1 {
                    declared.insert(String(method))
                    continue
                }
                for call in code.matches(of: #/(?:^|[^\w.]|\bself\.)(\w+)\(/#) {
                    calls.append((String(call.1), index + 1))
                }
            }
        }
    }

    private static func flows() throws -> [Flow] {
        try Repository.files(in: "Sources/BrokerCore/Shard", suffix: ".swift").map(Flow.init)
            .filter { $0.name.hasPrefix("Shard") && $0.name != "ShardContext" }
    }

    @Test("every flow file has its place in the order")
    func complete() throws {
        #expect(try Set(Self.flows().map(\.name)) == Set(Self.order))
    }

    @Test("a flow file calls only what it or a file below it declares")
    func downwards() throws {
        let flows = try Self.flows()
        var calls = 0
        for flow in flows {
            guard let place = Self.order.firstIndex(of: flow.name) else { continue }
            for (method, line) in flow.calls where !flow.declared.contains(method) {
                let declaring = flows.filter { $0.declared.contains(method) }.map(\.name)
                guard !declaring.isEmpty else { continue }
                calls += 1
                #expect(
                    declaring.contains { name in
                        Self.order.firstIndex(of: name).map { $0 > place } ?? true
                    },
                    "\(flow.name):\(line) calls \(method), which \(declaring) above it declares")
            }
        }
        #expect(calls > 200, "the scan of the flow files found too little")
    }
}
