import Glibc

/// Places where a test may end the process, to see what a crash there leaves behind.
///
/// `HERMES_FAILPOINT=<name>:<count>` in the environment kills the process with SIGKILL when the place
/// is reached for the count-th time. Without the variable a place costs one load.
public enum Failpoint: String, CaseIterable, Sendable {
    /// A group is about to be written to the journal.
    case beforeWrite
    /// It is written and not synchronised.
    case afterWrite
    /// It is about to be synchronised.
    case beforeSync
    /// It is synchronised, and nobody knows.
    case afterSync
    /// Its acknowledgements are about to be put into output.
    case beforeAcknowledge
    /// PUBREC, PUBREL, PUBCOMP were put into the output, and are sent or not.
    case pubrec, pubrel, pubcomp
    /// A PUBLISH with QoS 1 or 2 was put into a receiver's output.
    case deliver
    /// A full segment is about to be moved to the database.
    case beforeMove
    /// The database has a full segment, and the journal may still reuse it.
    case afterMove

    private struct Armed {
        let point: Failpoint
        /// Counted down to 0; touched by one thread, because a place belongs to one.
        let remaining: UnsafeMutablePointer<Int>
    }

    private nonisolated(unsafe) static let armed: Armed? = {
        guard let text = getenv("HERMES_FAILPOINT").map({ String(cString: $0) }) else { return nil }
        let parts = text.split(separator: ":")
        guard parts.count == 2, let point = Failpoint(rawValue: String(parts[0])),
            let count = Int(parts[1]), count > 0
        else { return nil }
        let remaining = UnsafeMutablePointer<Int>.allocate(capacity: 1)
        remaining.initialize(to: count)
        return Armed(point: point, remaining: remaining)
    }()

    /// Whether any place ends the process.
    public static var isArmed: Bool { armed != nil }

    /// The place is reached.
    @inline(__always)
    public func reach() {
        guard let armed = Self.armed, armed.point == self else { return }
        armed.remaining.pointee -= 1
        if armed.remaining.pointee == 0 { kill(getpid(), SIGKILL) }
    }
}
