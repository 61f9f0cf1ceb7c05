import Structures

/// The nodes of the retained tree at which walks stand, so that a node can be removed under them.
///
/// Between its slices a walk is one number here, a walker, and keeps no index of a node itself.
/// When a node goes, all walkers on it move to the node that follows. Walkers on one node share one
/// place, and a place that moves onto another takes over the fewer of the two: a removal costs the
/// same however many walks are open, and a walker changes its place at most a logarithm of their
/// number times before it goes on. The walker that moves, at most one, has no place, so that a walk
/// pays once per slice and not once per node.
struct WalkPlaces: ~Copyable {
    struct Walker: BitwiseCopyable {
        /// ``noIndex`` while the walker moves.
        var place: UInt32
        var links = ListLinks()
    }

    struct Place: BitwiseCopyable {
        var node: UInt32
        var count: UInt32 = 0
        var walkers = IntrusiveList<AtPlace>()
    }

    enum AtPlace: ListField {
        static subscript(walker: UnsafeMutablePointer<Walker>) -> ListLinks {
            get { walker.pointee.links }
            set { walker.pointee.links = newValue }
        }
    }

    private var walkers = Slab<Walker>()
    private var places = Slab<Place>()
    private var placeOfNode = HashIndex()
    /// The walker that moves, and where it is.
    private var moving = noIndex
    private var node = noIndex
    private let hash: KeyedHash

    init(hash: KeyedHash) { self.hash = hash }

    /// Open walks.
    var count: Int { walkers.count }
    /// Nodes on which walkers stand; for tests.
    var placeCount: Int { places.count }

    /// Adds a walker, which moves first.
    mutating func begin(at node: UInt32) -> UInt32 {
        stand()
        moving = walkers.insert(Walker(place: noIndex))
        self.node = node
        return moving
    }

    /// Lets a walker move. Returns its node when it has stood meanwhile, and perhaps been moved;
    /// `nil` when it has not.
    mutating func resume(_ walker: UInt32) -> UInt32? {
        guard walker != moving else { return nil }
        stand()
        node = leave(walker)
        moving = walker
        return node
    }

    /// The walker that moves has reached a node.
    mutating func reach(_ node: UInt32) { self.node = node }

    mutating func end(_ walker: UInt32) {
        if walker == moving { moving = noIndex } else { _ = leave(walker) }
        walkers.remove(walker)
    }

    /// True when walkers stand on a node that is about to be removed; ``move(from:to:)`` moves them.
    mutating func holds(_ node: UInt32) -> Bool {
        guard count > 0 else { return false }
        stand()
        return find(node) != nil
    }

    /// Moves all walkers on a node to another.
    mutating func move(from node: UInt32, to target: UInt32) {
        stand()
        guard let place = find(node) else { return }
        placeOfNode.remove(key(node), place)
        guard let other = find(target) else {
            settle(place, at: target)
            return
        }
        let (few, many) =
            places[place].count < places[other].count ? (place, other) : (other, place)
        if few == other {
            placeOfNode.remove(key(target), other)
            settle(place, at: target)
        }
        while !places[few].walkers.isEmpty {
            let walker = places[few].walkers.first
            places[few].walkers.remove(walker, in: walkers)
            add(walker, to: many)
        }
        places.remove(few)
    }

    /// Gives the walker that moves a place, so that another may move or nodes be removed.
    private mutating func stand() {
        guard moving != noIndex else { return }
        var place = find(node)
        if place == nil {
            let new = places.insert(Place(node: node))
            placeOfNode.insert(key(node), new)
            place = new
        }
        if let place { add(moving, to: place) }
        moving = noIndex
    }

    /// Takes a walker from its place, and returns the node.
    private mutating func leave(_ walker: UInt32) -> UInt32 {
        let place = walkers[walker].place
        let node = places[place].node
        places[place].walkers.remove(walker, in: walkers)
        places[place].count -= 1
        walkers[walker].place = noIndex
        if places[place].count == 0 {
            placeOfNode.remove(key(node), place)
            places.remove(place)
        }
        return node
    }

    private mutating func add(_ walker: UInt32, to place: UInt32) {
        walkers[walker].place = place
        places[place].walkers.append(walker, in: walkers)
        places[place].count += 1
    }

    private mutating func settle(_ place: UInt32, at node: UInt32) {
        places[place].node = node
        placeOfNode.insert(key(node), place)
    }

    private func find(_ node: UInt32) -> UInt32? {
        placeOfNode.find(key(node)) { places[$0].node == node }
    }

    private func key(_ node: UInt32) -> UInt64 { withUnsafeBytes(of: node) { hash($0) } }
}
