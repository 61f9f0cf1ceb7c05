import BrokerCore

/// Requests for a full check that wait. The addresses that they come from take turns, and when it is
/// full the one that has most waiting gives way, so that whoever guesses passwords delays nobody else
/// by more than a check or two.
///
/// Requests of origin 0 count as those of one address, which never gives way: it stands for clients
/// that have no address of their own.
struct PasswordQueue {
    /// Requests that may wait; at some 20 ms each, later ones would outlast the CONNECT deadline.
    static let capacity = 512

    /// By origin, each with at least one.
    private var lines: [UInt32: [AuthenticationRequest]] = [:]
    /// Origins in turn, each once.
    private var turns: [UInt32] = []
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// Adds a request; returns the one that has no place, which may be another. `nil` when all have.
    mutating func append(_ request: AuthenticationRequest) -> AuthenticationRequest? {
        guard count == Self.capacity else {
            place(request)
            return nil
        }
        let own = lines[request.origin]?.count ?? 0
        let others = lines.lazy.filter { $0.key != 0 }
        guard let longest = others.max(by: { $0.value.count < $1.value.count }),
            longest.value.count > own + 1,
            let displaced = lines[longest.key]?.popLast()
        else { return request }
        count -= 1
        place(request)
        return displaced
    }

    /// Takes the oldest request of the origin whose turn it is; `nil` when none waits.
    mutating func removeFirst() -> AuthenticationRequest? {
        guard !turns.isEmpty else { return nil }
        let origin = turns.removeFirst()
        guard var line = lines.removeValue(forKey: origin) else {
            preconditionFailure("origin \(origin) has a turn and no request")
        }
        let request = line.removeFirst()
        count -= 1
        if !line.isEmpty {
            lines[origin] = line
            turns.append(origin)
        }
        return request
    }

    private mutating func place(_ request: AuthenticationRequest) {
        if lines[request.origin] == nil { turns.append(request.origin) }
        lines[request.origin, default: []].append(request)
        count += 1
    }
}
