/// Bytes without TLS: read behind the input that the owner has not consumed, and sent as they are by
/// ``Workbench/send(_:_:)``. Between two calls the stage holds nothing.
enum PlainStage {
    /// Reads once, behind the input that the owner left.
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
