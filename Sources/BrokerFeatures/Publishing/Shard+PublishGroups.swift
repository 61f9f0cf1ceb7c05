import BrokerAPI
import BrokerCore
import Structures

/// Messages that the admin plane publishes in groups.
extension Shard {
    /// Publishes the messages in order, in slices of the coming turns. `reply` gets an outcome for
    /// each, once all that need it are stored; it gets an error when the shard stops before.
    public mutating func publishGroup(
        _ publications: [Publication], reply: @escaping Reply<[PublishOutcome]>
    ) {
        features.groups.add(publications, at: context.now, reply)
    }

    /// The time at which waiting groups need a turn; `nil` without any. While the backlog is full
    /// they wait as clients do, so that a caller is slowed down rather than refused.
    var groupsDue: MonotonicTime? {
        features.groups.due(at: context.now, heldBack: commits.isBacklogFull && !commits.isRefusing)
    }

    /// Publishes a slice of the waiting groups: the turn's share for them, at least one message.
    mutating func publishGroups() {
        guard let due = groupsDue, due <= context.now else { return }
        context.budget.beginGroups()
        var isMatched = true
        while isMatched, !context.budget.isShareSpent, let first = features.groups.takeFirst() {
            var group = first.group
            var (needsCommit, hasRepeats) = (false, false)
            while !context.budget.isShareSpent, let publication = group.next {
                if let known = knownOutcome(of: publication) {
                    group.outcomes.append(known)
                    hasRepeats = true
                    context.budget.spend(WorkBudget.publication(bytes: 0))
                    endMatch(of: .features)
                    continue
                }
                guard !publication.isOnlyRepeated else {
                    group.outcomes.append(.notRepeated)
                    context.budget.spend(WorkBudget.publication(bytes: 0))
                    endMatch(of: .features)
                    continue
                }
                isMatched =
                    publication.isKept
                    || publication.topic.withUnsafeBytes {
                        self.isMatched($0, qos: publication.qos, for: .features)
                    }
                guard isMatched else { break }
                let (outcome, isStored) = accept(publication)
                group.outcomes.append(outcome)
                needsCommit = needsCommit || isStored
                context.budget.spend(WorkBudget.publication(bytes: publication.payload.count))
                endMatch(of: .features)
            }
            if needsCommit {
                group.uncommitted += 1
                commit(Awaited.group(first.number).action)
            }
            if hasRepeats, commits.hasUncommittedKeys {
                group.uncommitted += 1
                commits.awaitKeys(Awaited.group(first.number).action)
            }
            features.groups.putBack(group)
        }
    }
}
