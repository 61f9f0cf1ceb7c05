import HermesClientCore

extension HermesClient {
    /// The place of what the client keeps across restarts of the program: messages on their way,
    /// subscriptions, marks that tell duplicates and losses.
    public struct Storage: Sendable {
        private enum Place: Sendable {
            case file(String, isSynchronized: Bool)
            case none
            /// The tests' own.
            case other(@Sendable () -> any ClientStorage)
        }

        private let place: Place

        /// Gives a file, created if it is missing, readable for its owner alone, and locked while the
        /// client lives. It belongs to one client identifier. More files may stand beside it:
        /// `PATH.lock`, for a moment `PATH.new`, and `PATH.damaged` if a part of it could not be
        /// read, which ``Event/storageDamaged(bytes:setAside:)`` tells.
        ///
        /// - Parameters:
        ///   - path: in a directory that exists and that the system does not clean, such as
        ///     Application Support; not in a cache, nor in a backup that another device restores.
        ///   - survivesPowerLoss: flushes every change to the device, which costs milliseconds
        ///     each, and tens of them on Apple's systems. Without it, all survives a kill of the program, and the last changes before a
        ///     loss of power may be missing.
        /// - Returns: The file as a place, which ``HermesClient/init(_:)`` opens.
        public static func file(_ path: String, survivesPowerLoss: Bool = false) -> Storage {
            Storage(place: .file(path, isSynchronized: survivesPowerLoss))
        }

        /// Nothing: a restart of the program loses what was on its way, and knows no duplicates.
        /// QoS 2 is refused, because it cannot be kept.
        public static let none = Storage(place: .none)

        struct Opened {
            var storage: any ClientStorage
            var stored: StoredState
            /// Bytes of the log.
            var logBytes: Int
            var lock: StorageLock?
            var damage: StorageFile.Damage?
        }

        static func other(_ make: @escaping @Sendable () -> any ClientStorage) -> Storage {
            Storage(place: .other(make))
        }

        var survivesRestart: Bool {
            switch place {
            case .file, .other: true
            case .none: false
            }
        }

        // `owner` is the client identifier; a file of another client is refused.
        func open(owner: String) throws -> Opened {
            switch place {
            case .none:
                return Opened(storage: NoStorage(), stored: StoredState(), logBytes: 0, lock: nil)
            case .other(let make):
                return Opened(storage: make(), stored: StoredState(), logBytes: 0, lock: nil)
            case .file(let path, let isSynchronized):
                do throws(StorageError) {
                    let (storage, recovery) = try StorageFile.open(
                        path, isSynchronized: isSynchronized)
                    let former = recovery.state.owner ?? Array(owner.utf8)
                    guard former == Array(owner.utf8) else {
                        let name = String(decoding: former, as: UTF8.self)
                        throw StorageError(
                            reason: "\(path) belongs to the client \"\(name)\", and this one is "
                                + "\"\(owner)\"; give each client a file of its own, or delete the "
                                + "file if \"\(name)\" is no longer needed")
                    }
                    return Opened(
                        storage: storage, stored: recovery.state, logBytes: recovery.soundBytes,
                        lock: storage.lock, damage: storage.damage)
                } catch {
                    throw HermesClientError.storage(error.reason)
                }
            }
        }
    }
}
