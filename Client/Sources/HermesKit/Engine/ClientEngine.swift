import HermesClientCore
import HermesClientNIO
import NIOCore

/// Drives the machine on one event loop: brings it events with their times, and does what it asks
/// for, in its order.
final class ClientEngine {
    /// What the engine tells, from its event loop; all of it may be used on any thread.
    struct Outlets: Sendable {
        let states: StateBoard
        let events: Mailbox<HermesClient.Event>
        let inlet: DeliveryInlet
        let observers = MessageBoard()
        let log: (@Sendable (HermesClient.LogLine) -> Void)?

        func tell(_ event: HermesClient.Event) {
            log?(HermesClient.LogLine(event))
            events.put(event)
        }

        func tell(_ state: HermesClient.State) {
            if let log, state != states.current { log(HermesClient.LogLine(state)) }
            states.change(to: state)
        }
    }

    /// QoS 0 is not taken while so many bytes wait for the network.
    static let mostPendingBytes = 8 << 20

    let loop: any EventLoop
    let outlets: Outlets
    private let dialers: [Dialer]
    private let storage: any ClientStorage
    private let provideCredentials: HermesClient.Credentials.Provider?
    var machine: ClientMachine

    /// Connections that are not yet closed; the machine knows one of them at most.
    private var connections: [ConnectionNumber: TransportConnection] = [:]
    /// Called when the connections that were open then are closed.
    private var whenClosed: [(open: Set<ConnectionNumber>, done: () -> Void)] = []
    /// Called when a wake-up in the background is over.
    private var whenAsleep: [() -> Void] = []

    private var timer: (scheduled: Scheduled<Void>, at: Int64)?
    private var credentialsTask: Task<Void, Never>?
    /// Names the question for credentials whose answer counts.
    private var credentialsQuestion = 0

    /// Events that came while the machine was at work.
    private var heldBack: [(inout ClientMachine, Moment) -> Void] = []
    private var isBusy = false

    /// A write to the storage has failed, and the file lacks what the machine knows. The client goes
    /// on meanwhile, takes nothing new that must be kept, and writes the whole file anew when it can.
    private(set) var storageFailure: StorageError?
    private var storageTimer: Scheduled<Void>?
    private static let storageRetry = TimeAmount.seconds(5)

    /// Why calls that wait for the broker cannot succeed now.
    private(set) var pause: HermesClientError? = .stopped(.notStarted)

    var receipts: [UInt64: Outcome<Void>] = [:]
    var answers: [[UInt8]: [Outcome<SubscriptionAnswer>]] = [:]
    let reportTopic: [UInt8]?
    var cache = MessageCache()

    init(
        loop: any EventLoop, outlets: Outlets, dialers: [Dialer], storage: any ClientStorage,
        machine: ClientMachine, provideCredentials: HermesClient.Credentials.Provider?,
        reportTopic: [UInt8]?
    ) {
        self.loop = loop
        self.outlets = outlets
        self.dialers = dialers
        self.storage = storage
        self.machine = machine
        self.provideCredentials = provideCredentials
        self.reportTopic = reportTopic
    }

    /// Hands an event to the machine and does what follows from it.
    @discardableResult
    func handle<Value, Failure: Error>(
        _ event: (inout ClientMachine, Moment) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        isBusy = true
        defer { settle() }
        let moment = SystemClock.now
        if let deadline = machine.nextDeadline, moment.monotonicMilliseconds >= deadline {
            machine.timeReached(at: moment)
        }
        return try event(&machine, moment)
    }

    /// An event of a connection: it may come while the machine is at work.
    private func handleLater(_ event: @escaping (inout ClientMachine, Moment) -> Void) {
        if isBusy {
            heldBack.append(event)
        } else {
            handle(event)
        }
    }

    private func settle() {
        performActions()
        while !heldBack.isEmpty {
            heldBack.removeFirst()(&machine, SystemClock.now)
            performActions()
        }
        isBusy = false
        tellAsleep()
        fillInlet()
        setTimer()
    }

    private func performActions() {
        for action in machine.takeActions() { perform(action) }
    }

    private func perform(_ action: ClientAction) {
        switch action {
        case .open(let number): open(number)
        case .write(let number, let bytes): connections[number]?.write(bytes)
        case .close(let number): connections[number]?.close()
        case .store(let frame): store { storage throws(StorageError) in try storage.append(frame) }
        case .replaceLog(let file):
            store { storage throws(StorageError) in try storage.replace(with: file) }
        case .state(let state): tell(state)
        case .event(let event): outlets.tell(HermesClient.Event(event))
        case .requestCredentials: requestCredentials()
        case .published(let key): receipts.removeValue(forKey: key)?.finish(.success(()))
        case .subscriptionAnswered(let filter, let answer):
            for outcome in answers.removeValue(forKey: filter) ?? [] {
                outcome.finish(.success(answer))
            }
        case .reportDue:
            heldBack.append { [weak self] in self?.publishReport(of: &$0, at: $1) }
        }
    }

    // MARK: Storage

    private func store(_ write: (any ClientStorage) throws(StorageError) -> Void) {
        if storageFailure != nil { return }
        do throws(StorageError) {
            try write(storage)
        } catch {
            storageFailure = error
            outlets.tell(.storageFailed(error.reason))
            tryStorageLater()
        }
    }

    /// After a failure the file lacks changes that the machine has made: all of it is written anew.
    func recoverStorage() {
        guard storageFailure != nil else { return }
        do throws(StorageError) {
            try storage.replace(with: ClientLog.file(machine.stored))
            storageFailure = nil
            storageTimer?.cancel()
            storageTimer = nil
            outlets.tell(.storageRecovered)
        } catch {
            storageFailure = error
        }
    }

    private func tryStorageLater() {
        storageTimer?.cancel()
        storageTimer = loop.assumeIsolated().scheduleTask(in: Self.storageRetry) { [weak self] in
            guard let self, storageFailure != nil else { return }
            recoverStorage()
            if storageFailure != nil { tryStorageLater() }
        }
    }

    private func tell(_ state: ClientState) {
        let state = HermesClient.State(state, cause: machine.lastDrop)
        if case .stopped(let reason) = state { setPause(.stopped(reason)) } else { setPause(nil) }
        outlets.tell(state)
    }

    /// Calls that wait throw the error, and wait again from `nil` on.
    func setPause(_ error: HermesClientError?) {
        guard error != pause else { return }
        pause = error
        for receipt in receipts.values { receipt.pause(error) }
        guard let error else { return }
        for outcomes in answers.values {
            for outcome in outcomes { outcome.finish(.failure(error)) }
        }
        answers = [:]
    }

    // MARK: Connections

    private func open(_ number: ConnectionNumber) {
        let connection = TransportConnection(on: loop) { [weak self] event in
            self?.received(event, from: number)
        }
        connections[number] = connection
        connection.open(to: dialers[number.address])
    }

    private func received(_ event: TransportConnection.Event, from number: ConnectionNumber) {
        // The client is gone and its file may be another's: what comes now cannot be kept.
        if storage.isReleased, case .received = event { return }
        switch event {
        case .opened: handleLater { $0.transportOpened(number, at: $1) }
        case .received(let bytes): handleLater { $0.received(bytes, on: number, at: $1) }
        case .closed(let reason):
            connections[number] = nil
            handleLater { $0.transportClosed(number, reason, at: $1) }
            closed(number)
        }
    }

    /// Bytes that wait for the network.
    var pendingBytes: Int { connections.values.reduce(0) { $0 + $1.pendingBytes } }

    /// Calls `done` once the connections that are open now are closed; those that are opened from
    /// now on do not count.
    func afterConnections(_ done: @escaping () -> Void) {
        if connections.isEmpty {
            done()
        } else {
            whenClosed.append((Set(connections.keys), done))
        }
    }

    private func closed(_ number: ConnectionNumber) {
        for index in whenClosed.indices { whenClosed[index].open.remove(number) }
        let done = whenClosed.filter(\.open.isEmpty)
        whenClosed.removeAll(where: \.open.isEmpty)
        for (_, done) in done { done() }
    }

    /// Calls `done` once the wake-up in the background is over, and its connection is closed.
    func afterWake(_ done: @escaping () -> Void) {
        whenAsleep.append(done)
        tellAsleep()
    }

    private func tellAsleep() {
        guard !machine.isAwakeInBackground, !whenAsleep.isEmpty else { return }
        let waiting = whenAsleep
        whenAsleep = []
        // The connection of the foreground stays; nobody waits for its end.
        if machine.isForeground {
            for done in waiting { done() }
        } else {
            afterConnections { for done in waiting { done() } }
        }
    }

    // MARK: Time

    private func setTimer() {
        guard let deadline = machine.nextDeadline else {
            timer?.scheduled.cancel()
            timer = nil
            return
        }
        // One that comes too early is set anew then; most deadlines move away with each packet.
        if let timer, timer.at <= deadline { return }
        timer?.scheduled.cancel()
        let delay = max(deadline - SystemClock.monotonicMilliseconds, 0)
        let scheduled = loop.assumeIsolated().scheduleTask(in: .milliseconds(delay)) {
            [weak self] in
            guard let self else { return }
            timer = nil
            handle { _, _ in }
        }
        timer = (scheduled, deadline)
    }

    // MARK: Credentials

    private func requestCredentials() {
        guard let provideCredentials else {
            heldBack.append { $0.credentialsProvided(nil, at: $1) }
            return
        }
        credentialsTask?.cancel()
        credentialsQuestion += 1
        let question = credentialsQuestion
        let engine = NIOLoopBound(WeakEngine(self), eventLoop: loop)
        let loop = loop
        credentialsTask = Task {
            let result: Result<HermesClient.Credentials.Pair?, any Error>
            do {
                result = .success(try await provideCredentials())
            } catch {
                result = .failure(error)
            }
            loop.execute { engine.value.engine?.gotCredentials(result, for: question) }
        }
    }

    private func gotCredentials(
        _ result: Result<HermesClient.Credentials.Pair?, any Error>, for question: Int
    ) {
        // An answer that comes late may belong to a user who has logged out since.
        guard question == credentialsQuestion, credentialsTask != nil else { return }
        switch result {
        case .success(let pair):
            handle { $0.credentialsProvided(pair?.clientCredentials, at: $1) }
        case .failure: handle { $0.credentialsFailed(at: $1) }
        }
    }

    func cancelCredentials() {
        credentialsTask?.cancel()
        credentialsTask = nil
    }
}

private struct WeakEngine {
    weak var engine: ClientEngine?

    init(_ engine: ClientEngine) { self.engine = engine }
}
