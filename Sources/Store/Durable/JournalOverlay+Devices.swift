/// Devices in the journal.
extension JournalOverlay {
    /// Applies a record of devices; other records are none of them.
    func applyDevice(_ record: RecordView, _ bytes: UnsafeRawBufferPointer) {
        active.weight += 1
        switch StoreRecord(record, in: bytes) {
        case .device(let device): active.devices.register(device)
        case .deviceRemoved(let identifier): active.devices.remove(identifier)
        case .woken(let identifier, let woken): active.devices.wake(identifier, woken)
        default: preconditionFailure("a record of devices is \(record)")
        }
    }

    /// Hands the devices to `visitor`.
    func restoreDevices(
        _ database: Database, _ visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) {
        var changes = DeviceChanges()
        for segment in sealed + [active] { changes.merge(segment.devices) }
        try database.forEachDevice { device in
            guard changes.devices[device.clientIdentifier] == nil else { return }
            var device = device
            device.woken = changes.woken[device.clientIdentifier] ?? device.woken
            visitor.visit(device)
        }
        for device in changes.devices.values {
            if let device { visitor.visit(device) }
        }
    }
}
