import TLS

/// Records sealed by the peer and the bytes that arrive, changed or not, as a program builds them.
struct RecordStream {
    /// The most steps. More make an input slow without testing more; so do more bytes.
    private static let mostSteps = 64
    private static let mostBytes = 256 * 1_024

    /// A sealed record, and the receiver's state after it and all earlier ones.
    struct Sealed {
        var wire: [UInt8]
        var after: RecordModel
    }

    let keys: RecordKeys
    /// All records in the order of sealing, including those that never arrive.
    private(set) var sealed: [Sealed] = []
    /// Application data of all of them.
    private(set) var plaintext: [UInt8] = []
    /// The bytes that arrive.
    private(set) var bytes: [UInt8] = []
    private var model: RecordModel
    private var sender: SecureChannel
    private var secret: [UInt8]
    private let trace: ((String) -> Void)?

    init(
        _ keys: RecordKeys, _ program: inout ByteProgram, _ ciphers: inout RecordCiphers,
        trace: ((String) -> Void)?
    ) {
        self.keys = keys
        self.trace = trace
        model = keys.model()
        sender = keys.peer()
        secret = keys.peerSecret
        var steps = 0
        while !program.isAtEnd, steps < Self.mostSteps, bytes.count < Self.mostBytes {
            steps += 1
            step(&program, &ciphers)
        }
    }

    private mutating func step(_ program: inout ByteProgram, _ ciphers: inout RecordCiphers) {
        let opcode = program.byte()
        switch opcode & 0x0F {
        case 0, 1: arrive(data(Int(program.byte()), &ciphers), "data")
        case 2: arrive(data(edge(program.byte()), &ciphers), "data at a limit")
        case 3:
            let type = program.byte()
            let content = program.bytes(Int(program.byte() & 0x1F))
            arrive(seal(type, content, &ciphers), "type \(type), \(content)")
        case 4:
            let content = [24, 0, 0, 1, opcode >> 4 & 1]
            arrive(seal(22, content, &ciphers), "KeyUpdate")
        case 5:
            let content: [UInt8] = [24, 0, 0, 1, opcode >> 4 & 1]
            let cut = Int(opcode >> 5) % 4 + 1
            arrive(seal(22, [UInt8](content[..<cut]), &ciphers), "piece of a KeyUpdate")
            arrive(seal(22, [UInt8](content[cut...]), &ciphers), "the rest of it")
        case 6:
            for _ in 0...(opcode >> 4) * 2 { arrive(seal(23, [], &ciphers), "nothing") }
        case 7: _ = data(Int(opcode >> 4), &ciphers)
        case 8:
            guard !sealed.isEmpty else { return }
            arrive(sealed[Int(program.byte()) % sealed.count].wire, "one again")
        case 9: arrive(program.bytes(Int(program.byte() & 0x3F)), "any bytes")
        case 10:
            var wire = data(Int(opcode >> 4), &ciphers)
            let bit = Int(program.byte())
            wire[bit / 8 % wire.count] ^= 1 << UInt8(bit % 8)
            arrive(wire, "a changed bit, \(bit)")
        case 11:
            let wire = data(Int(opcode >> 4), &ciphers)
            arrive([UInt8](wire.prefix(Int(program.byte()) % wire.count)), "one cut short")
        case 12:
            // The sealed type stands after the zeros, where it is padding; the true one is before
            // them.
            let content = pattern(Int(opcode >> 4)) + [23]
            let zeros = [UInt8](repeating: 0, count: edge(program.byte()))
            arrive(seal(0, content + zeros, &ciphers), "padding of \(zeros.count)")
        case 13:
            for _ in 0..<64 { arrive(data(1, &ciphers), "a byte") }
        case 14:
            arrive(seal(21, [opcode >> 4 & 3, program.byte()], &ciphers), "alert")
        default:
            var wire = data(Int(opcode >> 4), &ciphers)
            wire[3] = program.byte()
            arrive(wire, "another length")
        }
    }

    /// Sizes around limits.
    private func edge(_ byte: UInt8) -> Int {
        let limits = [keys.largestFragment, SecureChannel.largestPlaintext]
        var bits = OperandBits(byte)
        return bits.pick(limits) + bits.take(2) - 1
    }

    private mutating func arrive(_ wire: [UInt8], _ what: String) {
        trace?("\(wire.count) bytes: \(what)")
        bytes += wire
    }

    private func pattern(_ count: Int) -> [UInt8] {
        let seed = plaintext.count &* 31 &+ sealed.count
        return (0..<count).map { UInt8(truncatingIfNeeded: seed &+ $0 &* 7) }
    }

    private mutating func data(_ count: Int, _ ciphers: inout RecordCiphers) -> [UInt8] {
        seal(SecureChannel.ContentType.applicationData, pattern(count), &ciphers)
    }

    private mutating func seal(
        _ type: UInt8, _ content: [UInt8], _ ciphers: inout RecordCiphers
    ) -> [UInt8] {
        let wire = sender.sealed(type, content, &ciphers)
        let before = model.plaintextCount
        if model.take(type, content) {
            secret = keys.secret(after: secret)
            sender = keys.peer(with: secret)
        }
        plaintext += content.prefix(model.plaintextCount - before)
        sealed.append(Sealed(wire: wire, after: model))
        return wire
    }
}

extension SecureChannel {
    /// One record of any type.
    mutating func sealed(
        _ type: UInt8, _ content: [UInt8], _ ciphers: inout RecordCiphers
    ) -> [UInt8] {
        var record = [UInt8](repeating: 0, count: content.count + Self.largestOverhead)
        let size = record.withUnsafeMutableBytes { record in
            record[contentOffset...].copyBytes(from: content)
            guard let base = record.baseAddress else { return 0 }
            return seal(type, content.count, in: base, &ciphers)
        }
        return [UInt8](record[..<size])
    }
}
