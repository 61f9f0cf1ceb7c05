import Testing

@testable import Transport

/// A stream of a client's frames, and what it holds.
struct FrameCase: Sendable, CustomTestStringConvertible {
    enum End: Hashable, Sendable {
        case open
        case close(UInt16)
        case flaw(WebSocketFlaw)
    }

    struct Outcome: Hashable, Sendable {
        var data: [UInt8] = []
        var lastPing: [UInt8]?
        var end = End.open
    }

    /// The bound on a frame's payload for all cases.
    static let mostPayload = 100_000

    let name: String
    let bytes: [UInt8]
    let outcome: Outcome

    var testDescription: String { name }

    init(
        _ name: String, _ frames: [UInt8]..., data: [UInt8] = [], ping: [UInt8]? = nil,
        end: End = .open
    ) {
        self.name = name
        bytes = frames.flatMap { $0 }
        outcome = Outcome(data: data, lastPing: ping, end: end)
    }

    static let all =
        sizes + masks + messages + controls + forbidden + lengths + closes + brokenCloses

    private static let sizes: [FrameCase] = [
        0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 125, 126, 127, 255, 256, 65_535, 65_536, 65_537,
        100_000,
    ].map { FrameCase("binary, \($0) bytes", clientFrame(.binary, pattern($0)), data: pattern($0)) }

    private static let masks: [FrameCase] = [
        [0, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF], [1, 0, 0, 0], [0, 0, 0, 1],
        [0x80, 0x40, 0x20, 0x10],
    ].map { mask in
        FrameCase(
            "mask \(mask)", clientFrame(.binary, pattern(37), mask: mask),
            clientFrame(.binary, pattern(9)), data: pattern(37) + pattern(9))
    }

    private static let messages = [
        FrameCase("nothing"),
        FrameCase("half a header", [0x82]),
        FrameCase("a header without its mask", [0x82, 0x85, 1, 2, 3]),
        FrameCase(
            "two frames", clientFrame(.binary, [1]), clientFrame(.binary, [2, 3]), data: [1, 2, 3]),
        FrameCase(
            "a frame whose end is missing", clientFrame(.binary, pattern(50)).dropLast(20),
            data: Array(pattern(50).dropLast(20))),
        FrameCase(
            "two fragments", clientFrame(.binary, [1], isFinal: false),
            clientFrame(.continuation, [2]), data: [1, 2]),
        FrameCase(
            "four fragments", clientFrame(.binary, [1], isFinal: false),
            clientFrame(.continuation, [2], isFinal: false),
            clientFrame(.continuation, pattern(300), isFinal: false),
            clientFrame(.continuation, [4]), data: [1, 2] + pattern(300) + [4]),
        FrameCase(
            "an empty first fragment", clientFrame(.binary, isFinal: false),
            clientFrame(.continuation, [5]), data: [5]),
        FrameCase(
            "an empty last fragment", clientFrame(.binary, [5], isFinal: false),
            clientFrame(.continuation), data: [5]),
        FrameCase(
            "a message behind a fragmented one", clientFrame(.binary, [1], isFinal: false),
            clientFrame(.continuation, [2]), clientFrame(.binary, [3]), data: [1, 2, 3]),
        FrameCase(
            "fragments with a ping between them", clientFrame(.binary, [1], isFinal: false),
            clientFrame(.ping, [7, 7]), clientFrame(.continuation, [2]), data: [1, 2], ping: [7, 7]),
        FrameCase(
            "fragments with a pong between them", clientFrame(.binary, [1], isFinal: false),
            clientFrame(.pong, [7]), clientFrame(.continuation, [2]), data: [1, 2]),
        FrameCase(
            "a close frame between fragments", clientFrame(.binary, [1], isFinal: false),
            clientFrame(.close, closing(1_000)), data: [1], end: .close(1_000)),
    ]

    private static let controls = [
        FrameCase("an empty ping", clientFrame(.ping), ping: []),
        FrameCase("a ping of one byte", clientFrame(.ping, [9]), ping: [9]),
        FrameCase("a ping of 125 bytes", clientFrame(.ping, pattern(125)), ping: pattern(125)),
        FrameCase(
            "a ping without its last byte", clientFrame(.ping, pattern(125)).dropLast()),
        FrameCase(
            "two pings, of which the last counts", clientFrame(.ping, [1]), clientFrame(.ping, [2]),
            ping: [2]),
        FrameCase(
            "a ping between data", clientFrame(.binary, pattern(200)),
            clientFrame(.ping, pattern(90)),
            clientFrame(.binary, pattern(300)), data: pattern(200) + pattern(300), ping: pattern(90)
        ),
        FrameCase("an empty pong", clientFrame(.pong)),
        FrameCase("a pong of 125 bytes", clientFrame(.pong, pattern(125))),
    ]

    private static let forbidden: [FrameCase] =
        (1...7).map { bits in
            FrameCase(
                "reserved bits \(bits)", clientFrame(.binary, [1], reserved: UInt8(bits)),
                end: .flaw(.reservedBits))
        }
        + ([3, 4, 5, 6, 7, 11, 12, 13, 14, 15] as [AnyOpcode]).map { opcode in
            FrameCase(
                "opcode \(opcode)", clientFrame(opcode, [1]), end: .flaw(.reservedOpcode))
        }
        + ([.continuation, .text, .binary, .close, .ping, .pong] as [AnyOpcode]).map { opcode in
            FrameCase(
                "opcode \(opcode) without a mask", clientFrame(opcode, [1, 2, 3], mask: []),
                end: .flaw(.unmasked))
        }
        + ([.close, .ping, .pong] as [AnyOpcode]).flatMap { opcode in
            [
                FrameCase(
                    "opcode \(opcode) in fragments", clientFrame(opcode, [3, 232], isFinal: false),
                    end: .flaw(.fragmentedControl)),
                FrameCase(
                    "opcode \(opcode) of 126 bytes", clientFrame(opcode, pattern(126)),
                    end: .flaw(.longControl)),
                FrameCase(
                    "opcode \(opcode) of 70,000 bytes", clientFrame(opcode, pattern(70_000)),
                    end: .flaw(.longControl)),
                FrameCase(
                    "opcode \(opcode) with a long form of its length",
                    clientFrame(opcode, [1], form: .sixteen), end: .flaw(.longControl)),
                FrameCase(
                    "opcode \(opcode) with reserved bits", clientFrame(opcode, [], reserved: 4),
                    end: .flaw(.reservedBits)),
            ]
        } + [
            FrameCase("text", clientFrame(.text, [0x61]), end: .flaw(.textFrame)),
            FrameCase("empty text", clientFrame(.text), end: .flaw(.textFrame)),
            FrameCase(
                "text in fragments", clientFrame(.text, [0x61], isFinal: false),
                end: .flaw(.textFrame)),
            FrameCase(
                "text behind data", clientFrame(.binary, [1, 2]), clientFrame(.text, [0x61]),
                data: [1, 2], end: .flaw(.textFrame)),
            FrameCase(
                "text between fragments", clientFrame(.binary, [1], isFinal: false),
                clientFrame(.text, [2]), data: [1], end: .flaw(.textFrame)),
            FrameCase(
                "a continuation of nothing", clientFrame(.continuation, [1]),
                end: .flaw(.continuation)),
            FrameCase(
                "an unfinished continuation of nothing",
                clientFrame(.continuation, [1], isFinal: false), end: .flaw(.continuation)),
            FrameCase(
                "a continuation behind a whole message", clientFrame(.binary, [1]),
                clientFrame(.continuation, [2]), data: [1], end: .flaw(.continuation)),
            FrameCase(
                "a continuation behind the last fragment",
                clientFrame(.binary, [1], isFinal: false),
                clientFrame(.continuation, [2]), clientFrame(.continuation, [3]), data: [1, 2],
                end: .flaw(.continuation)),
            FrameCase(
                "a continuation behind a ping", clientFrame(.ping, [1]),
                clientFrame(.continuation, [2]), ping: [1], end: .flaw(.continuation)),
            FrameCase(
                "a message between fragments", clientFrame(.binary, [1], isFinal: false),
                clientFrame(.binary, [2]), data: [1], end: .flaw(.interruptedMessage)),
            FrameCase(
                "a fragmented message between fragments", clientFrame(.binary, [1], isFinal: false),
                clientFrame(.binary, [2], isFinal: false), data: [1],
                end: .flaw(.interruptedMessage)),
            FrameCase(
                "CONNECT without a frame", [0x10, 0x0C, 0x00, 0x04], end: .flaw(.reservedBits)),
        ]

    private static let lengths: [FrameCase] =
        [0, 1, 124, 125].map { size in
            FrameCase(
                "\(size) bytes in the form for 126 and more",
                clientFrame(.binary, pattern(size), form: .sixteen), end: .flaw(.longLengthForm))
        }
        + [0, 125, 126, 65_535].map { size in
            FrameCase(
                "\(size) bytes in the form for 65,536 and more",
                clientFrame(.binary, pattern(size), form: .sixtyFour), end: .flaw(.longLengthForm))
        }
        + ([100_001, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 62, 1 << 63, .max] as [UInt64]).map {
            FrameCase(
                "an announced length of \($0)", clientFrame(.binary, [1], length: $0),
                end: .flaw(.frameTooLong))
        }
        + [
            FrameCase(
                "a continuation that is too long", clientFrame(.binary, [1], isFinal: false),
                clientFrame(.continuation, [], length: 100_001), data: [1],
                end: .flaw(.frameTooLong))
        ]

    private static let closes: [FrameCase] =
        ([1_000, 1_001, 1_002, 1_003, 1_007, 1_010, 1_011, 1_014, 3_000, 4_000, 4_999] as [UInt16])
        .map { code in
            FrameCase("close \(code)", clientFrame(.close, closing(code)), end: .close(code))
        } + [
            FrameCase("close without a code", clientFrame(.close), end: .close(1_005)),
            FrameCase(
                "close with a reason", clientFrame(.close, closing(1_000, Array("gone".utf8))),
                end: .close(1_000)),
            FrameCase(
                "close with a reason beyond ASCII",
                clientFrame(.close, closing(1_000, Array("schluß 🎉".utf8))), end: .close(1_000)),
            FrameCase(
                "close with a reason of 123 bytes",
                clientFrame(.close, closing(1_000, [UInt8](repeating: 0x61, count: 123))),
                end: .close(1_000)),
            FrameCase(
                "nothing counts behind close", clientFrame(.binary, [1]),
                clientFrame(.close, closing(1_000)), clientFrame(.binary, [2]), [0xFF, 0xFF],
                data: [1], end: .close(1_000)),
        ]

    private static let brokenCloses: [FrameCase] =
        ([0, 1, 999, 1_004, 1_005, 1_006, 1_015, 1_016, 1_100, 2_000, 2_999, 5_000, 65_535]
        as [UInt16])
        .map { code in
            FrameCase(
                "close \(code), which nobody may send", clientFrame(.close, closing(code)),
                end: .flaw(.closePayload))
        } + [
            FrameCase(
                "close with half a code", clientFrame(.close, [3]), end: .flaw(.closePayload)),
            FrameCase(
                "a reason that begins in the middle of a character",
                clientFrame(.close, closing(1_000, [0x80])), end: .flaw(.closeReason)),
            FrameCase(
                "a reason that ends in the middle of a character",
                clientFrame(.close, closing(1_000, [0x61, 0xC3])), end: .flaw(.closeReason)),
            FrameCase(
                "a reason in an overlong form", clientFrame(.close, closing(1_000, [0xC0, 0xAF])),
                end: .flaw(.closeReason)),
            FrameCase(
                "a reason with half of a surrogate pair",
                clientFrame(.close, closing(1_000, [0xED, 0xA0, 0x80])), end: .flaw(.closeReason)),
        ]
}
