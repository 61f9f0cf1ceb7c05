import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// The records that a broker may hold a million of.
@Suite("Sizes of records")
struct RecordSizeTests {
    @Test("a connection takes 128 bytes")
    func connection() { #expect(MemoryLayout<Connection>.stride == 128) }

    @Test("a session takes 224 bytes")
    func session() { #expect(MemoryLayout<Session>.stride == 224) }

    @Test("a device with the wake that it is owed takes what limits.device_bytes counts for it")
    func device() {
        // With a timer, its places in the indices by client identifier and by token, and a slot of the
        // counts by user, which are three quarters full at most.
        let others = 40 + 2 * 16 + 12
        let records = MemoryLayout<Devices.Record>.stride + MemoryLayout<OwedWakes.Owed>.stride
        #expect(records == 272)
        #expect(records + others <= Devices.recordBytes)
    }
}
