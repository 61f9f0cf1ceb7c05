import Glibc

/// The addresses of a host, as the system's resolver knows them.
struct HostAddresses: Sendable {
    struct Address: Sendable {
        let family: CInt
        /// A `sockaddr` with its port.
        let bytes: [UInt8]
    }

    var addresses: [Address]
    /// Why there are none; `nil` with addresses.
    var failure: String?

    /// Asks the resolver, which may take many seconds; it asks nobody with `isNumericOnly`.
    init(_ endpoint: ServiceEndpoint, isNumericOnly: Bool = false) {
        var hints = addrinfo()
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICSERV | (isNumericOnly ? AI_NUMERICHOST : AI_ADDRCONFIG)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(endpoint.host, "\(endpoint.port)", &hints, &list)
        defer { if let list { freeaddrinfo(list) } }
        addresses = []
        var next = code == 0 ? list : nil
        while let entry = next?.pointee {
            if let address = entry.ai_addr {
                addresses.append(
                    Address(
                        family: entry.ai_family,
                        bytes: [UInt8](
                            UnsafeRawBufferPointer(start: address, count: Int(entry.ai_addrlen)))))
            }
            next = entry.ai_next
        }
        failure =
            addresses.isEmpty
            ? "the address of the host is not found (\(String(cString: gai_strerror(code))))" : nil
    }
}
