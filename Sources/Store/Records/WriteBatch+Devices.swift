/// Records of devices.
extension WriteBatch {
    /// A new device has woken nobody, whatever ``StoredDevice/woken`` is.
    public mutating func device(_ device: StoredDevice) {
        guard begin(.device) else { return }
        device.clientIdentifier.withUnsafeBytes { put($0) }
        put(device.userName == nil ? 0 : 1 as UInt8)
        (device.userName ?? []).withUnsafeBytes { put($0) }
        device.token.withUnsafeBytes { put($0) }
        device.bundle.withUnsafeBytes { put($0) }
        put(device.kind)
        put(device.environment)
        put(device.registeredMs)
        put(device.isSetAside ? 1 : 0 as UInt8)
    }

    public mutating func deviceRemoved(of clientIdentifier: UnsafeRawBufferPointer) {
        guard begin(.deviceRemoved) else { return }
        put(clientIdentifier)
    }

    public mutating func woken(
        _ clientIdentifier: UnsafeRawBufferPointer, _ woken: StoredDevice.Woken
    ) {
        guard begin(.woken) else { return }
        put(woken.session)
        put(woken.position)
        put(clientIdentifier)
    }
}
