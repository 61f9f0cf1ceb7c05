import MQTTCodec
import Structures

/// The records of groups and of their members.
extension SharedSubscriptions {
    struct Group: BitwiseCopyable {
        /// The whole text of the subscription, `$share/` included.
        var text: CompactBytes
        /// Rings of connected and of offline members; the first one's turn is next.
        var online = IntrusiveList<InRing>()
        var offline = IntrusiveList<InRing>()
        var members: UInt32 = 0
        /// Another one after each member that has come or gone online; no two groups have the same.
        var version: UInt32 = 0
        /// The group's filter in the trie of all groups.
        var filter = SubscriptionTrie.List()

        subscript(isOnline isOnline: Bool) -> IntrusiveList<InRing> {
            get { isOnline ? online : offline }
            set { if isOnline { online = newValue } else { offline = newValue } }
        }
    }

    struct Member: BitwiseCopyable {
        var session: UInt32
        var group: UInt32
        var inRing = ListLinks()
        var inSession = ListLinks()
        /// The group's version when the member came: another member at the same index has another.
        var joined: UInt32
        var grant: SubscriptionGrant
        var isOnline: Bool

        var qos: QoS { grant.qos }
    }

    enum InRing: ListField {
        static subscript(member: UnsafeMutablePointer<Member>) -> ListLinks {
            get { member.pointee.inRing }
            set { member.pointee.inRing = newValue }
        }
    }
}
