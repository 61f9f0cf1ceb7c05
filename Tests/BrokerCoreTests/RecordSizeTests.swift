import Testing

@testable import BrokerCore

/// The records that a broker may hold a million of.
@Suite("Sizes of records")
struct RecordSizeTests {
    @Test("a connection takes 128 bytes")
    func connection() { #expect(MemoryLayout<Connection>.stride == 128) }

    @Test("a session takes 216 bytes")
    func session() { #expect(MemoryLayout<Session>.stride == 216) }
}
