import Addresses
import BanFiles
import BrokerAPI
import Credentials
import Testing

@testable import AdminAPI

@Suite("The file of bans")
struct BanFileTests {
    private func ban(
        _ target: Ban.Target, id: UInt32 = 1, expires: Int64? = nil, reason: String = ""
    ) -> Ban {
        Ban(
            id: Ban.ID(id), target: target, created: 1_738_310_400, expires: expires,
            reason: reason, author: "admin")
    }

    @Test("bans and comments survive a round trip byte for byte")
    func roundTrip() throws {
        let text = """
            # shut out
            00000001 client:phone-7 2025-01-31T08:00:00Z never by:admin why:
            7f3a9c21 user:ann%20b%C3%A4r 2025-01-31T08:00:00Z 2025-01-31T10:00:00Z by: why:%22%0A%00

            0000000a address:192.0.2.0/24 2025-01-31T08:00:00Z never by:ops why:floods
            0000000b address:2001:db8::/64 2025-01-31T08:00:00Z never by:ops why:
            0000000c client:%FFx 2025-01-31T08:00:00Z never by: why:

            """
        let invalid = "0000000c client:%FFx 2025-01-31T08:00:00Z never by: why:\n"
        let lines = text.replacing(invalid, with: "")
        let file = try BanFile(parsing: Array(lines.utf8), path: "bans")
        #expect(String(decoding: file.contents, as: UTF8.self) == lines)
        #expect(
            file.entries.map(\.target.text) == [
                "phone-7", "ann bär", "192.0.2.0/24", "2001:db8::/64",
            ])
        #expect(file.entries[1].reason == "\"\n\0")
        #expect(file.entries[1].isExpired(atMs: 1_738_317_600_000))
        #expect(!file.entries[1].isExpired(atMs: 1_738_317_599_999))
        // Names are UTF-8 [MQTT-1.5.3-1].
        #expect(throws: BanFileError.self) {
            try BanFile(parsing: Array(text.utf8), path: "bans")
        }
    }

    @Test(
        "any other line is an error with its number",
        arguments: [
            ("00000001 client:a 2025-01-31T08:00:00Z never by:", "5 words"),
            ("0000001 client:a T never by: why:", "eight hexadecimal digits"),
            ("0000000A client:a T never by: why:", "eight hexadecimal digits"),
            ("00000001 client: T never by: why:", "the second word"),
            ("00000001 phone:a T never by: why:", "the second word"),
            ("00000001 client:%zz T never by: why:", "the second word"),
            ("00000001 address:10.0.0.1/8 T never by: why:", "the second word"),
            ("00000001 address:host T never by: why:", "the second word"),
            ("00000001 client:a yesterday never by: why:", "a time"),
            ("00000001 client:a T soon by: why:", "a time"),
            ("00000001 client:a T never why: by:", "last two words"),
            ("00000001 client:a T never by:%f why:", "last two words"),
        ])
    func malformed(line: String, words: String) {
        let line = line.replacing(" T ", with: " 2025-01-31T08:00:00Z ")
        #expect {
            try BanFile(parsing: Array("# a\n\(line)\n".utf8), path: "bans")
        } throws: { error in
            "\(error)".hasPrefix("bans:2: ") && "\(error)".contains(words)
        }
    }

    @Test("one identifier twice, and one target twice, are errors")
    func duplicates() {
        let first = "00000001 client:a 2025-01-31T08:00:00Z never by: why:\n"
        let second = first.replacing("client:a", with: "client:b")
        let third = first.replacing("00000001", with: "00000002")
        for (lines, words) in [
            (first + second, "00000001 is already"), (first + third, "banned on"),
        ] {
            #expect {
                try BanFile(parsing: Array(lines.utf8), path: "bans")
            } throws: { error in
                "\(error)".contains(words) && "\(error)".contains("line 1")
            }
        }
    }

    @Test("a further ban of the same keeps the identifier, and takes the place of the first")
    func replaced() {
        var file = BanFile()
        let target = Ban.Target.client(Array("a".utf8))
        #expect(file.add(ban(target)) == .added(ban(target), replaced: false))
        let again = ban(target, id: 9, expires: 1_738_400_000, reason: "still")
        let kept = ban(target, id: 1, expires: 1_738_400_000, reason: "still")
        #expect(file.add(again) == .added(kept, replaced: true))
        #expect(file.entries == [kept])
    }

    @Test("there are as many bans as may be, and no more bytes")
    func full() {
        var file = BanFile()
        let name = [UInt8](repeating: UInt8(ascii: "\n"), count: BanFile.maximumNameBytes)
        var count = 0
        while case .added = file.add(ban(.client(name + [UInt8(count)]), id: UInt32(count))) {
            count += 1
        }
        #expect(count == BanFile.maximumByteCount / (3 * (BanFile.maximumNameBytes + 1)))
        #expect(file.contents.count <= BanFile.maximumByteCount)
        #expect(file.entries.count == count)
    }

    @Test("a book keeps its bans in a file of mode 0600, and leaves out those whose time is over")
    func book() throws {
        try withTemporaryDirectory { folder in
            let book = try BanBook(dataDirectory: folder)
            #expect(book.table.bans.isEmpty)
            let phone = Ban.Target.client(Array("phone".utf8))
            let (addition, table) = try book.add(
                phone, seconds: 60, reason: "r", author: "ops", nowMs: 1_738_310_400_999)
            guard case .added(let made, replaced: false) = addition else {
                Issue.record("\(addition)")
                return
            }
            #expect(made.expires == 1_738_310_460)
            #expect(table.generation > 1 && table.bans == [made])
            #expect(try BanBook(dataDirectory: folder).table.bans == [made])
            let user = Ban.Target.user(Array("ann".utf8))
            let (_, later) = try book.add(
                user, seconds: nil, reason: "", author: "", nowMs: 1_738_310_460_000)
            #expect(later.bans.map(\.target) == [user])
            #expect(later.generation > table.generation)
            let ban = try #require(later.bans.first)
            #expect(try book.lift(Ban.ID(ban.id.number &+ 1), nowMs: 0).lifted == nil)
            #expect(try book.lift(ban.id, nowMs: 0).lifted == ban)
            #expect(book.table.bans.isEmpty)
        }
    }
}

@Suite("The table of bans")
struct BanTableTests {
    private static func ban(_ id: UInt32, _ target: Ban.Target, expires: Int64? = nil) -> Ban {
        Ban(id: Ban.ID(id), target: target, created: 0, expires: expires, reason: "", author: "")
    }

    private static func network(_ text: String) throws -> Ban.Target {
        .network(try #require(IPNetwork(text)))
    }

    private static func found(_ table: BanTable, _ address: String) throws -> UInt32? {
        table.ban(of: try #require(IPAddress(host: address, port: 1)), atMs: 5_000)?.id.number
    }

    @Test("addresses are found in networks of all lengths, IPv4 also in its IPv6 form")
    func addresses() throws {
        let table = BanTable(
            [
                Self.ban(1, try Self.network("192.0.2.7")),
                Self.ban(2, try Self.network("10.0.0.0/8")),
                Self.ban(3, try Self.network("2001:db8:1::/64")),
                Self.ban(4, try Self.network("::ffff:198.51.100.0/120")),
                Self.ban(5, try Self.network("203.0.113.0/24"), expires: 5),
                Self.ban(6, try Self.network("203.0.113.9")),
            ], generation: 1)
        #expect(try Self.found(table, "192.0.2.7") == 1)
        #expect(try Self.found(table, "::ffff:192.0.2.7") == 1)
        #expect(try Self.found(table, "192.0.2.8") == nil)
        #expect(try Self.found(table, "10.255.0.1") == 2)
        #expect(try Self.found(table, "2001:db8:1::9") == 3)
        #expect(try Self.found(table, "2001:db8:1:1::9") == nil)
        #expect(try Self.found(table, "198.51.100.3") == 4)
        #expect(try Self.found(table, "203.0.113.8") == nil)
        #expect(try Self.found(table, "203.0.113.9") == 6)
        #expect(table.ban(of: .unknown, atMs: 0) == nil)
        #expect(table.hasAddresses && !table.hasNames)
    }

    @Test("names are found by their bytes, until their time is over")
    func names() {
        let name = Array("ann".utf8)
        let table = BanTable(
            [Self.ban(1, .user(name), expires: 5), Self.ban(2, .client(name))], generation: 1)
        name.withUnsafeBytes { name in
            #expect(table.ban(ofUser: name, atMs: 4_999)?.id.number == 1)
            #expect(table.ban(ofUser: name, atMs: 5_000) == nil)
            #expect(table.ban(ofClient: name, atMs: 5_000)?.id.number == 2)
        }
        Array("Ann".utf8).withUnsafeBytes { other in
            #expect(table.ban(ofClient: other, atMs: 0) == nil)
        }
        let all = table.bans(
            ofClient: "ann", users: ["ann", "ann", "bob"], addresses: [], atMs: 0)
        #expect(all.map(\.id.number) == [1, 2])
    }

    @Test(
        "an identifier is eight digits",
        arguments: ["", "0000001", "000000001", "0000000G", "0000000A", "+0000001"])
    func identifiers(text: String) {
        #expect(Ban.ID(text) == nil)
        #expect(Ban.ID("00ff00ff")?.text == "00ff00ff")
    }
}
