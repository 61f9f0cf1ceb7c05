import Glibc
import Testing

@testable import hermes_bench

@Suite("LatencyHistogram")
struct LatencyHistogramTests {
    @Test("without a value there is no quantile")
    func empty() {
        let histogram = LatencyHistogram()
        let median = histogram.value(atQuantile: 0.5)
        let maximum = histogram.maximum
        #expect(median == nil)
        #expect(maximum == 0)
    }

    @Test("quantiles are at most 0.8 % above the exact ones, and never below")
    func precision() throws {
        var histogram = LatencyHistogram()
        // Spread over nine powers of ten.
        let values = (0..<100_000).map { UInt64(pow(10, Double($0) / 100_000 * 9)) }
        for value in values.shuffled() { histogram.record(value) }
        for quantile in [0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1] {
            let rank = max(1, Int((Double(values.count) * quantile).rounded(.up)))
            let exact = values[rank - 1]
            let value = histogram.value(atQuantile: quantile)
            let found = try #require(value)
            #expect(found >= exact)
            #expect(Double(found) <= Double(exact) * 1.008)
        }
    }

    @Test("the largest value is exact", arguments: [0, 1, 127, 128, 1_000_003, UInt64.max])
    func maximum(value: UInt64) {
        var histogram = LatencyHistogram()
        histogram.record(0)
        histogram.record(value)
        let maximum = histogram.maximum
        let highest = histogram.value(atQuantile: 1)
        #expect(maximum == value)
        #expect(highest == value)
    }

    @Test("nothing is left after removing all")
    func removal() {
        var histogram = LatencyHistogram()
        histogram.record(5)
        histogram.removeAll()
        let count = histogram.count
        let highest = histogram.value(atQuantile: 1)
        #expect(count == 0)
        #expect(highest == nil)
    }
}

@Suite("BrokerProcess")
struct BrokerProcessTests {
    @Test("CPU time of this process grows while it works")
    func cpuTime() throws {
        let process = try BrokerProcess(identifier: getpid())
        let before = try process.cpuNanoseconds()
        var sum: UInt64 = 0
        while try process.cpuNanoseconds() < before + 2_000_000 { sum &+= 1 }
        #expect(sum > 0)
        #expect(try process.systemCPUNanoseconds() <= process.cpuNanoseconds() + 100_000_000)
    }

    @Test("touched memory is counted as unshared and resident")
    func memory() throws {
        let process = try BrokerProcess(identifier: getpid())
        let before = try process.memory()
        let size = 64 * 1_024 * 1_024
        let block = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 4_096)
        defer { block.deallocate() }
        memset(block, 1, size)
        let after = try process.memory()
        #expect(after.unshared >= before.unshared + UInt64(size) * 9 / 10)
        #expect(after.resident >= after.unshared)
    }

    @Test("a process that is not there is an error", arguments: [Int32(0), -1, .max])
    func missing(identifier: Int32) {
        #expect(throws: BenchFailure.self) { try BrokerProcess(identifier: identifier) }
    }
}
