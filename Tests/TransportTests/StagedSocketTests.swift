import TLS
import Testing

@testable import Transport

@Suite("Transport: memory of an idle connection")
struct StagedSocketTests {
    @Test("is 32 bytes, with TLS 296 more: its keys and 48 bytes; with WebSocket 32 more")
    func sizes() {
        #expect(MemoryLayout<StagedSocket>.stride == 32)
        let ofRecords = MemoryLayout<RecordStage>.stride
        #expect(ofRecords - MemoryLayout<SecureChannel>.stride == 48)
        #expect(ofRecords == 296)
        #expect(MemoryLayout<WebSocketStage>.stride == 32)
    }
}
