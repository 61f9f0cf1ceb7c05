import CLinux
import Glibc
import Structures
import SystemFiles

/// The epoll instance of one reactor, with the events of its last wait.
///
/// Each event carries a handle of 64 bits. So a late event of a closed connection finds no
/// connection, even if the kernel has reused the descriptor within the batch.
struct Poller: ~Copyable {
    /// Never read; see the same in ``Reactor``.
    private let addressOnly: any Sendable = ()
    private static var eventCapacity: Int { 512 }
    /// The longest wait while the kernel has not taken all that it was told.
    private static var retryMilliseconds: CInt { 100 }

    /// Generation of the reactor's own descriptors; those of connections begin with 1.
    private static var ownGeneration: UInt32 { 0 }
    static var mailbox: Handle { Handle(index: 0, generation: ownGeneration) }
    static func owner(ofListener number: Int) -> Handle {
        Handle(index: UInt32(number) + 1, generation: ownGeneration)
    }

    private let descriptor: OwnedDescriptor
    private let events: UnsafeMutablePointer<epoll_event>
    private var count = 0
    /// What the kernel had no memory to be told, by packed owner; told again before each wait.
    private var untold: [UInt64: (socket: CInt, events: UInt32)] = [:]
    /// Calls that failed because the kernel lacked memory.
    private(set) var shortages: UInt64 = 0

    init() throws(SystemError) {
        let raw = epoll_create1(CInt(EPOLL_CLOEXEC))
        guard raw >= 0 else {
            throw SystemError(call: "epoll_create1", subject: "reactor", code: errno)
        }
        descriptor = OwnedDescriptor(adopting: raw)
        events = .allocate(capacity: Self.eventCapacity)
    }

    deinit { events.deallocate() }

    /// Waits for events, at most `milliseconds` (-1: without limit); returns their number.
    mutating func wait(milliseconds: CInt) throws(SystemError) -> Int {
        var longest = milliseconds
        if !untold.isEmpty {
            tellAgain()
            longest = longest < 0 ? Self.retryMilliseconds : min(longest, Self.retryMilliseconds)
        }
        let result = epoll_wait(descriptor.rawValue, events, CInt(Self.eventCapacity), longest)
        if result < 0 {
            guard errno == EINTR || errno == ENOMEM else {
                throw SystemError(call: "epoll_wait", subject: "reactor", code: errno)
            }
            if errno == ENOMEM { shortages += 1 }
        }
        count = max(0, Int(result))
        return count
    }

    /// An event of the last wait; its connection may be closed by now.
    func event(_ index: Int) -> Reactor.Event {
        precondition(index < count, "event \(index) of \(count)")
        let owner = Handle(packed: events[index].data.u64)
        guard owner.generation != Self.ownGeneration else {
            return owner == Self.mailbox
                ? .mailbox : .acceptable(listener: Int(owner.index) - 1)
        }
        let flags = events[index].events
        let isHungUp = flags & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
        let hasEnded = flags & EPOLLRDHUP.rawValue != 0
        return .connection(
            owner, isReadable: isHungUp || hasEnded || flags & EPOLLIN.rawValue != 0,
            isWritable: flags & EPOLLOUT.rawValue != 0, isHungUp: isHungUp, hasEnded: hasEnded)
    }

    /// Starts reporting a socket's events with the handle `owner`.
    func add(
        _ socket: CInt, _ events: UInt32, owner: Handle, _ subject: String
    ) throws(SystemError) {
        guard control(EPOLL_CTL_ADD, socket, events, owner) == 0 else {
            throw SystemError(call: "epoll_ctl", subject: subject, code: errno)
        }
    }

    /// Changes the reported events of a socket; later, if the kernel lacks memory now. Otherwise a
    /// connection would wait for an event that nobody has asked for.
    mutating func change(_ socket: CInt, _ events: UInt32, owner: Handle) {
        if control(EPOLL_CTL_MOD, socket, events, owner) == 0 {
            forget(owner)
        } else if errno == ENOMEM {
            shortages += 1
            untold[owner.packed] = (socket, events)
        }
    }

    /// Called before the owner's socket closes, whose number the kernel gives to others.
    mutating func forget(_ owner: Handle) {
        if !untold.isEmpty { untold[owner.packed] = nil }
    }

    private mutating func tellAgain() {
        for (owner, change) in untold {
            self.change(change.socket, change.events, owner: Handle(packed: owner))
        }
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
        return epoll_ctl(descriptor.rawValue, operation, socket, &event)
    }
}
