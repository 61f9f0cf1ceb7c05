import NIOCore
import Synchronization

/// The body of a request, which knows whether anything of it was sent: AsyncHTTPClient asks for it
/// once it has a connection, and has written the headers.
struct QuestionBody: AsyncSequence, Sendable {
    private final class Mark: Sendable {
        let isSent = Atomic(false)
    }

    private let bytes: ByteBuffer
    private let mark = Mark()

    init(_ bytes: [UInt8]) { self.bytes = ByteBuffer(bytes: bytes) }

    var count: Int { bytes.readableBytes }
    var isSent: Bool { mark.isSent.load(ordering: .acquiring) }

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let body: QuestionBody
        private var isAtEnd = false

        fileprivate init(_ body: QuestionBody) { self.body = body }

        mutating func next() async -> ByteBuffer? {
            guard !isAtEnd else { return nil }
            isAtEnd = true
            body.mark.isSent.store(true, ordering: .releasing)
            return body.bytes
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
