import OperatorLog
import Testing

@Suite("A budget of lines")
struct LineBudgetTests {
    @Test("beyond it lines are counted, and the next second has a new one")
    func budget() {
        var budget = LineBudget(perSecond: 2)
        let answers = [5_000, 5_100, 5_200, 5_999, 6_000, 6_001, 6_002, 9_000].map {
            budget.take(atMilliseconds: $0)
        }
        #expect(answers == [0, 0, nil, nil, 2, 0, nil, 1])
    }

    @Test("long lines use up the bytes of a second before its lines")
    func bytes() {
        var budget = LineBudget(perSecond: 100, bytesPerSecond: 1_000)
        let lines = (0..<100).count { _ in budget.take(bytes: 300, atMilliseconds: 1_500) != nil }
        #expect(lines == 4)
        #expect(budget.take(bytes: 300, atMilliseconds: 2_000) == 96)
    }
}
