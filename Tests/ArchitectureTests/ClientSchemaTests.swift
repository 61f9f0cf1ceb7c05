import Testing

/// Building the generator of the client's Swift code takes minutes, so the fields are compared
/// instead; `scripts/generate-protos --swift` remakes the code.
@Suite("The client's generated code")
struct ClientSchemaTests {
    /// A field as both sides have it, for example `8 bytes payload`, without case and underscores.
    private typealias Fields = Set<String>

    private static func schema(_ path: String) throws -> Fields {
        var fields: Fields = []
        for line in try Repository.file(path).lines {
            let declaration = #/^ +(repeated )?(\w+|map<.*>) (\w+) = (\d+)/#
            guard let match = line.prefixMatch(of: declaration) else { continue }
            let type = match.2.hasPrefix("map<") ? "map" : match.2
            let kind = match.1 == nil ? type : "repeated\(type)"
            fields.insert("\(match.4) \(kind) \(plain(match.3))")
        }
        return fields
    }

    private static func generated(_ path: String) throws -> Fields {
        var fields: Fields = []
        for line in try Repository.file(path).lines {
            let decoding =
                #/\ case (\d+): .*decoder\.decode(?:Singular|)(\w+)Field\(.*value: &self\.(\w+)\)/#
            guard let match = line.firstMatch(of: decoding) else { continue }
            fields.insert("\(match.1) \(match.2.lowercased()) \(plain(match.3))")
        }
        return fields
    }

    private static func plain(_ name: Substring) -> String {
        name.lowercased().filter { $0 != "_" }
    }

    @Test(
        "has each field of the schemas, with its number and its type",
        arguments: ["envelope": 10, "client_report": 11, "order_status": 6])
    func fields(name: String, count: Int) throws {
        let schema = try Self.schema("Protos/hermes/v1/\(name).proto")
        // The order's status is an enum, which the decoder does not name.
        let fields = Set(schema.map { $0.replacing("OrderStatus status", with: "enum status") })
        #expect(fields.count >= count, "the scan found too little")
        #expect(
            try Self.generated(
                "Client/Sources/HermesClientMessages/Generated/hermes_v1_\(name).pb.swift")
                == fields)
    }
}
