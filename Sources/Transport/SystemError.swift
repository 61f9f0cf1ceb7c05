import Glibc

/// A system call that failed for a reason outside the program, as a full disk or a lost peer.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The call, such as "bind".
    public let call: String
    /// The object of the call, such as "127.0.0.1:1883".
    public let subject: String
    /// The value of `errno`.
    public let code: CInt

    public init(call: String, subject: String, code: CInt) {
        self.call = call
        self.subject = subject
        self.code = code
    }

    public var description: String {
        "\(call) \(subject): \(String(cString: strerror(code)))"
    }
}

/// Repeats a call that a signal interrupted; returns -1 with `errno` in the second value otherwise.
@inline(__always)
func retrying(_ call: () -> Int) -> (result: Int, code: CInt) {
    while true {
        let result = call()
        if result >= 0 { return (result, 0) }
        let code = errno
        // A bad descriptor or address is a mistake in the program: going on could act on another's.
        precondition(code != EBADF && code != EFAULT, "system call on a bad descriptor or address")
        if code != EINTR { return (result, code) }
    }
}
