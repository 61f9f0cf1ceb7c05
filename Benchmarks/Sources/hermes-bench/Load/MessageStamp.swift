/// The beginning of every payload, by which its receiver accounts for it.
///
/// Layout, in the byte order of the machine: run (4 bytes), publisher (4), sequence (8), time (8).
struct MessageStamp {
    static let byteCount = 24

    /// Drawn once per process: what is left over from an earlier run is not counted.
    let run: UInt32
    let publisher: UInt32
    /// Counts from 0 per publisher.
    let sequence: UInt64
    /// When it was sent, or when it was due in an open loop; monotonic nanoseconds.
    let time: UInt64

    func write(to payload: UnsafeMutableRawPointer) {
        payload.storeBytes(of: run, as: UInt32.self)
        payload.storeBytes(of: publisher, toByteOffset: 4, as: UInt32.self)
        Self.write(sequence: sequence, time: time, to: payload)
    }

    /// Only what changes from message to message.
    static func write(sequence: UInt64, time: UInt64, to payload: UnsafeMutableRawPointer) {
        payload.storeBytes(of: sequence, toByteOffset: 8, as: UInt64.self)
        payload.storeBytes(of: time, toByteOffset: 16, as: UInt64.self)
    }

    init(run: UInt32, publisher: UInt32, sequence: UInt64, time: UInt64) {
        self.run = run
        self.publisher = publisher
        self.sequence = sequence
        self.time = time
    }

    /// `nil` for a payload that is too short to carry one.
    init?(_ payload: UnsafeRawBufferPointer) {
        guard payload.count >= Self.byteCount else { return nil }
        run = payload.loadUnaligned(fromByteOffset: 0, as: UInt32.self)
        publisher = payload.loadUnaligned(fromByteOffset: 4, as: UInt32.self)
        sequence = payload.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
        time = payload.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
    }
}
