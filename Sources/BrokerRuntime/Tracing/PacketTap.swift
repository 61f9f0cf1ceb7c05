import MQTTCodec

/// Cuts a copy of one direction of a connection into packets, for a trace.
///
/// It keeps at most the first ``mostKept`` bytes of each packet, however that is divided.
struct PacketTap {
    /// Bytes of a packet that are kept, fixed header included.
    static let mostKept = 4_096

    private var kept: [UInt8] = []
    /// Bytes of the packet that are still to come; 0 while its length is unknown.
    private var missing = 0
    private var size = 0

    /// Takes further bytes, and calls `body` with the beginning of each packet that is complete and
    /// its size. Bytes that are no packet end it: `body` gets them with the size 0.
    mutating func feed(_ bytes: UnsafeRawBufferPointer, _ body: ([UInt8], Int) -> Void) {
        var rest = bytes[...]
        while !rest.isEmpty {
            guard missing == 0 else {
                let count = min(missing, rest.count)
                keep(rest.prefix(count))
                missing -= count
                rest = rest.dropFirst(count)
                if missing == 0 { end(body) }
                continue
            }
            keep(rest.prefix(1))
            rest = rest.dropFirst(1)
            guard let length = length(body) else { continue }
            size = kept.count + length
            missing = length
            if missing == 0 { end(body) }
        }
    }

    /// The remaining length, once its bytes are there (section 2.2.3).
    private mutating func length(_ body: ([UInt8], Int) -> Void) -> Int? {
        guard kept.count > 1, let last = kept.last, last & 0x80 == 0 || kept.count == 5 else {
            return nil
        }
        guard last & 0x80 == 0 else {
            body(kept, 0)
            kept = []
            return nil
        }
        return kept.dropFirst().reversed().reduce(0) { $0 << 7 | Int($1 & 0x7F) }
    }

    private mutating func keep(_ bytes: Slice<UnsafeRawBufferPointer>) {
        kept.append(contentsOf: bytes.prefix(Self.mostKept - kept.count))
    }

    private mutating func end(_ body: ([UInt8], Int) -> Void) {
        body(kept, size)
        kept = []
    }
}
