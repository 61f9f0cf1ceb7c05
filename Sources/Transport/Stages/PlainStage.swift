/// Bytes without TLS. Reads append to input that the owner has not consumed;
/// ``Workbench/send(_:_:)`` sends output unchanged. The stage has no state.
enum PlainStage {
    /// Reads once, after the kept input.
    @inline(__always)
    static func receive(
        _ descriptor: CInt, _ kept: inout KeptInput, _ bench: inout Workbench
    ) -> StageInput {
        let room = kept.room(for: 1, bench)
        let (count, code) = bench.receive(
            descriptor, into: room.base + room.kept, count: room.capacity - room.kept)
        guard count > 0 else { return .nothing(count, code) }
        return .bytes(UnsafeRawBufferPointer(start: room.base, count: room.kept + count))
    }
}
