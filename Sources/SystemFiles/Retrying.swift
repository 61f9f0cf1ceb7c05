import Glibc

/// Repeats a system call until no signal interrupts it.
///
/// A bad descriptor or address traps, because it is our own mistake: going on would act on somebody
/// else's.
/// - Parameters:
///   - mayBeClosed: the descriptor was given to this process, as standard input is, and may be bad.
///   - call: makes the call; a negative result says that it failed.
/// - Returns: the result, and the value of `errno` if the result is negative, or else 0.
@inlinable
@inline(__always)
public func retrying(
    mayBeClosed: Bool = false, _ call: () -> Int
) -> (result: Int, code: CInt) {
    while true {
        let result = call()
        if result >= 0 { return (result, 0) }
        let code = errno
        precondition(
            (code != EBADF || mayBeClosed) && code != EFAULT,
            "system call on a bad descriptor or address")
        if code != EINTR { return (result, code) }
    }
}
