/// Bytes without TLS. Reads append to input that the owner has not consumed;
/// ``Workbench/send(_:_:)`` sends output unchanged. The stage has no state.
enum PlainStage {
    /// Reads once, `gap` bytes behind the kept input, which the caller fills.
    @inline(__always)
    static func receive(
        _ descriptor: CInt, _ kept: inout KeptInput, gap: Int = 0, _ bench: inout Workbench
    ) -> StageInput {
        let room = kept.room(for: gap + 1, bench)
        let begin = room.kept + gap
        let (count, code) = bench.receive(
            descriptor, into: room.base + begin, count: room.capacity - begin)
        guard count > 0 else { return .nothing(count, code) }
        return .bytes(UnsafeRawBufferPointer(start: room.base, count: begin + count))
    }
}
