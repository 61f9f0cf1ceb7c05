import CLinux

/// The events that the kernel reports for a connection's socket.
struct Interest: Equatable, BitwiseCopyable {
    enum Reading: BitwiseCopyable {
        case on, off
        /// Only the end of the peer's direction is reported.
        case offUntilEnd
    }

    var reading = Reading.on
    var awaitsWritable = false
    /// True during a handshake: the kernel reports one event, then nothing until asked again.
    var isOneShot: Bool

    init(isOneShot: Bool) { self.isOneShot = isOneShot }

    /// The event mask for epoll.
    var events: UInt32 {
        let input =
            switch reading {
            case .on: EPOLLIN.rawValue
            case .off: UInt32(0)
            case .offUntilEnd: EPOLLRDHUP.rawValue
            }
        return input | (awaitsWritable ? EPOLLOUT.rawValue : 0)
            | (isOneShot ? EPOLLONESHOT.rawValue : 0)
    }
}
