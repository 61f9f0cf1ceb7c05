import Testing

@testable import Structures

private func ms(_ milliseconds: UInt64) -> MonotonicTime {
    MonotonicTime(milliseconds: milliseconds)
}

/// References to the tested structs, because `#expect` cannot call mutating methods.
private final class Bucket {
    var value = TokenBucket()

    func take(rate: Int, now: MonotonicTime) -> Bool { value.take(rate: rate, now: now) }
    func left(rate: Int, now: MonotonicTime) -> Int { value.left(rate: rate, now: now) }
    func time(of tokens: Int, rate: Int, now: MonotonicTime) -> MonotonicTime {
        value.time(of: tokens, rate: rate, now: now)
    }
}

private final class Rates {
    var value = KeyRates()

    func take(_ key: UInt32, rate: Int, now: MonotonicTime) -> Bool {
        value.take(key, rate: rate, now: now)
    }
}

@Suite("Token bucket")
struct TokenBucketTests {
    @Test("gives a second's tokens at once, and then as many as come back")
    func rate() {
        let bucket = Bucket()
        for _ in 0..<5 {
            let isThere = bucket.take(rate: 5, now: ms(1_000))
            #expect(isThere)
        }
        #expect(!bucket.take(rate: 5, now: ms(1_000)))
        #expect(!bucket.take(rate: 5, now: ms(1_199)))
        #expect(bucket.take(rate: 5, now: ms(1_200)))
        #expect(!bucket.take(rate: 5, now: ms(1_200)))
        #expect(bucket.left(rate: 5, now: ms(9_000)) == 5)
    }

    @Test("owes no more than its present rate holds, after a higher one")
    func lowered() {
        let bucket = Bucket()
        while bucket.take(rate: 1_000_000, now: ms(50)) {}
        #expect(!bucket.take(rate: 10, now: ms(50)))
        #expect(bucket.time(of: 1, rate: 10, now: ms(50)) == ms(150))
        #expect(bucket.take(rate: 10, now: ms(150)))
        #expect(bucket.left(rate: 10, now: ms(1_150)) == 10)
    }

    @Test("says to the millisecond when tokens will be there", arguments: [1, 7, 300, 10_000])
    func time(rate: Int) {
        let bucket = Bucket()
        while bucket.take(rate: rate, now: ms(50)) {}
        for tokens in [1, max(1, rate / 100)] {
            let time = bucket.time(of: tokens, rate: rate, now: ms(50))
            #expect(time > ms(50))
            let former = bucket.value
            #expect(bucket.left(rate: rate, now: ms(time.milliseconds - 1)) < tokens)
            bucket.value = former
            #expect(bucket.left(rate: rate, now: time) >= tokens)
            bucket.value = former
        }
        #expect(Bucket().time(of: 1, rate: rate, now: ms(3)) == ms(3))
    }

    @Test("an unused token can be returned; a lower rate applies at once")
    func putBack() {
        let bucket = Bucket()
        #expect(bucket.take(rate: 1, now: ms(0)))
        bucket.value.putBack()
        #expect(bucket.take(rate: 1, now: ms(0)))
        #expect(!bucket.take(rate: 1, now: ms(0)))
        for _ in 0..<9 { #expect(bucket.take(rate: 10, now: ms(0))) }
        #expect(!bucket.take(rate: 2, now: ms(100)))
    }
}

@Suite("Rates by key")
struct KeyRatesTests {
    @Test("each key has its own")
    func own() {
        let rates = Rates()
        for _ in 0..<3 { #expect(rates.take(7, rate: 3, now: ms(5))) }
        #expect(!rates.take(7, rate: 3, now: ms(5)))
        #expect(rates.take(8, rate: 3, now: ms(5)))
        #expect(rates.take(7, rate: 3, now: ms(339)))
    }

    @Test("200,000 keys that come once do not make one forgotten that comes again and again")
    func flood() {
        let rates = Rates()
        let heavy: UInt32 = 0x4242
        for _ in 0..<10 { #expect(rates.take(heavy, rate: 10, now: ms(1))) }
        for key in 1...UInt32(200_000) where key != heavy {
            #expect(rates.take(key, rate: 10, now: ms(1)))
        }
        #expect(!rates.take(heavy, rate: 10, now: ms(1)))
    }
}
