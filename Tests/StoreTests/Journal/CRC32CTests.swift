import CChecksum
import Glibc
import HermesTesting
import Testing

@Suite("CRC32C")
struct CRC32CTests {
    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        bytes.withUnsafeBytes { hermes_crc32c(0, $0.baseAddress, $0.count) }
    }

    private static func portable(_ bytes: ArraySlice<UInt8>, from start: UInt32 = 0) -> UInt32 {
        bytes.withUnsafeBytes { hermes_crc32c_portable(start, $0.baseAddress, $0.count) }
    }

    @Test(
        "has the values of RFC 3720, appendix B.4, and the common check value",
        arguments: [
            ([], 0),
            ([UInt8]("123456789".utf8), 0xE306_9283),
            ([UInt8](repeating: 0, count: 32), 0x8A91_36AA),
            ([UInt8](repeating: 0xFF, count: 32), 0x62A8_AB43),
            ([UInt8](0...31), 0x46DD_794E),
            ([UInt8]((0...31).reversed()), 0x113F_DB5C),
        ] as [([UInt8], UInt32)])
    func knownValues(bytes: [UInt8], expected: UInt32) {
        #expect(Self.checksum(bytes) == expected)
        #expect(Self.portable(bytes[...]) == expected)
    }

    @Test("is the same by instruction and by table, for all lengths and alignments")
    func bothWays() {
        var generator = SplitMix64(seed: 1)
        let bytes = generator.bytes(400)
        for start in 0..<16 {
            for end in start..<bytes.count {
                let slice = bytes[start..<end]
                let byInstruction = slice.withUnsafeBytes {
                    hermes_crc32c(7, $0.baseAddress, $0.count)
                }
                guard byInstruction == Self.portable(slice, from: 7) else {
                    Issue.record("bytes \(start) to \(end) differ")
                    return
                }
            }
        }
    }

    @Test("continues over a run that was cut anywhere")
    func continues() {
        var generator = SplitMix64(seed: 2)
        let bytes = generator.bytes(100)
        let whole = Self.checksum(bytes)
        for cut in 0...bytes.count {
            let first = Self.checksum([UInt8](bytes[..<cut]))
            let both = bytes[cut...].withUnsafeBytes {
                hermes_crc32c(first, $0.baseAddress, $0.count)
            }
            #expect(both == whole)
        }
    }

    #if arch(x86_64)
        @Test("uses the instruction where the processor has it")
        func accelerated() throws {
            var flags = ""
            let file = try #require(fopen("/proc/cpuinfo", "r"))
            defer { fclose(file) }
            var line = [CChar](repeating: 0, count: 8_192)
            while let start = fgets(&line, CInt(line.count), file) {
                let text = String(cString: start)
                if text.hasPrefix("flags") {
                    flags = text
                    break
                }
            }
            #expect((hermes_crc32c_is_accelerated() == 1) == flags.contains(" sse4_2 "))
        }
    #endif
}
