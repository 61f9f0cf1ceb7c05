import Addresses
import CLinux
import Glibc
import Structures
import SystemFiles

/// The listening sockets of one reactor, by number.
struct Listeners: ~Copyable {
    /// Never read; see the same in ``Reactor``.
    private let addressOnly: any Sendable = ()
    enum Taken {
        case socket(CInt)
        /// Any result but ``Reactor/Accepted/connection(_:)``.
        case nothing(Reactor.Accepted)
    }

    private var descriptors: [CInt] = []
    /// The addresses with their actual ports, including those of closed listeners.
    private(set) var addresses: [String] = []
    private var locals: [IPAddress] = []
    /// True after ``refuse(_:)``.
    private var isRefusing = false
    /// Released to accept and close a connection when no descriptor is free.
    private var spareDescriptor: CInt = -1

    init() { takeSpareDescriptor() }

    deinit {
        for descriptor in descriptors { _ = Glibc.close(descriptor) }
        if spareDescriptor >= 0 { _ = Glibc.close(spareDescriptor) }
    }

    /// Listens and has the poller report waiting connections; returns the listener's number.
    mutating func add(
        _ socket: consuming OwnedDescriptor, _ poller: borrowing Poller
    ) throws(SystemError) -> Int {
        let number = descriptors.count
        let descriptor = socket.take()
        descriptors.append(descriptor)
        let local = IPAddress(localOf: descriptor)
        locals.append(local)
        addresses.append(local.text)
        try poller.add(
            descriptor, .input, owner: Poller.owner(ofListener: number),
            addresses[number])
        return number
    }

    /// Sets whether the poller reports waiting connections.
    func setAccepting(_ listener: Int, _ isAccepting: Bool, _ poller: inout Poller) {
        guard listener < descriptors.count, !isRefusing else { return }
        poller.change(
            descriptors[listener], isAccepting ? .input : [],
            owner: Poller.owner(ofListener: listener))
    }

    /// Has the kernel refuse new clients and reset those that wait, until ``listenAgain(_:)``.
    mutating func refuse(_ poller: inout Poller) {
        guard !isRefusing else { return }
        isRefusing = true
        for number in descriptors.indices { refuse(number, &poller) }
    }

    private func refuse(_ number: Int, _ poller: inout Poller) {
        // Otherwise it would be reported as hung up in each turn.
        poller.remove(descriptors[number], [])
        poller.forget(Poller.owner(ofListener: number))
        Listener.refuse(descriptors[number])
    }

    /// Listens again after ``refuse(_:)``, with waiting connections reported.
    ///
    /// - Throws: ``SystemError`` when one listener cannot; then all refuse as before.
    mutating func listenAgain(_ poller: inout Poller) throws(SystemError) {
        guard isRefusing else { return }
        var listening = 0
        do throws(SystemError) {
            for (number, descriptor) in descriptors.enumerated() {
                try Listener.listenAgain(descriptor, at: locals[number])
                listening += 1
                try poller.add(
                    descriptor, .input, owner: Poller.owner(ofListener: number),
                    addresses[number])
            }
        } catch {
            for number in 0..<listening { refuse(number, &poller) }
            throw error
        }
        isRefusing = false
    }

    mutating func closeAll() {
        for descriptor in descriptors { _ = Glibc.close(descriptor) }
        descriptors.removeAll()
    }

    /// Accepts one connection; the caller owns its socket. Some ended sockets are closed when no
    /// descriptor is free.
    mutating func accept(_ listener: Int, _ ended: inout EndedSockets) -> Taken {
        guard listener < descriptors.count, !isRefusing else { return .nothing(.none) }
        var (socket, code) = retrying { Int(hermes_accept(descriptors[listener])) }
        if socket < 0, code == EMFILE || code == ENFILE, ended.closeSome() {
            (socket, code) = retrying { Int(hermes_accept(descriptors[listener])) }
        }
        guard socket < 0 else { return .socket(CInt(socket)) }
        switch code {
        case EAGAIN, EWOULDBLOCK: return .nothing(.none)
        case EMFILE, ENFILE: return .nothing(refuseOne(listener, code))
        // Includes network errors of that connection alone, see accept(2).
        case ECONNABORTED, EPROTO, EPERM, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH,
            EOPNOTSUPP, ENETUNREACH:
            return .nothing(.gone)
        default: return .nothing(unable(listener, code))
        }
    }

    /// Accepts and closes a connection with the spare descriptor, because none is free. Otherwise
    /// the listener would stay readable and the client would wait in vain.
    private mutating func refuseOne(_ listener: Int, _ code: CInt) -> Reactor.Accepted {
        takeSpareDescriptor()
        guard spareDescriptor >= 0 else { return unable(listener, code) }
        _ = Glibc.close(spareDescriptor)
        spareDescriptor = -1
        let (socket, failure) = retrying { Int(hermes_accept(descriptors[listener])) }
        if socket >= 0 { _ = Glibc.close(CInt(socket)) }
        takeSpareDescriptor()
        if socket >= 0 { return .refused }
        // Without a free descriptor the kernel does not report whether a connection waits.
        guard failure != EAGAIN, failure != EWOULDBLOCK else { return .none }
        return unable(listener, failure)
    }

    private func unable(_ listener: Int, _ code: CInt) -> Reactor.Accepted {
        .unable(SystemError(call: "accept", subject: addresses[listener], code: code))
    }

    /// Reopens a missing spare descriptor; called whenever one may have become free.
    mutating func takeSpareDescriptor() {
        guard spareDescriptor < 0 else { return }
        spareDescriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
    }
}
