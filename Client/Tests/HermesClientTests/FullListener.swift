#if os(Linux)
    import Foundation
    import Glibc

    /// Listens on loopback and takes no connection: once its backlog is full, new ones stay
    /// half-open, as behind a firewall that drops what it does not like.
    final class FullListener {
        let port: Int
        private var descriptors: [CInt] = []

        init() throws {
            let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
            descriptors.append(listener)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
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
                _ = withUnsafePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        connect(filler, $0, length)
                    }
                }
            }
        }

        deinit { for descriptor in descriptors { close(descriptor) } }

        /// Sockets of this machine that wait for an answer from here (SYN-SENT).
        func connecting() throws -> Int {
            let peer = "0100007F:" + String(format: "%04X", port)
            let table = try String(contentsOfFile: "/proc/self/net/tcp", encoding: .utf8)
            return table.split(separator: "\n").count { line in
                let words = line.split(separator: " ")
                return words.count > 3 && words[2] == peer && words[3] == "02"
            }
        }
    }
#endif
