/// The order in which the broker's addresses are tried: the one that served last, then the others at
/// random.
///
/// All addresses together are one try for ``ReconnectRule``: while one is left, the next follows at
/// once.
struct AddressOrder: Sendable {
    private let count: Int
    private var lastGood: Int?
    /// Addresses that this try has not used.
    private var left: [Int] = []
    private(set) var current = 0

    /// `count` is 1 or more.
    init(count: Int) { self.count = count }

    /// No other address is left in this try.
    var isLast: Bool { left.isEmpty }

    /// A try begins.
    mutating func begin(using random: inout any ClientRandom) {
        guard count > 1 else { return }
        left = Array(0..<count)
        for index in stride(from: count - 1, to: 0, by: -1) {
            left.swapAt(index, Int(random.number(in: 0...Int64(index))))
        }
        if let lastGood {
            left.removeAll { $0 == lastGood }
            left.insert(lastGood, at: 0)
        }
        current = left.removeFirst()
    }

    /// Goes on to the next address; false if there is none.
    mutating func next() -> Bool {
        guard !left.isEmpty else { return false }
        current = left.removeFirst()
        return true
    }

    /// The broker at this address has accepted the connection.
    mutating func served() {
        lastGood = current
        left = []
    }
}
