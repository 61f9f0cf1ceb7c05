import CLinux
import Glibc
import Structures
import SystemFiles

/// One epoll instance (level-triggered), with the events of its last wait.
struct EventSet: ~Copyable {
    /// Never read; see the same in ``Reactor``.
    private let addressOnly: any Sendable = ()

    private let descriptor: OwnedDescriptor
    private let events: UnsafeMutablePointer<epoll_event>
    private let capacity: Int
    /// Events of the last wait.
    private(set) var count = 0

    /// `capacity`: most events of one wait.
    init(capacity: Int) throws(SystemError) {
        let raw = epoll_create1(CInt(EPOLL_CLOEXEC))
        guard raw >= 0 else {
            throw SystemError(call: "epoll_create1", subject: "reactor", code: errno)
        }
        descriptor = OwnedDescriptor(adopting: raw)
        self.capacity = capacity
        events = .allocate(capacity: capacity)
    }

    deinit { events.deallocate() }

    /// The kernel's number of this set, which another set can report.
    var rawDescriptor: CInt { descriptor.rawValue }

    /// True when the last wait may have left events.
    var isFull: Bool { count == capacity }

    /// Waits for events, at most `milliseconds` (-1: without limit); returns 0, or `errno`.
    mutating func wait(milliseconds: CInt) -> CInt {
        let result = epoll_wait(descriptor.rawValue, events, CInt(capacity), milliseconds)
        count = max(0, Int(result))
        return result < 0 ? errno : 0
    }

    /// The owner of an event of the last wait, and its flags.
    func event(_ index: Int) -> (owner: Handle, flags: UInt32) {
        precondition(index < count, "event \(index) of \(count)")
        return (Handle(packed: events[index].data.u64), events[index].events)
    }

    /// Starts reporting a socket's events with the handle `owner`; returns 0, or `errno`.
    func add(_ socket: CInt, _ events: UInt32, owner: Handle) -> CInt {
        control(EPOLL_CTL_ADD, socket, events, owner)
    }

    /// Changes the reported events of a socket; returns 0, or `errno`.
    func change(_ socket: CInt, _ events: UInt32, owner: Handle) -> CInt {
        control(EPOLL_CTL_MOD, socket, events, owner)
    }

    /// Stops reporting a socket that stays open.
    func remove(_ socket: CInt) {
        _ = epoll_ctl(descriptor.rawValue, EPOLL_CTL_DEL, socket, nil)
    }

    private func control(
        _ operation: CInt, _ socket: CInt, _ events: UInt32, _ owner: Handle
    ) -> CInt {
        var event = epoll_event()
        event.events = events
        event.data.u64 = owner.packed
        return epoll_ctl(descriptor.rawValue, operation, socket, &event) == 0 ? 0 : errno
    }
}
