import BrokerAPI
import BrokerCore
import Structures

/// The receipts by age, all of them and those of each owner.
///
/// The room for receipts is divided by taking it back: above the limit the oldest receipt of the owner
/// goes that has the most receipts and receivers. So an owner that sends to many loses its own
/// receipts, and those of others stay.
struct ReceiptOrder: ~Copyable {
    /// The place of a receipt in both orders, kept in its record.
    struct Links: BitwiseCopyable {
        fileprivate var older = noIndex
        fileprivate var younger = noIndex
        fileprivate var youngerOfOwner = noIndex
        fileprivate var share = noIndex
    }

    struct Share: BitwiseCopyable {
        let owner: OwnerID
        var oldest = noIndex
        var youngest = noIndex
        /// Receipts and receivers.
        var count = 0
    }

    /// Receipts that one owner loses before the owners are compared again.
    private static var mostInARow: Int { 64 }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private var shares = Slab<Share>()
    /// Owners without receipts have no entry.
    private var byOwner: [OwnerID: UInt32] = [:]
    /// The oldest receipt of all; ``noIndex`` without any.
    private(set) var oldest = noIndex
    private var youngest = noIndex
    /// The owner whose receipts go, and how many more of them before the owners are compared again.
    private var loser: (share: UInt32, left: Int) = (noIndex, 0)

    /// Adds a receipt, which is younger than all others.
    mutating func append(_ place: UInt32, to records: inout Slab<Receipts.Record>) {
        let share = share(of: records[place].owner)
        records[place].links.share = share
        records[place].links.older = youngest
        if youngest == noIndex { oldest = place } else { records[youngest].links.younger = place }
        youngest = place
        if shares[share].youngest == noIndex {
            shares[share].oldest = place
        } else {
            records[shares[share].youngest].links.youngerOfOwner = place
        }
        shares[share].youngest = place
        shares[share].count += 1
    }

    private mutating func share(of owner: OwnerID) -> UInt32 {
        if let share = byOwner[owner] { return share }
        let share = shares.insert(Share(owner: owner))
        byOwner[owner] = share
        return share
    }

    /// Counts receivers of a receipt more, or less.
    mutating func count(_ links: Links, by change: Int) { shares[links.share].count += change }

    /// Removes a receipt, which has no receivers left and is the oldest of its owner.
    mutating func remove(_ place: UInt32, from records: inout Slab<Receipts.Record>) {
        let links = records[place].links
        if links.older == noIndex {
            oldest = links.younger
        } else {
            records[links.older].links.younger = links.younger
        }
        if links.younger == noIndex {
            youngest = links.older
        } else {
            records[links.younger].links.older = links.older
        }
        precondition(shares[links.share].oldest == place, "an owner has an older receipt")
        shares[links.share].oldest = links.youngerOfOwner
        shares[links.share].count -= 1
        guard links.youngerOfOwner == noIndex else { return }
        byOwner[shares[links.share].owner] = nil
        shares.remove(links.share)
        if loser.share == links.share { loser.share = noIndex }
    }

    /// Has ``takeLoser()`` compare the owners.
    mutating func compareOwners() { loser.share = noIndex }

    /// The receipt that goes next to make room: the oldest of the owner that has the most. There must
    /// be one.
    mutating func takeLoser() -> UInt32 {
        if loser.share == noIndex || loser.left == 0 {
            let largest = byOwner.values.max { shares[$0].count < shares[$1].count }
            guard let largest else { preconditionFailure("no receipt could make room") }
            loser = (largest, Self.mostInARow)
        }
        loser.left -= 1
        return shares[loser.share].oldest
    }
}

/// What the store has to drop after a slice of receipts was dropped.
struct ReceiptDrops: Equatable {
    /// True when ``Receipts/progress`` has changed.
    var hasBegun = false
    /// Numbers of receipts that are dropped although older ones stay.
    var numbers: [UInt64] = []
}
