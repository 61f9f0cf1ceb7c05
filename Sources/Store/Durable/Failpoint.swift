import Glibc

/// Places in the code at which a test may kill the process, to see what a crash leaves behind.
///
/// `HERMES_FAILPOINT=<name>:<count>` in the environment kills the process with SIGKILL when the
/// place is reached for the count-th time. Without the variable, a place costs one load.
public enum Failpoint: String, CaseIterable, Sendable {
    /// A group is about to be written to the journal.
    case beforeWrite
    /// The group is written and not synchronised.
    case afterWrite
    /// The group is about to be synchronised.
    case beforeSync
    /// The group is synchronised, and its completion is not reported yet.
    case afterSync
    /// The acknowledgements of the group are about to be put into the output.
    case beforeAcknowledge
    /// PUBREC, PUBREL or PUBCOMP was put into the output, and may or may not have been sent.
    case pubrec, pubrel, pubcomp
    /// A PUBLISH with QoS 1 or 2 was put into a receiver's output.
    case deliver
    /// A full segment is about to be moved to the database.
    case beforeMove
    /// The database has a full segment, whose file is not free for reuse yet.
    case afterMove

    private struct Armed {
        let point: Failpoint
        /// Counted down to 0. Only one thread touches it, because each place belongs to one thread.
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

    /// True when the environment names a place.
    public static var isArmed: Bool { armed != nil }

    /// Marks that the place is reached.
    @inline(__always)
    public func reach() {
        guard let armed = Self.armed, armed.point == self else { return }
        armed.remaining.pointee -= 1
        if armed.remaining.pointee == 0 { kill(getpid(), SIGKILL) }
    }
}
