/// A text cannot be encoded in a protobuf message.
package enum MessageEncodingError: Error, Hashable, CustomStringConvertible {
    /// The text holds NUL. protobuf-c ends a string there, so the rest would be lost silently.
    case containsNUL(field: String)

    /// The schema's name of the field that holds the text.
    package var field: String {
        switch self {
        case .containsNUL(let field): field
        }
    }

    package var description: String {
        switch self {
        case .containsNUL(let field): "\(field) contains NUL (U+0000); remove it"
        }
    }
}

/// Owns the memory that a protobuf-c message points into while it is packed.
///
/// Its pointers are valid until the arena leaves scope, which frees them all. They must not outlive
/// the function that made the arena.
struct ProtobufArena: ~Copyable {
    private var blocks: [UnsafeMutableRawBufferPointer] = []

    deinit {
        for block in blocks { block.deallocate() }
    }

    /// Copies the text's UTF-8 into a C string.
    mutating func string(
        _ text: String, field: String
    ) throws(MessageEncodingError) -> UnsafeMutablePointer<CChar> {
        var text = text
        let copied: UnsafeMutablePointer<CChar>? = text.withUTF8 { utf8 in
            if utf8.contains(0) { return nil }
            let copy = array(of: CChar.self, count: utf8.count + 1)
            for (index, byte) in utf8.enumerated() { copy[index] = CChar(bitPattern: byte) }
            copy[utf8.count] = 0
            return copy.baseAddress
        }
        guard let copied else { throw .containsNUL(field: field) }
        return copied
    }

    /// Copies the bytes.
    mutating func bytes(_ source: [UInt8]) -> UnsafeMutableBufferPointer<UInt8> {
        let copy = array(of: UInt8.self, count: source.count)
        _ = copy.update(fromContentsOf: source)
        return copy
    }

    /// Allocates one value of a C structure.
    mutating func value<T: BitwiseCopyable>(_ initial: T) -> UnsafeMutablePointer<T> {
        let block = allocate(bytes: MemoryLayout<T>.size, alignment: MemoryLayout<T>.alignment)
        return block.initializeMemory(as: T.self, to: initial)
    }

    /// Allocates `count` values of a C type, filled with zero.
    mutating func array<T: BitwiseCopyable>(
        of type: T.Type, count: Int
    ) -> UnsafeMutableBufferPointer<T> {
        let byteCount = MemoryLayout<T>.stride * count
        let block = allocate(bytes: byteCount, alignment: MemoryLayout<T>.alignment)
        block.initializeMemory(as: UInt8.self, repeating: 0, count: max(byteCount, 1))
        return UnsafeMutableBufferPointer(
            start: block.bindMemory(to: type, capacity: count), count: count)
    }

    /// Returns the `size` bytes that `pack` writes.
    func packed(_ size: Int, by pack: (UnsafeMutablePointer<UInt8>?) -> Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: size) { buffer, initializedCount in
            initializedCount = pack(buffer.baseAddress)
            precondition(
                initializedCount == size, "packed \(initializedCount) bytes after promising \(size)"
            )
        }
    }

    /// Allocates at least one byte, so that there is always an address.
    private mutating func allocate(bytes: Int, alignment: Int) -> UnsafeMutableRawPointer {
        let block = UnsafeMutableRawPointer.allocate(byteCount: max(bytes, 1), alignment: alignment)
        blocks.append(UnsafeMutableRawBufferPointer(start: block, count: max(bytes, 1)))
        return block
    }
}
