import CChecksum

/// A table of facts: one kind of thing that one feature keeps.
///
/// The store knows a table by its number alone, which is part of the format. The name is for
/// people who look into the database.
public struct FactTable: Hashable, Sendable {
    public let number: UInt8
    public let name: String

    /// - Parameters:
    ///   - number: The number that the journal and the database have.
    ///   - name: A word of at most 15 bytes, which then needs no memory of its own.
    public init(number: UInt8, name: String) {
        self.number = number
        self.name = name
    }
}

/// The partition of what a fact is about: a client, a channel, a topic, a key or a message.
///
/// If several brokers shared the work, the partition would say which of them keeps the fact. It is
/// the last byte of the CRC32C of the owner's name, so every broker computes the same one; the
/// empty name has partition 0. The function is part of the format.
public struct FactOwner: Hashable, Sendable, BitwiseCopyable {
    public let partition: UInt8

    /// The owner of what belongs to the broker as a whole.
    public static var broker: FactOwner { FactOwner(partition: 0) }

    public init(partition: UInt8) { self.partition = partition }

    /// - Parameter name: The client identifier, channel, topic, key or message identifier.
    public init(_ name: UnsafeRawBufferPointer) {
        partition = UInt8(truncatingIfNeeded: crc32c(0, name))
    }

    public init(_ name: [UInt8]) { self = name.withUnsafeBytes { FactOwner($0) } }
}

/// A fact as the store has it. Its bytes are valid only during the call that hands it over.
public struct StoredFact {
    /// The number of its ``FactTable``.
    public let table: UInt8
    public let owner: FactOwner
    public let key: UnsafeRawBufferPointer
    public let value: UnsafeRawBufferPointer

    public init(
        table: UInt8, owner: FactOwner, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
    ) {
        self.table = table
        self.owner = owner
        self.key = key
        self.value = value
    }
}

/// Bytes of a fact that the feature's encoding does not allow.
public struct DamagedFact: Error, Hashable, Sendable {
    public init() {}
}
