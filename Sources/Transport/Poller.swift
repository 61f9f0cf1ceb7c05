import CLinux
import Glibc
import Structures
import SystemFiles

/// The events of one reactor's sockets, and those that its last waits brought.
///
/// Newcomers' sockets are in a set of their own, which the other one reports as a whole. So the owner
/// learns what connected clients sent before it turns to the newcomers, however many those are, and
/// takes as many of theirs as it has time for.
///
/// Each event carries a handle of 64 bits. So a late event of a closed connection finds no
/// connection, even if the kernel has reused the descriptor within the batch.
struct Poller: ~Copyable {
    /// Never read; see the same in ``Reactor``.
    private let addressOnly: any Sendable = ()
    /// The longest wait while the kernel has not taken all that it was told.
    private static var retryMilliseconds: CInt { 100 }

    /// Generation of the reactor's own descriptors; those of connections begin with 1.
    private static var ownGeneration: UInt32 { 0 }
    static var mailbox: Handle { Handle(index: 0, generation: ownGeneration) }
    private static var newcomers: Handle { Handle(index: .max, generation: ownGeneration) }
    static func owner(ofListener number: Int) -> Handle {
        Handle(index: UInt32(number) + 1, generation: ownGeneration)
    }

    private struct Change {
        let socket: CInt
        let interest: Interest
    }

    private var all: EventSet
    private var newcomers: EventSet
    /// What the kernel had no memory to be told, by packed owner; told again before each wait.
    private var untold: [UInt64: Change] = [:]
    /// Calls that failed because the kernel lacked memory.
    private(set) var shortages: UInt64 = 0

    init() throws(SystemError) {
        let all = try EventSet(capacity: 512)
        let newcomers = try EventSet(capacity: 16)
        let code = all.add(newcomers.rawDescriptor, EPOLLIN.rawValue, owner: Self.newcomers)
        guard code == 0 else {
            throw SystemError(call: "epoll_ctl", subject: "newcomers", code: code)
        }
        self.all = all
        self.newcomers = newcomers
    }

    // MARK: Events

    /// Waits for events, at most `milliseconds` (-1: without limit); returns their number.
    mutating func wait(milliseconds: CInt) throws(SystemError) -> Int {
        var longest = milliseconds
        if !untold.isEmpty {
            tellAgain()
            longest = longest < 0 ? Self.retryMilliseconds : min(longest, Self.retryMilliseconds)
        }
        let code = all.wait(milliseconds: longest)
        if code == ENOMEM {
            shortages += 1
        } else if code != 0, code != EINTR {
            throw SystemError(call: "epoll_wait", subject: "reactor", code: code)
        }
        return all.count
    }

    /// An event of the last wait; its connection may be closed by now.
    func event(_ index: Int) -> Reactor.Event {
        let (owner, flags) = all.event(index)
        guard owner.generation == Self.ownGeneration else { return Self.event(of: owner, flags) }
        return switch owner {
        case Self.mailbox: .mailbox
        case Self.newcomers: .newcomers
        default: .acceptable(listener: Int(owner.index) - 1)
        }
    }

    /// Asks for events of newcomers, without waiting; returns their number.
    mutating func askNewcomers() -> Int {
        if newcomers.wait(milliseconds: 0) == ENOMEM { shortages += 1 }
        return newcomers.count
    }

    /// True when newcomers may have more events than ``askNewcomers()`` brought.
    var mayNewcomersWait: Bool { newcomers.isFull }

    /// An event of the newcomers.
    func newcomerEvent(_ index: Int) -> Reactor.Event {
        let (owner, flags) = newcomers.event(index)
        return Self.event(of: owner, flags)
    }

    private static func event(of owner: Handle, _ flags: UInt32) -> Reactor.Event {
        let isHungUp = flags & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
        let hasEnded = flags & EPOLLRDHUP.rawValue != 0
        return .connection(
            owner, isReadable: isHungUp || hasEnded || flags & EPOLLIN.rawValue != 0,
            isWritable: flags & EPOLLOUT.rawValue != 0, isHungUp: isHungUp, hasEnded: hasEnded)
    }

    // MARK: Sockets

    /// Starts reporting a socket's events with the handle `owner`.
    func add(
        _ socket: CInt, _ interest: Interest, owner: Handle, _ subject: String
    ) throws(SystemError) {
        let code =
            interest.contains(.newcomer)
            ? newcomers.add(socket, interest.events, owner: owner)
            : all.add(socket, interest.events, owner: owner)
        guard code == 0 else {
            throw SystemError(call: "epoll_ctl", subject: subject, code: code)
        }
    }

    /// Changes the reported events of a socket; later, if the kernel lacks memory now. Otherwise a
    /// connection would wait for an event that nobody has asked for.
    mutating func change(_ socket: CInt, _ interest: Interest, owner: Handle) {
        let code =
            interest.contains(.newcomer)
            ? newcomers.change(socket, interest.events, owner: owner)
            : all.change(socket, interest.events, owner: owner)
        if code == 0 {
            forget(owner)
        } else if code == ENOMEM {
            shortages += 1
            untold[owner.packed] = Change(socket: socket, interest: interest)
        }
    }

    /// Moves a newcomer's socket to the others, with the events of `interest`. False when the kernel has
    /// no memory for it, or has not been told of an earlier change; then all stays as it is.
    func adopt(_ socket: CInt, _ interest: Interest, owner: Handle) -> Bool {
        guard untold.isEmpty || untold[owner.packed] == nil,
            all.add(socket, interest.events, owner: owner) == 0
        else { return false }
        newcomers.remove(socket)
        return true
    }

    /// Stops reporting a socket that stays open.
    func remove(_ socket: CInt, _ interest: Interest) {
        if interest.contains(.newcomer) {
            newcomers.remove(socket)
        } else {
            all.remove(socket)
        }
    }

    /// Called before the owner's socket closes, whose number the kernel gives to others.
    mutating func forget(_ owner: Handle) {
        if !untold.isEmpty { untold[owner.packed] = nil }
    }

    private mutating func tellAgain() {
        for (owner, change) in untold {
            self.change(change.socket, change.interest, owner: Handle(packed: owner))
        }
    }
}
