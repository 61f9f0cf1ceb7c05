import Glibc
import HermesTesting
import Structures
import SystemFiles
import Testing
import Transport

/// Sets the soft limit of open descriptors.
private func setLimit(_ soft: rlim_t) {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = soft
    #expect(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
}

/// Opens descriptors until `left` more can be opened.
private func fill(leaving left: Int) -> [CInt] {
    var opened: [CInt] = []
    while true {
        let descriptor = open("/dev/null", O_RDONLY)
        guard descriptor >= 0 else { break }
        opened.append(descriptor)
    }
    for _ in 0..<min(left, opened.count) { if let last = opened.popLast() { close(last) } }
    return opened
}

/// Each test runs in its own process, because the limit is per process.
@Suite("Transport: descriptors run out")
struct DescriptorLimitTests {
    @Test("newcomers are refused, the others go on, and it recovers")
    func refused() async {
        await #expect(processExitsWith: .success) {
            setLimit(200)
            var server = try EchoServer()
            let (first, handle) = try server.connect()
            let late = try (0..<5).map { _ in try #require(TestPeer(server.address)) }
            server.accepts = false
            let filler = fill(leaving: 0)
            server.accepts = true

            let areRefused = try server.turn { $0.refused == 5 }
            #expect(areRefused)
            #expect(server.reactor.connectionCount == 1)
            for peer in late {
                #expect(peer.receive() == [] && (peer.sawEnd || peer.failure != nil))
            }
            // No connection waits: the loop sleeps instead of spinning.
            #expect(try server.turn(milliseconds: 1) == 0)
            first.send(frame([1]))
            let isServed = try server.turn { $0.connections[handle]?.frames == [[1]] }
            #expect(isServed)
            #expect(first.receive() == frame([1]))

            for descriptor in filler { close(descriptor) }
            let (again, _) = try server.connect()
            again.send(frame([2]))
            let isServedAgain = try server.turn {
                $0.connections.values.contains { $0.frames == [[2]] }
            }
            #expect(isServedAgain)
        }
    }

    @Test("the spare descriptor is found again after a time when even it could not be had")
    func spareReturns() async {
        await #expect(processExitsWith: .success) {
            setLimit(200)
            var server = try EchoServer()
            let peers = try (0..<2).map { _ in try #require(TestPeer(server.address)) }
            // Below all open descriptors, so that closing the spare one makes no room.
            setLimit(3)
            for _ in 0..<3 { try server.turn(milliseconds: 1) }
            #expect(server.handles.isEmpty && server.refused == 0)
            #expect(server.unable.count == 3)
            #expect(server.unable.allSatisfy { $0.call == "accept" && $0.code == EMFILE })

            setLimit(200)
            let areAccepted = try server.turn { $0.handles.count == 2 }
            #expect(areAccepted)
            let late = try #require(TestPeer(server.address))
            let filler = fill(leaving: 0)
            let isRefused = try server.turn { $0.refused == 1 }
            #expect(isRefused)
            for descriptor in filler { close(descriptor) }
            #expect(late.receive() == [] && (late.sawEnd || late.failure != nil))
            #expect(peers.count == 2)
        }
    }

    @Test("a reactor, a mailbox or a listener without a descriptor is an error that says so")
    func construction() async {
        await #expect(processExitsWith: .success) {
            var reactor = try Reactor(pool: BytePool())
            setLimit(3)
            func failure(_ body: () throws(SystemError) -> Void) -> SystemError? {
                do throws(SystemError) {
                    try body()
                    return nil
                } catch {
                    return error
                }
            }
            let ofReactor = failure { () throws(SystemError) in _ = try Reactor(pool: BytePool()) }
            #expect(ofReactor?.call == "epoll_create1" && ofReactor?.code == EMFILE)
            let ofMailbox = failure { () throws(SystemError) in _ = try Mailbox<Int>(capacity: 1) }
            #expect(ofMailbox?.call == "eventfd" && ofMailbox?.code == EMFILE)
            var ofListener: SystemError?
            do throws(SystemError) {
                _ = try reactor.listen(address: "127.0.0.1", port: 0, userTimeout: .zero)
            } catch {
                ofListener = error
            }
            #expect(ofListener?.call == "socket" && ofListener?.code == EMFILE)
            setLimit(200)
        }
    }
}
