import Glibc

/// A system call failed for a reason outside the program, such as a full disk.
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

/// Repeats a call interrupted by a signal; on failure returns -1, with `errno` as second value.
@inline(__always)
func retrying(_ call: () -> Int) -> (result: Int, code: CInt) {
    while true {
        let result = call()
        if result >= 0 { return (result, 0) }
        let code = errno
        // These errors are bugs: continuing could affect another descriptor.
        precondition(code != EBADF && code != EFAULT, "system call on a bad descriptor or address")
        if code != EINTR { return (result, code) }
    }
}
