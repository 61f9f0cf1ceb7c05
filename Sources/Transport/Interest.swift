import CLinux

/// The events that the kernel reports for the socket of a connection.
struct Interest: Equatable, BitwiseCopyable {
    enum Reading: BitwiseCopyable {
        case on, off
        /// Nothing is read; an event comes when the peer ends its direction.
        case offUntilEnd
    }

    var reading = Reading.on
    var awaitsWritable = false
    /// The kernel reports one event, and then nothing until it is asked again: during a handshake.
    var isOneShot: Bool

    init(isOneShot: Bool) { self.isOneShot = isOneShot }

    /// As epoll takes them.
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
