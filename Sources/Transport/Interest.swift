import CLinux

/// The events that the kernel reports for a connection's socket.
struct Interest: OptionSet, BitwiseCopyable {
    let rawValue: UInt8

    /// Bytes of the peer.
    static var input: Interest { Interest(rawValue: 1) }
    /// The end of the peer's direction.
    static var end: Interest { Interest(rawValue: 2) }
    /// Room for output.
    static var room: Interest { Interest(rawValue: 4) }
    /// During a handshake, or for a failed socket: one event, then nothing until asked again.
    static var once: Interest { Interest(rawValue: 8) }
    /// No event: the socket is among those of newcomers. See ``Poller``.
    static var newcomer: Interest { Interest(rawValue: 16) }

    /// The event mask for epoll.
    var events: UInt32 {
        (contains(.input) ? EPOLLIN.rawValue : 0) | (contains(.end) ? EPOLLRDHUP.rawValue : 0)
            | (contains(.room) ? EPOLLOUT.rawValue : 0)
            | (contains(.once) ? EPOLLONESHOT.rawValue : 0)
    }
}
