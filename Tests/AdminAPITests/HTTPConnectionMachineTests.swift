import NIOCore
import Testing

@testable import AdminAPI

@Suite("HTTP connection machine")
struct HTTPConnectionMachineTests {
    private let limits: HTTPLimits = {
        var limits = HTTPLimits()
        limits.idle = .seconds(30)
        limits.head = .seconds(10)
        limits.headBytes = 100
        limits.bodyGrace = .seconds(10)
        limits.bodyBytesPerSecond = 100
        limits.linger = .seconds(2)
        return limits
    }()

    private func at(_ seconds: Double) -> NIODeadline {
        .uptimeNanoseconds(UInt64(seconds * 1e9))
    }

    private func machine() -> HTTPConnectionMachine {
        HTTPConnectionMachine(limits: limits, now: at(0))
    }

    /// A machine that has read one whole request at `seconds`.
    private func afterRequest(at seconds: Double, keepsAlive: Bool = true) -> HTTPConnectionMachine
    {
        var machine = machine()
        _ = machine.receiveBytes(10, at: at(seconds))
        _ = machine.receiveHead(keepsAlive: keepsAlive, at: at(seconds))
        _ = machine.receiveEnd(at: at(seconds))
        return machine
    }

    @Test("a connection without a request closes after the idle time and not before")
    func idle() {
        var machine = machine()
        #expect(machine.tick(unsentBytes: 0, at: at(29.9)) == .keep)
        #expect(machine.tick(unsentBytes: 0, at: at(30)) == .close)
        #expect(machine.tick(unsentBytes: 0, at: at(31)) == .keep)
        #expect(machine.receiveBytes(1, at: at(31)) == .drop)
    }

    @Test("the idle time counts from the end of the last response")
    func idleAfterResponse() {
        var machine = afterRequest(at: 1)
        #expect(machine.tick(unsentBytes: 0, at: at(100)) == .keep)
        #expect(machine.beginResponse() == .keep)
        #expect(machine.endResponse(at: at(100)) == .keep)
        #expect(machine.tick(unsentBytes: 0, at: at(129.9)) == .keep)
        #expect(machine.tick(unsentBytes: 0, at: at(130)) == .close)
    }

    @Test("behind a request that is the last, nothing is taken for a request")
    func behindTheLast() {
        var machine = afterRequest(at: 1, keepsAlive: false)
        _ = machine.receiveBytes(10, at: at(1))
        #expect(machine.receiveHead(keepsAlive: true, at: at(1)) == .drop)
        #expect(machine.receiveBody(1) == .drop)
        #expect(machine.receiveEnd(at: at(1)) == .drop)
        #expect(machine.receiveBytes(10, at: at(2)) == .drop)
        #expect(machine.beginResponse() == .announceEnd)
        #expect(machine.endResponse(at: at(2)) == .linger)
    }

    @Test("a head has its time from the first byte, however often bytes come")
    func lateHead() {
        var machine = machine()
        #expect(machine.receiveBytes(1, at: at(5)) == .take)
        #expect(machine.receiveBytes(1, at: at(14)) == .take)
        #expect(machine.tick(unsentBytes: 0, at: at(14.9)) == .keep)
        #expect(machine.tick(unsentBytes: 0, at: at(15)) == .answerLateHead)
        #expect(machine.receiveBytes(1, at: at(15)) == .drop)
        #expect(machine.tick(unsentBytes: 0, at: at(16.9)) == .keep)
        #expect(machine.tick(unsentBytes: 0, at: at(17)) == .close)
    }

    @Test("a head is too large once its bytes exceed the limit")
    func largeHead() {
        var machine = machine()
        _ = machine.receiveBytes(100, at: at(0))
        #expect(!machine.isHeadTooLarge)
        _ = machine.receiveBytes(1, at: at(0))
        #expect(machine.isHeadTooLarge)
        #expect(machine.fail(at: at(0)) == .answer)
        #expect(!machine.isHeadTooLarge)
    }

    @Test("bytes of a body are not bytes of a head")
    func bodyIsNoHead() {
        var machine = machine()
        _ = machine.receiveBytes(90, at: at(0))
        #expect(machine.receiveHead(keepsAlive: true, at: at(0)) == .take)
        _ = machine.receiveBytes(5000, at: at(0))
        #expect(!machine.isHeadTooLarge)
    }

    @Test("each byte of a body earns time; a drip does not earn enough")
    func lateBody() {
        var machine = machine()
        _ = machine.receiveBytes(10, at: at(0))
        _ = machine.receiveHead(keepsAlive: true, at: at(0))
        #expect(machine.receiveBody(500) == .take)
        #expect(machine.tick(unsentBytes: 0, at: at(14.9)) == .keep)
        #expect(machine.receiveBody(10) == .take)
        #expect(machine.tick(unsentBytes: 0, at: at(15.05)) == .keep)
        #expect(machine.tick(unsentBytes: 0, at: at(15.1)) == .reportLateBody)
        #expect(machine.tick(unsentBytes: 0, at: at(99)) == .keep)
        #expect(machine.receiveBody(1) == .drop)
        #expect(machine.beginResponse() == .announceEnd)
        #expect(machine.endResponse(at: at(99)) == .linger)
        #expect(machine.tick(unsentBytes: 0, at: at(101)) == .close)
    }

    @Test("while lines of a body are answered its time stands still, and then begins anew")
    func answeredBody() {
        var machine = machine()
        _ = machine.receiveBytes(10, at: at(0))
        _ = machine.receiveHead(keepsAlive: true, at: at(0))
        #expect(machine.receiveBody(1_000_000) == .take)
        machine.setAnswering(true, at: at(5))
        #expect(machine.beginResponse() == .announceEnd)
        #expect(machine.tick(unsentBytes: 0, at: at(50)) == .keep)
        machine.setAnswering(false, at: at(60))
        // What came before the answer earns no time.
        #expect(machine.tick(unsentBytes: 0, at: at(69.9)) == .keep)
        #expect(machine.tick(unsentBytes: 0, at: at(70)) == .reportLateBody)
        #expect(machine.receiveBody(1) == .drop)
        #expect(machine.endResponse(at: at(70)) == .linger)
    }

    @Test("a stop cuts a body that is answered before its end, and no other")
    func stopOfStream() {
        var machine = machine()
        _ = machine.receiveBytes(10, at: at(0))
        _ = machine.receiveHead(keepsAlive: true, at: at(0))
        var unanswered = machine
        #expect(unanswered.stop(unsentBytes: 0, at: at(1)) == .keep)
        #expect(unanswered.receiveBody(1) == .take)
        #expect(machine.beginResponse() == .announceEnd)
        #expect(machine.stop(unsentBytes: 0, at: at(1)) == .report)
        #expect(machine.receiveBody(1) == .drop)
        #expect(machine.endResponse(at: at(1)) == .linger)
    }

    @Test("an early answer is the last one")
    func earlyAnswer() {
        var machine = machine()
        _ = machine.receiveBytes(10, at: at(0))
        _ = machine.receiveHead(keepsAlive: true, at: at(0))
        #expect(machine.beginResponse() == .announceEnd)
        #expect(machine.endResponse(at: at(0)) == .linger)
        #expect(machine.receiveBody(1) == .drop)
        #expect(machine.receiveEnd(at: at(0)) == .drop)
    }

    @Test("a request that asks for the end gets it, and one before it does not")
    func connectionClose() {
        var machine = afterRequest(at: 0)
        _ = machine.receiveBytes(10, at: at(0))
        _ = machine.receiveHead(keepsAlive: false, at: at(0))
        _ = machine.receiveEnd(at: at(0))
        #expect(machine.beginResponse() == .keep)
        #expect(machine.endResponse(at: at(0)) == .keep)
        #expect(machine.beginResponse() == .announceEnd)
        #expect(machine.endResponse(at: at(0)) == .linger)
    }

    @Test("deadlines of a pipelined request start when the one before it has been answered")
    func pipelinedDeadlines() {
        var head = afterRequest(at: 0)
        _ = head.receiveBytes(10, at: at(0))
        #expect(head.tick(unsentBytes: 0, at: at(60)) == .keep)
        _ = head.beginResponse()
        #expect(head.endResponse(at: at(60)) == .keep)
        #expect(head.tick(unsentBytes: 0, at: at(69.9)) == .keep)
        #expect(head.tick(unsentBytes: 0, at: at(70)) == .answerLateHead)

        var body = afterRequest(at: 0)
        _ = body.receiveBytes(10, at: at(0))
        _ = body.receiveHead(keepsAlive: true, at: at(0))
        #expect(body.tick(unsentBytes: 0, at: at(60)) == .keep)
        #expect(body.beginResponse() == .keep)
        #expect(body.endResponse(at: at(60)) == .keep)
        #expect(body.tick(unsentBytes: 0, at: at(69.9)) == .keep)
        #expect(body.tick(unsentBytes: 0, at: at(70)) == .reportLateBody)
    }

    @Test("a failure is answered, reported or ignored, depending on the state")
    func failures() {
        var waiting = machine()
        #expect(waiting.fail(at: at(0)) == .answer)
        #expect(waiting.fail(at: at(0)) == .ignore)

        var body = machine()
        _ = body.receiveBytes(10, at: at(0))
        _ = body.receiveHead(keepsAlive: true, at: at(0))
        #expect(body.fail(at: at(0)) == .report)
        #expect(body.fail(at: at(0)) == .ignore)
        #expect(body.receiveHead(keepsAlive: true, at: at(0)) == .drop)

        var behind = afterRequest(at: 0)
        #expect(behind.fail(at: at(0)) == .ignore)
        #expect(behind.beginResponse() == .announceEnd)
        #expect(behind.endResponse(at: at(0)) == .linger)
    }

    @Test("a shutdown closes idle connections and lets the others finish")
    func stop() {
        var idle = machine()
        #expect(idle.stop(unsentBytes: 0, at: at(0)) == .close)
        #expect(idle.stop(unsentBytes: 0, at: at(0)) == .keep)

        var busy = afterRequest(at: 0)
        #expect(busy.stop(unsentBytes: 0, at: at(1)) == .keep)
        #expect(busy.beginResponse() == .announceEnd)
        #expect(busy.endResponse(at: at(1)) == .linger)
        #expect(busy.stop(unsentBytes: 0, at: at(1)) == .keep)
        #expect(busy.tick(unsentBytes: 0, at: at(3)) == .close)
    }

    @Test("the last answer gets the time it needs; lingering begins when the socket has taken it")
    func slowLastAnswer() {
        var machine = afterRequest(at: 0, keepsAlive: false)
        _ = machine.beginResponse()
        #expect(machine.endResponse(at: at(0)) == .linger)
        for seconds in 1...60 {
            #expect(machine.tick(unsentBytes: 1, at: at(Double(seconds))) == .keep)
        }
        #expect(machine.tick(unsentBytes: 0, at: at(61.9)) == .keep)
        #expect(machine.tick(unsentBytes: 0, at: at(62)) == .close)
    }

    @Test("nothing is idle or late while the client still takes an answer")
    func slowAnswer() {
        var machine = afterRequest(at: 0)
        _ = machine.beginResponse()
        _ = machine.endResponse(at: at(0))
        #expect(machine.tick(unsentBytes: 1, at: at(40)) == .keep)
        #expect(machine.tick(unsentBytes: 0, at: at(69.9)) == .keep)

        var head = machine
        _ = head.receiveBytes(10, at: at(45))
        #expect(head.tick(unsentBytes: 1, at: at(60)) == .keep)
        #expect(head.tick(unsentBytes: 0, at: at(69.9)) == .keep)
        #expect(head.tick(unsentBytes: 0, at: at(70)) == .answerLateHead)

        #expect(machine.tick(unsentBytes: 0, at: at(70)) == .close)
    }

    @Test("a stop behind the head of a response ends the connection behind that response")
    func stopBehindHead() {
        var machine = afterRequest(at: 0)
        #expect(machine.beginResponse() == .keep)
        #expect(machine.stop(unsentBytes: 1, at: at(1)) == .keep)
        #expect(machine.endResponse(at: at(2)) == .linger)
    }

    @Test("a stop lets an answer out that is still on its way")
    func stopDuringAnswer() {
        var machine = afterRequest(at: 0)
        _ = machine.beginResponse()
        _ = machine.endResponse(at: at(0))
        #expect(machine.stop(unsentBytes: 1, at: at(1)) == .linger)
        #expect(machine.stop(unsentBytes: 1, at: at(1)) == .keep)
        #expect(machine.tick(unsentBytes: 1, at: at(4)) == .keep)
        #expect(machine.tick(unsentBytes: 0, at: at(5.9)) == .keep)
        #expect(machine.tick(unsentBytes: 0, at: at(6)) == .close)
    }

    @Test("a request is under way from its first byte until its response has ended")
    func hasRequest() {
        var machine = machine()
        #expect(!machine.hasRequest)
        _ = machine.receiveBytes(10, at: at(0))
        #expect(machine.hasRequest)
        _ = machine.receiveHead(keepsAlive: true, at: at(0))
        #expect(machine.hasRequest)
        _ = machine.receiveEnd(at: at(0))
        #expect(machine.hasRequest)
        _ = machine.beginResponse()
        _ = machine.endResponse(at: at(0))
        #expect(!machine.hasRequest)
        _ = machine.receiveBytes(10, at: at(1))
        _ = machine.fail(at: at(1))
        #expect(!machine.hasRequest)
    }

    @Test("a write stalls when nothing of it is taken for the whole limit")
    func writeStall() {
        var stall = WriteStallMachine(limit: .seconds(30))
        stall.write(1000)
        #expect(stall.tick(bufferedBytes: 1000, at: at(0)) == false)
        #expect(stall.tick(bufferedBytes: 1000, at: at(29)) == false)
        // One byte taken is progress, even when more has been written.
        stall.write(500)
        #expect(stall.tick(bufferedBytes: 1499, at: at(30)) == false)
        #expect(stall.tick(bufferedBytes: 1499, at: at(59)) == false)
        #expect(stall.tick(bufferedBytes: 1499, at: at(60)) == true)
        #expect(stall.tick(bufferedBytes: 0, at: at(61)) == false)
        #expect(stall.tick(bufferedBytes: 0, at: at(100)) == false)
    }
}
