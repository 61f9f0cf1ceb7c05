import BrokerAPI
import FoundationEssentials
import Glibc

/// A system call of the test failed.
struct SocketError: Error {
    var call: String
    var code: Int32 = errno
}

/// An HTTP response as received.
struct RawResponse {
    var status: Int
    var headers: [(name: String, value: String)]
    var body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }

    /// The value of a header that must occur at most once.
    subscript(name: String) -> String? {
        let values = headers.filter { $0.name.lowercased() == name.lowercased() }
        return values.count == 1 ? values[0].value : nil
    }

    func json<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(type, from: Data(body))
    }

    /// The problem document; its status and media type must match the response.
    func problem() throws -> ProblemModel {
        guard self["Content-Type"] == ProblemModel.contentType else {
            throw SocketError(call: "no problem document: \(status) \(headers) \(text)", code: 0)
        }
        guard text.last == "\n" else { throw SocketError(call: "no line feed: \(text)", code: 0) }
        let problem = try json(ProblemModel.self)
        guard problem.fix.last == "." || problem.fix.contains("hermesctl") else {
            throw SocketError(call: "no cure: \(text)", code: 0)
        }
        guard problem.status == status else {
            throw SocketError(call: "status \(status) with a problem of \(problem.status)", code: 0)
        }
        return problem
    }
}

/// A blocking client socket for tests that control every byte. Waits at most 20 s for each.
final class RawConnection {
    private let descriptor: CInt
    private var received: [UInt8] = []

    init(port: UInt16, receiveBufferBytes: CInt? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if descriptor < 0 { throw SocketError(call: "socket") }
        if var size = receiveBufferBytes {
            setsockopt(
                descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        try connect(&address)
    }

    init(unixPath: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        if descriptor < 0 { throw SocketError(call: "socket") }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: unixPath.utf8) }
        try connect(&address)
    }

    deinit { close(descriptor) }

    private func connect<Address>(_ address: inout Address) throws {
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<Address>.size))
            }
        }
        if result != 0 { throw SocketError(call: "connect") }
    }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0 { throw SocketError(call: "send") }
            sent += count
        }
    }

    /// Ends the sending direction; answers can still arrive.
    func finishSending() {
        shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Ends the connection with a reset.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    /// All bytes until the server closes.
    func readToEnd() throws -> [UInt8] {
        while try readMore() {}
        defer { received = [] }
        return received
    }

    /// The next response, including informational ones.
    func readResponse(toHead: Bool = false) throws -> RawResponse {
        var response = try readHead()
        if toHead || response.status < 200 { return response }
        response.body = try readBody(of: response)
        return response
    }

    /// The head of the next response; its body follows.
    func readHead() throws -> RawResponse {
        var headEnd: Int?
        while headEnd == nil {
            headEnd = received.indices.dropLast(3).first {
                received[$0...].starts(with: Array("\r\n\r\n".utf8))
            }
            if headEnd == nil, try !readMore() {
                throw SocketError(call: "end before a head", code: 0)
            }
        }
        guard let headEnd else { throw SocketError(call: "no head", code: 0) }
        let lines = String(decoding: received[..<headEnd], as: UTF8.self).split(separator: "\r\n")
        received.removeFirst(headEnd + 4)
        let headers = lines.dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            return (name: String(parts[0]), value: String(parts[1].drop { $0 == " " }))
        }
        let status = Int(lines[0].split(separator: " ")[1]) ?? 0
        return RawResponse(status: status, headers: headers, body: [])
    }

    /// The body of a response.
    func readBody(of head: RawResponse) throws -> [UInt8] {
        let length = head["Content-Length"].flatMap { Int($0) } ?? 0
        while received.count < length {
            if try !readMore() {
                throw SocketError(call: "end at byte \(received.count) of \(length)", code: 0)
            }
        }
        defer { received.removeFirst(length) }
        return Array(received.prefix(length))
    }

    /// The text up to the next CR LF, which is taken too.
    func readLine() throws -> String {
        while true {
            if let end = received.firstIndex(of: 0x0A) {
                defer { received.removeSubrange(...end) }
                return String(decoding: received[..<end].dropLast(), as: UTF8.self)
            }
            if try !readMore() { throw SocketError(call: "end before a line", code: 0) }
        }
    }

    /// Exactly so many bytes.
    func read(_ count: Int) throws -> [UInt8] {
        while received.count < count {
            if try !readMore() { throw SocketError(call: "end before \(count) bytes", code: 0) }
        }
        defer { received.removeFirst(count) }
        return Array(received.prefix(count))
    }

    /// True when the server closes without further bytes.
    func isClosedByServer() throws -> Bool {
        try received.isEmpty && !readMore()
    }

    private func readMore() throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count < 0 {
            if errno == ECONNRESET { return false }
            throw SocketError(call: "recv")
        }
        received += buffer[..<count]
        return count > 0
    }
}
