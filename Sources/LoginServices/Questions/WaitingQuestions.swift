import Credentials

/// Questions that wait for a request, by their digests. The addresses of their clients take turns;
/// when the queue is full, the address with the most questions loses one. So a storm from one
/// address delays others by little.
///
/// Origin 0, for clients without an address of their own, never loses a question.
struct WaitingQuestions {
    private struct Entry {
        let digest: SHA256Digest
        /// Rises with each question.
        let serial: UInt64
    }

    /// The questions of an origin, oldest first.
    private struct Line {
        var entries = FirstInFirstOut<Entry>()
        /// Tells the line's turn from one of an earlier line of the origin.
        let turn: UInt64
    }

    /// The most questions that wait.
    var capacity: Int

    /// By origin; no line is empty.
    private var lines: [UInt32: Line] = [:]
    /// Origins in the order of service, also of some lines that are no more.
    private var turns = FirstInFirstOut<(origin: UInt32, turn: UInt64)>()
    /// Origins of all questions in the order of their arrival, also of some that wait no more.
    private var arrivals = FirstInFirstOut<(origin: UInt32, serial: UInt64)>()
    private var nextSerial: UInt64 = 0
    private(set) var count = 0

    init(capacity: Int) { self.capacity = capacity }

    /// Adds a question; returns the one that must leave, if any, which may be another.
    mutating func append(_ digest: SHA256Digest, origin: UInt32) -> SHA256Digest? {
        guard count >= capacity else {
            place(digest, origin)
            return nil
        }
        let own = lines[origin]?.entries.count ?? 0
        let others = lines.lazy.filter { $0.key != 0 }
        guard
            let longest = others.max(by: { $0.value.entries.count < $1.value.entries.count }),
            longest.value.entries.count > own + 1,
            let displaced = lines[longest.key]?.entries.popLast()
        else { return digest }
        count -= 1
        place(digest, origin)
        return displaced.digest
    }

    /// The oldest question of the origin whose turn it is; `nil` when none waits.
    var next: SHA256Digest? {
        mutating get {
            while let turn = turns.first {
                if let line = lines[turn.origin], line.turn == turn.turn {
                    return line.entries.first?.digest
                }
                _ = turns.popFirst()
            }
            return nil
        }
    }

    /// Removes ``next``. One that is not asked costs its origin no turn.
    mutating func removeNext(isAsked: Bool) {
        guard next != nil, let turn = turns.first else { return }
        removeFirst(of: turn.origin)
        guard isAsked else { return }
        _ = turns.popFirst()
        if lines[turn.origin] != nil { turns.append(turn) }
    }

    /// The question that has waited longest, which is the oldest of its line too; `nil` when none
    /// waits.
    var oldest: SHA256Digest? {
        mutating get {
            while let arrival = arrivals.first {
                if let entry = lines[arrival.origin]?.entries.first,
                    entry.serial == arrival.serial
                {
                    return entry.digest
                }
                _ = arrivals.popFirst()
            }
            return nil
        }
    }

    /// Removes ``oldest``.
    mutating func removeOldest() {
        guard oldest != nil, let arrival = arrivals.popFirst() else { return }
        removeFirst(of: arrival.origin)
    }

    private mutating func removeFirst(of origin: UInt32) {
        guard lines[origin]?.entries.popFirst() != nil else { return }
        count -= 1
        if lines[origin]?.entries.isEmpty ?? false { lines[origin] = nil }
    }

    private mutating func place(_ digest: SHA256Digest, _ origin: UInt32) {
        if lines[origin] == nil {
            lines[origin] = Line(turn: nextSerial)
            turns.append((origin, nextSerial))
        }
        lines[origin]?.entries.append(Entry(digest: digest, serial: nextSerial))
        arrivals.append((origin, nextSerial))
        nextSerial += 1
        count += 1
    }
}

/// A queue whose removals do not move what stays.
private struct FirstInFirstOut<Element> {
    private var elements: [Element] = []
    /// Elements before it are removed.
    private var head = 0

    var count: Int { elements.count - head }
    var isEmpty: Bool { count == 0 }
    var first: Element? { isEmpty ? nil : elements[head] }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = elements[head]
        head += 1
        // Moves no more elements than were removed.
        if head > elements.count / 2 {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }

    mutating func popLast() -> Element? { isEmpty ? nil : elements.popLast() }
}
