import Glibc

/// A numeric IPv4 or IPv6 address; different spellings of one address are equal.
struct NetworkAddress: Hashable, Sendable {
    /// Network byte order: 4 bytes for IPv4, 16 for IPv6.
    private var bytes: [UInt8]

    /// Parses `127.0.0.1`, `::1`, or `localhost`, which means 127.0.0.1.
    ///
    /// `nil` for anything else: host names, zones (`fe80::1%eth0`), brackets and ports.
    init?(_ text: String) {
        // inet_pton would stop at a NUL and accept the text before it.
        guard !text.utf8.contains(0) else { return nil }
        guard
            let parsed = Self.parse(text == "localhost" ? "127.0.0.1" : text, AF_INET, 4)
                ?? Self.parse(text, AF_INET6, 16)
        else {
            return nil
        }
        bytes = parsed
    }

    /// True for 127.0.0.0/8, `::1`, and 127.0.0.0/8 mapped into IPv6.
    var isLoopback: Bool {
        if bytes.count == 4 { return bytes[0] == 127 }
        let zeros = [UInt8](repeating: 0, count: 10)
        return bytes == zeros + [0, 0, 0, 0, 0, 1]
            || (bytes.starts(with: zeros + [0xFF, 0xFF]) && bytes[12] == 127)
    }

    /// True when two sockets cannot share a port: equal addresses, or the family's wildcard.
    func overlaps(_ other: Self) -> Bool {
        bytes.count == other.bytes.count && (bytes == other.bytes || isAny || other.isAny)
    }

    /// `0.0.0.0` or `::`.
    private var isAny: Bool { bytes.allSatisfy { $0 == 0 } }

    /// 32 for IPv4, 128 for IPv6.
    var bitCount: Int { bytes.count * 8 }

    /// The address with all but the first `count` bits cleared.
    func prefix(_ count: Int) -> Self {
        var prefix = self
        for index in bytes.indices {
            let kept = min(max(count - index * 8, 0), 8)
            prefix.bytes[index] &= ~(UInt8.max >> kept)
        }
        return prefix
    }

    var text: String {
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        inet_ntop(
            bytes.count == 4 ? AF_INET : AF_INET6, bytes, &buffer, socklen_t(buffer.count))
        return String(
            decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static func parse(_ text: String, _ family: CInt, _ size: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: size)
        return inet_pton(family, text, &bytes) == 1 ? bytes : nil
    }
}

extension HermesConfiguration.Listener {
    /// True for `localhost`, 127.0.0.0/8 and `::1`.
    package var isLoopback: Bool {
        NetworkAddress(address)?.isLoopback ?? false
    }

}

extension HermesConfiguration {
    /// True when a CONNECT without a user name is accepted. `listeners[].allow_anonymous` decides;
    /// if unset, only loopback listeners without users and proxies accept it.
    package func allowsAnonymous(on listener: Listener) -> Bool {
        listener.allowAnonymous
            ?? (listener.isLoopback && listener.proxyFrom.isEmpty && passwordFile == nil)
    }
}
