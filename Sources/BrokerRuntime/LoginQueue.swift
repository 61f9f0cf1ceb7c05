import BrokerCore
import BrokerFeatures

/// Waiting requests for a full check. Their addresses take turns; when the queue is full, the address
/// with the most requests loses one. So a client that guesses passwords delays others by one or two
/// checks only.
///
/// Origin 0, for clients without an address of their own, never loses a request.
struct LoginQueue {
    /// Longest queue of passwords; at about 20 ms each, further requests would miss the CONNECT
    /// deadline.
    static let mostPasswords = 512
    /// Longest queue of tokens, of up to 8 KiB each: what is verified within a second.
    static let mostTokens = 4_096

    /// The most requests that wait.
    let capacity: Int

    /// Requests by origin; no list is empty.
    private var lines: [UInt32: [AuthenticationRequest]] = [:]
    /// Origins in the order of service, each once.
    private var turns: [UInt32] = []
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    init(capacity: Int) { self.capacity = capacity }

    /// Adds a request; returns the one that must leave, if any, which may be another.
    mutating func append(_ request: AuthenticationRequest) -> AuthenticationRequest? {
        guard count == capacity else {
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

    /// Takes the oldest request of the next origin; `nil` when none waits.
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
