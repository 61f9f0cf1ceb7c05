#if os(Linux)
    import Foundation
    import Glibc

    /// Listens on loopback and takes no connection: once its backlog is full, new ones stay
    /// half-open, as behind a firewall that drops what it does not like.
    final class FullListener {
        /// An address of its own, since clients of other tests may still try a port that was freed.
        let host: String
        let port: Int
        private let address: UInt32
        private var descriptors: [CInt] = []
        /// The ports of the connections that fill the backlog.
        private var fillers: Set<UInt16> = []

        init() throws {
            let number: UInt32 = 0x7F00_0000 | .random(in: 0x1_0000...0xFE_FFFE)
            host = [24, 16, 8, 0].map { "\(number >> $0 & 0xFF)" }.joined(separator: ".")
            self.address = number
            let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
            descriptors.append(listener)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = number.bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isListening = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    bind(listener, address, length) == 0 && listen(listener, 0) == 0
                        && getsockname(listener, address, &length) == 0
                }
            }
            guard isListening else { throw TestBroker.Failure(reason: "nothing listens") }
            port = Int(UInt16(bigEndian: address.sin_port))
            for _ in 0..<3 {
                let flags = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue
                let filler = socket(AF_INET, CInt(flags), 0)
                descriptors.append(filler)
                var own = sockaddr_in()
                _ = withUnsafePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        connect(filler, $0, length)
                    }
                }
                _ = withUnsafeMutablePointer(to: &own) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        getsockname(filler, $0, &length)
                    }
                }
                fillers.insert(UInt16(bigEndian: own.sin_port))
            }
        }

        /// The kernel's table, which has no size to read by and comes in pieces.
        private static func table() throws -> String {
            let descriptor = open("/proc/self/net/tcp", O_RDONLY)
            guard descriptor >= 0 else { throw TestBroker.Failure(reason: "no table of sockets") }
            defer { close(descriptor) }
            var bytes: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 65_536)
            while case let count = read(descriptor, &piece, piece.count), count > 0 {
                bytes += piece[..<count]
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        deinit { for descriptor in descriptors { close(descriptor) } }

        /// Sockets of this machine that wait for an answer from here (SYN-SENT), without those that
        /// fill the backlog.
        func connecting() throws -> Int {
            let peer = String(format: "%08X:%04X", address.byteSwapped, port)
            return try Self.table().split(separator: "\n").count { line in
                let words = line.split(separator: " ")
                guard words.count > 3, words[2] == peer, words[3] == "02" else { return false }
                return UInt16(words[1].suffix(4), radix: 16).map { !fillers.contains($0) } ?? false
            }
        }
    }
#endif
