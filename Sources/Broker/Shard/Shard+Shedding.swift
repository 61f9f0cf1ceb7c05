import MQTTCore
import Structures

/// What a shard gives up when memory runs short.
extension Shard {
    /// Less than this is no slow reader: it may be on its way.
    private static var slowReaderBytes: Int { 64 * 1_024 }

    /// Closes connections whose CONNECT has not come or whose password has not been checked.
    mutating func shedNewcomers() {
        guard pendingConnections > 0 else { return }
        for index in 0..<connections.endIndex
        where connections[index].generation != 0 && connections[index].machine.isUnknown {
            doom(
                Handle(index: index, generation: connections[index].generation),
                .memoryShortage)
        }
        closeDoomed()
    }

    /// Closes those who have most unsent, until they have held `bytes` together; returns how many bytes
    /// they held.
    mutating func shedReaders(bytes: Int) -> Int {
        var readers: [(handle: Handle, bytes: Int)] = []
        for index in 0..<connections.endIndex
        where connections[index].generation != 0 && !connections[index].isDoomed
            && connections[index].output.count >= Self.slowReaderBytes
        {
            readers.append(
                (
                    Handle(index: index, generation: connections[index].generation),
                    connections[index].output.count
                ))
        }
        readers.sort { $0.bytes > $1.bytes }
        var shed = 0
        for reader in readers {
            guard shed < bytes else { break }
            doom(reader.handle, .memoryShortage)
            shed += reader.bytes
        }
        closeDoomed()
        return shed
    }
}
