import Store
import Structures

/// The loading of one part of a session's queue from the store.
/// ```
///          begin                     receive: CONNACK waits for its commit
///  idle ──────────▶ reading ─────────────────────────────▶ arrived
///   ▲                │   │ receive                            │ placeHeld
///   ├────────────────┼───┴────────────────────────────────────┤
///   │                ▼ the connection closes                  │
///   │ receive    abandoned ──begin──▶ postponed               │
///   └────────────────┴───────────────────┘ receive: begin again for the new connection
/// ```
/// The store reads at most one part per session at a time, however often its client reconnects.
package struct QueueLoad {
    /// A read for a connection.
    private struct Part {
        var connection: Handle
        /// The end of the part being read: all its positions are below.
        var below: UInt64
        /// Positions that were dropped during the read.
        var dropped: ClosedRange<UInt64>?
    }

    private enum State {
        case idle
        case reading(Part)
        /// The part has been read. It waits for CONNACK, which waits for its commit.
        case arrived(Part, QueueSlice)
        /// The connection has closed while the store reads.
        case abandoned
        /// The same, and a new connection waits for the end of that read.
        case postponed(Handle)
    }

    private var state = State.idle

    package enum OnBegin: Equatable {
        /// Submit the read.
        case read
        /// The store still reads for a former connection; the load begins after that.
        case postponed
        case alreadyLoading
    }

    package enum OnSlice {
        /// Put the messages into the queue, except the positions dropped during the read.
        case place(Handle, dropped: ClosedRange<UInt64>?)
        /// The machine keeps the part until CONNACK is sent.
        case hold
        /// The part was read for a former connection: begin again for this one.
        case restart(Handle)
        /// No connection needs the part.
        case discard
    }

    /// True while a part for the present connection is read, postponed, or waits for CONNACK.
    package var isLoading: Bool {
        switch state {
        case .idle, .abandoned: false
        case .reading, .arrived, .postponed: true
        }
    }

    /// True until the store has read for the present connection; CONNACK waits for this.
    package var isUnderWay: Bool {
        switch state {
        case .idle, .abandoned, .arrived: false
        case .reading, .postponed: true
        }
    }

    /// The connection for which the store is reading.
    package var reader: Handle? {
        if case .reading(let part) = state { part.connection } else { nil }
    }

    /// True when the machine need not be kept.
    package var isIdle: Bool {
        if case .idle = state { true } else { false }
    }

    /// The end of the part being read; 0 when none is.
    package var below: UInt64 {
        switch state {
        case .reading(let part), .arrived(let part, _): part.below
        case .idle, .abandoned, .postponed: 0
        }
    }

    /// Begins a load of the positions below `below`.
    package mutating func begin(for connection: Handle, below: UInt64) -> OnBegin {
        switch state {
        case .idle:
            state = .reading(Part(connection: connection, below: below))
            return .read
        case .abandoned:
            state = .postponed(connection)
            return .postponed
        case .reading, .arrived, .postponed:
            return .alreadyLoading
        }
    }

    /// Handles the store's answer. `isWaiting` tells whether a connection's CONNACK still waits for
    /// its commit, `isLive` whether a connection still exists.
    package mutating func receive(
        _ slice: QueueSlice, isLive: (Handle) -> Bool, isWaiting: (Handle) -> Bool
    ) -> OnSlice {
        switch state {
        case .reading(let part):
            guard isLive(part.connection) else {
                state = .idle
                return .discard
            }
            guard !isWaiting(part.connection) else {
                state = .arrived(part, slice)
                return .hold
            }
            state = .idle
            return .place(part.connection, dropped: part.dropped)
        case .postponed(let connection):
            state = .idle
            return isLive(connection) ? .restart(connection) : .discard
        case .abandoned:
            state = .idle
            return .discard
        case .idle, .arrived:
            preconditionFailure("a part of a queue came that nobody had asked for")
        }
    }

    /// Takes the part that waited for CONNACK, if it has been read.
    package mutating func takeHeld() -> (slice: QueueSlice, dropped: ClosedRange<UInt64>?)? {
        guard case .arrived(let part, let slice) = state else { return nil }
        state = .idle
        return (slice, part.dropped)
    }

    /// Notes that the connection has closed.
    package mutating func connectionClosed() {
        switch state {
        case .idle, .abandoned: return
        case .reading, .postponed: state = .abandoned
        case .arrived: state = .idle
        }
    }

    /// Notes that the store's oldest waiting message was dropped; a running read must not place it.
    package mutating func noteDropped(_ position: UInt64) {
        guard case .reading(var part) = state else {
            guard case .arrived(var part, let slice) = state else { return }
            part.dropped = (part.dropped?.lowerBound ?? position)...position
            state = .arrived(part, slice)
            return
        }
        part.dropped = (part.dropped?.lowerBound ?? position)...position
        state = .reading(part)
    }
}

/// The acknowledgement that has come for a QoS 2 message in flight while only the store has it.
enum StoredAcknowledgement {
    /// PUBREC.
    case released
    /// PUBREC, and then PUBCOMP.
    case completed
}

/// The loads of all sessions, by session number; few sessions have one.
package struct QueueLoads {
    private var loads: [UInt64: QueueLoad] = [:]
    /// By session number and position. More may be in flight than the window holds: after a crash,
    /// or after a reload that lowers the limit. A client may acknowledge all of it on its new
    /// connection, and a part that the store reads meanwhile does not know of that.
    private var acknowledged: [UInt64: [UInt64: StoredAcknowledgement]] = [:]
    /// The position from which on nothing was sent before the present connection, although it may have
    /// been as far as the store knows; by session number, few sessions have one.
    private var unsent: [UInt64: UInt64] = [:]

    package subscript(session: UInt64) -> QueueLoad {
        get { loads.isEmpty ? QueueLoad() : loads[session] ?? QueueLoad() }
        set {
            if !newValue.isIdle {
                loads[session] = newValue
            } else if !loads.isEmpty {
                loads[session] = nil
            }
        }
    }

    /// See ``QueueLoad/noteDropped(_:)``; free for a session without a load.
    package mutating func noteDropped(_ position: UInt64, of session: UInt64) {
        if !loads.isEmpty { loads[session]?.noteDropped(position) }
    }

    /// See ``QueueLoad/below``.
    package func below(of session: UInt64) -> UInt64 {
        loads.isEmpty ? 0 : loads[session]?.below ?? 0
    }

    /// See ``QueueLoad/isUnderWay``.
    package func isUnderWay(_ session: UInt64) -> Bool {
        !loads.isEmpty && loads[session]?.isUnderWay == true
    }

    /// Notes that nothing was sent from this position on, unless an earlier one is known.
    mutating func noteUnsent(from position: UInt64, of session: UInt64) {
        unsent[session] = unsent[session] ?? position
    }

    /// True for a position that was never sent.
    func isUnsent(_ position: UInt64, of session: UInt64) -> Bool {
        !unsent.isEmpty && unsent[session].map { $0 <= position } ?? false
    }

    /// Notes PUBREC for a position that only the store has; false for a repeated one.
    mutating func noteReleased(_ position: UInt64, of session: UInt64) -> Bool {
        guard acknowledged[session]?[position] == nil else { return false }
        acknowledged[session, default: [:]][position] = .released
        return true
    }

    /// Notes PUBCOMP for a position that only the store has; without effect before PUBREC.
    mutating func noteCompleted(_ position: UInt64, of session: UInt64) {
        if acknowledged[session]?[position] != nil { acknowledged[session]?[position] = .completed }
    }

    /// Returns what has come for a position that is being put into memory, and forgets it.
    mutating func takeAcknowledgement(
        _ position: UInt64, of session: UInt64
    ) -> StoredAcknowledgement? {
        acknowledged.isEmpty ? nil : acknowledged[session]?.removeValue(forKey: position)
    }

    /// Notes that all messages in flight are in memory.
    mutating func hasLoadedInFlight(_ session: UInt64) {
        if !unsent.isEmpty { unsent[session] = nil }
        if !acknowledged.isEmpty { acknowledged[session] = nil }
    }

    /// See ``QueueLoad/connectionClosed()``. The store knows of each PUBREC by the next load.
    package mutating func connectionClosed(_ session: UInt64) {
        if !unsent.isEmpty { unsent[session] = nil }
        if !acknowledged.isEmpty { acknowledged[session] = nil }
        if !loads.isEmpty { self[session].connectionClosed() }
    }

    /// See ``QueueLoad/isLoading``.
    package func isLoading(_ session: UInt64) -> Bool {
        !loads.isEmpty && loads[session]?.isLoading == true
    }
}
