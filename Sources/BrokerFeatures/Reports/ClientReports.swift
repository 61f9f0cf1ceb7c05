import BrokerAPI
import BrokerCore
import Structures

/// The newest report of each client, and lost connections by the networks that reports name.
///
/// A report belongs to the client identifier: it stays when the session ends, and goes when those
/// of other clients need its room.
struct ClientReports: ~Copyable {
    struct Record: BitwiseCopyable {
        let identifier: CompactBytes
        var figures: ReportedFigures
        /// UNIX time in milliseconds.
        var reportedAtMs: Int64
        /// A number of ``NetworkLabels``.
        var network = NetworkLabels.none
        /// Names that the client has brought into ``NetworkLabels``.
        var newNames: UInt8 = 0
        /// False in a free place.
        var isTaken = true
        /// The neighbours by age.
        var links = ListLinks()
    }

    private enum ByAge: ListField {
        static subscript(record: UnsafeMutablePointer<Record>) -> ListLinks {
            get { record.pointee.links }
            set { record.pointee.links = newValue }
        }
    }

    /// Bytes that a client counts besides its identifier: the record, and its place in the index.
    private static var recordBytes: Int { 160 }
    /// Names that one client may bring into ``NetworkLabels``.
    private static var mostNewNames: UInt8 { 4 }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private let hash: KeyedHash
    private var records = Slab<Record>()
    private var byIdentifier = HashIndex()
    /// The longest unchanged first.
    private var byAge = IntrusiveList<ByAge>()
    private var networks = NetworkLabels()
    /// By cause and number of the network.
    private var lost: [UInt16: SilenceHistogram] = [:]
    private(set) var bytes = 0
    /// The sums over all records.
    private(set) var sums = ReportedCounts()
    /// What the reports have grown by since the start.
    private(set) var growth = ReportedCounts()
    private(set) var outcomes = Counts<ReportOutcome>()
    /// The newest time of a report that was forgotten: UNIX time in milliseconds.
    private var forgottenMs: Int64 = 0

    init(hash: KeyedHash) { self.hash = hash }

    var count: Int { records.count }

    // MARK: Reports

    mutating func count(_ outcome: ReportOutcome) { outcomes.add(outcome) }

    /// Reads a client's report in place of its former one. The records take at most `limit` bytes;
    /// times are UNIX times in milliseconds.
    mutating func take(
        _ report: UnsafeRawBufferPointer, of identifier: UnsafeRawBufferPointer, limit: Int,
        startedAtMs: Int64, nowMs: Int64, pool: BytePool
    ) {
        guard report.count <= ReportReader.mostBytes else {
            outcomes.add(.tooLarge)
            return
        }
        guard let (figures, name) = ReportReader.read(report) else {
            outcomes.add(.malformed)
            return
        }
        outcomes.add(.taken)
        var former: ReportedFigures?
        let place: UInt32
        if let known = find(identifier) {
            place = known
            former = records[place].figures
            byAge.remove(place, in: records)
            records[place].figures = figures
            records[place].reportedAtMs = nowMs
        } else {
            place = records.insert(
                Record(
                    identifier: CompactBytes(identifier, pool: pool), figures: figures,
                    reportedAtMs: nowMs))
            byIdentifier.insert(hash(identifier), place)
            bytes += Self.recordBytes + identifier.count
        }
        byAge.append(place, in: records)
        setNetwork(name, of: place)
        // What was told in a report that is forgotten has counted.
        grow(from: former, to: figures, sinceMs: max(startedAtMs, forgottenMs))
        trim(to: limit, pool)
    }

    private mutating func setNetwork(_ name: UnsafeRawBufferPointer, of place: UInt32) {
        let before = networks.count
        records[place].network = networks.number(
            of: name, mayBeNew: records[place].newNames < Self.mostNewNames)
        if networks.count > before { records[place].newNames += 1 }
    }

    /// Forgets the oldest reports until the records take no more than `limit` bytes.
    mutating func trim(to limit: Int, _ pool: BytePool) {
        while bytes > limit { forget(byAge.first, pool) }
    }

    /// Adds a report to the sums and to the growth. Counters that began before `sinceMs`, and of
    /// which no report is known, have grown at an unknown time and count from now on.
    private mutating func grow(
        from former: ReportedFigures?, to figures: ReportedFigures, sinceMs: Int64
    ) {
        let continues =
            former.map { $0.sinceMs == figures.sinceMs } ?? (figures.sinceMs < sinceMs)
        for (_, path) in ReportedCounts.all {
            let now = figures.counts[keyPath: path]
            let before = former?.counts[keyPath: path] ?? 0
            sums[keyPath: path] = sums[keyPath: path] &+ now &- before
            let base = continues ? former?.counts[keyPath: path] ?? now : 0
            growth[keyPath: path] &+= now > base ? now - base : 0
        }
    }

    private mutating func forget(_ place: UInt32, _ pool: BytePool) {
        outcomes.add(.forgotten)
        let record = records[place]
        forgottenMs = max(forgottenMs, record.reportedAtMs)
        for (_, path) in ReportedCounts.all {
            sums[keyPath: path] &-= record.figures.counts[keyPath: path]
        }
        byAge.remove(place, in: records)
        byIdentifier.remove(record.identifier.withBytes { hash($0) }, place)
        bytes -= Self.recordBytes + record.identifier.count
        record.identifier.destroy(in: pool)
        records[place].isTaken = false
        records.remove(place)
    }

    // MARK: Answers

    private func find(_ identifier: UnsafeRawBufferPointer) -> UInt32? {
        byIdentifier.find(hash(identifier)) { records[$0].identifier.equals(identifier) }
    }

    /// A client's newest report; `nil` without one.
    func report(of identifier: UnsafeRawBufferPointer) -> ClientReport? {
        find(identifier).map { report(at: $0) }
    }

    private func report(at place: UInt32) -> ClientReport {
        let record = records[place]
        let (network, heartbeat) = (
            networks.name(record.network), Int(record.figures.heartbeatSeconds)
        )
        return ClientReport(
            clientID: String(decoding: record.identifier.array, as: UTF8.self),
            reportedAtMs: record.reportedAtMs, sinceMs: record.figures.sinceMs,
            network: network.isEmpty ? nil : network,
            heartbeatSeconds: heartbeat == 0 ? nil : heartbeat, counts: record.figures.counts)
    }

    var total: ArrivalTotal {
        var total = ArrivalTotal()
        total.clients = count
        total.counts = sums
        total.arrivalRate = sums.arrivalRate
        total.reports = outcomes.figures.byLabel
        return total
    }

    /// Reports in the places from `first` on, of all clients or of those with losses.
    func reports(from first: UInt32, most: Int, places: UInt32, withLosses: Bool) -> ArrivalPage {
        var page = ArrivalPage(total: total)
        var place = min(first, records.endIndex)
        let stop = place + min(places, records.endIndex - place)
        while place < stop, page.clients.count < most {
            let record = records[place]
            if record.isTaken, !withLosses || record.figures.counts.losses > 0 {
                page.clients.append(report(at: place))
            }
            place += 1
        }
        if place < records.endIndex { page.next = "\(place)" }
        return page
    }

    // MARK: Lost connections

    /// Counts a lost connection, whose client had been silent for so long.
    mutating func connectionLost(
        _ cause: LossCause, of identifier: UnsafeRawBufferPointer, silentMilliseconds: UInt64
    ) {
        let network = find(identifier).map { records[$0].network } ?? NetworkLabels.none
        lost[UInt16(cause.rawValue) << 8 | UInt16(network), default: SilenceHistogram()]
            .add(milliseconds: silentMilliseconds)
    }

    /// By cause, then by network.
    var lostConnections: [LostConnections] {
        lost.sorted { $0.key < $1.key }.compactMap { key, silence in
            guard let cause = LossCause(rawValue: UInt8(key >> 8)) else { return nil }
            var connections = LostConnections(
                cause: cause, network: networks.name(UInt8(key & 0xFF)))
            connections.silence = silence
            return connections
        }
    }
}

/// What became of a report.
enum ReportOutcome: UInt8, CountLabel {
    case taken
    /// Its topic names another client than the one that published it.
    case foreign
    case malformed
    case tooLarge
    /// It was taken, and dropped for the room of others.
    case forgotten

    var name: String {
        switch self {
        case .taken: "taken"
        case .foreign: "foreign"
        case .malformed: "malformed"
        case .tooLarge: "too_large"
        case .forgotten: "forgotten"
        }
    }
}

extension ClientReports {
    var figures: [FeatureFigure] {
        [
            .gauge(
                "hermes_clients_with_reports", "Clients whose newest report is kept.", count),
            .gauge(
                "hermes_report_bytes",
                "Newest reports of clients, and the identifiers of these clients.", bytes),
            .counters(
                "hermes_client_reports_total", by: "outcome",
                "Reports that clients published, by what became of them.", outcomes.figures),
        ]
    }
}
