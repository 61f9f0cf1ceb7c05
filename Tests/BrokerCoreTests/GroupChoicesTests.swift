import MQTTCodec
import MQTTCore
import Structures
import Testing

@testable import BrokerCore

@Suite("GroupChoices")
struct GroupChoicesTests {
    @Test("groups of full members ask fewer once those before them have asked many")
    func mostAsked() {
        var choices = GroupChoices()
        choices.begin()
        let first = choices.mostAsked
        #expect(first == SharedSubscriptions.mostSearched)
        var asked = 0
        for _ in 0..<1_024 {
            // Both rings are full.
            asked += 2 * choices.mostAsked
            choices.steps += 2 * choices.mostAsked
        }
        #expect(asked < 24_000, "\(asked) members for 1,024 groups")
        #expect(choices.mostAsked == 8, "every group asks some")
        _ = choices.takeSteps()
        #expect(choices.mostAsked == 8, "also after the work was counted")
        choices.begin()
        let next = choices.mostAsked
        #expect(next == first)
    }

    @Test("copies that were delivered ahead count for their publisher's message alone")
    func sender() {
        var choices = GroupChoices()
        let topic = Array("a/b".utf8)
        topic.withUnsafeBytes { topic in
            choices.beginAhead(topic, .atMostOnce, sender: nil)
            #expect(choices.isFor(.system) && choices.isFor(nil), "members were only chosen")
            choices.beginAhead(topic, .atMostOnce, sender: .features)
            choices.noteDelivered(to: 7)
            #expect(choices.isAhead(topic, .atMostOnce) && choices.isFor(.features))
            #expect(!choices.isFor(.system) && !choices.isFor(nil))
            // A trace that begins meanwhile has the rest chosen without copies.
            choices.beginAhead(topic, .atMostOnce, sender: nil)
            #expect(choices.isDelivered(to: 7) && !choices.isFor(.system))
            choices.endAhead()
            choices.beginAhead(topic, .atMostOnce, sender: .system)
            #expect(!choices.isDelivered(to: 7) && choices.isFor(.system))
        }
    }

    @Test("groups keep their copy when very many sessions have got other rights")
    func manyRights() {
        var choices = GroupChoices()
        let topic = Array("a/b".utf8)
        topic.withUnsafeBytes { topic in
            choices.beginAhead(topic, .atMostOnce, sender: .features)
            choices.noteDelivered(to: 7)
            for session in 0..<5_000 { choices.noteRights(of: UInt32(session)) }
            #expect(choices.isAhead(topic, .atMostOnce) && choices.isDelivered(to: 7))
        }
    }

    @Test("a message that goes to one group asks many of its members")
    func oneGroup() {
        var choices = GroupChoices()
        choices.steps = 10_000
        _ = choices.takeSteps()
        #expect(choices.mostAsked == 8)
        choices.beginSearch()
        #expect(choices.mostAsked == SharedSubscriptions.mostSearched)
    }
}
