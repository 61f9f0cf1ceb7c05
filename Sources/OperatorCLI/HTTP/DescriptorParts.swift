import NIOCore
import NIOPosix
import SystemFiles

/// What can be read from an open descriptor, in parts as they come. A thread of its own waits for
/// them, so that a slow source holds up nothing else.
struct DescriptorParts: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    /// Stays open and with the caller.
    let descriptor: CInt
    let name: String

    func makeAsyncIterator() -> Iterator { Iterator(source: self) }

    struct Iterator: AsyncIteratorProtocol {
        let source: DescriptorParts

        /// - Throws: ``SystemError`` when reading fails.
        mutating func next() async throws -> ByteBuffer? {
            let source = source
            let part = try await NIOThreadPool.singleton.runIfActive {
                try OpenFile.readPart(source.descriptor, name: source.name)
            }
            return part.isEmpty ? nil : ByteBuffer(bytes: part)
        }
    }
}
