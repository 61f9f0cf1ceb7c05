import Addresses

/// The client addresses from PROXY headers, by connection.
struct ProxiedAddresses {
    /// Takes 24 bytes per connection, up to the highest index of a proxied one;
    /// ``IPAddress/unknown`` for all others.
    private var addresses: [IPAddress] = []

    /// The address for the connection at `index`; `nil` without one.
    subscript(index: UInt32) -> IPAddress? {
        guard Int(index) < addresses.count, addresses[Int(index)].family != .unknown else {
            return nil
        }
        return addresses[Int(index)]
    }

    mutating func set(_ address: IPAddress, at index: UInt32) {
        let missing = Int(index) + 1 - addresses.count
        if missing > 0 {
            addresses.append(contentsOf: repeatElement(.unknown, count: missing))
        }
        addresses[Int(index)] = address
    }

    mutating func remove(_ index: UInt32) {
        if Int(index) < addresses.count { addresses[Int(index)] = .unknown }
    }
}
