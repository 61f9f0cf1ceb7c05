/// A device in the bytes of a record.
public struct DeviceView: BitwiseCopyable {
    let clientIdentifier: RecordView.Bytes
    let userName: RecordView.Bytes?
    let token: RecordView.Bytes
    let bundle: RecordView.Bytes
    let kind: UInt8
    let environment: UInt8
    let registeredMs: Int64
    let isSetAside: Bool
}

extension RecordReader {
    mutating func device() throws(DamagedRecord) -> DeviceView {
        let identifier = try string()
        let hasUserName = try flag()
        let userName = try string()
        return DeviceView(
            clientIdentifier: identifier, userName: hasUserName ? userName : nil,
            token: try string(), bundle: try string(), kind: try byte(), environment: try byte(),
            registeredMs: try integer(), isSetAside: try flag())
    }

    mutating func woken() throws(DamagedRecord) -> RecordView {
        let woken = StoredDevice.Woken(session: try integer(), position: try integer())
        return .woken(clientIdentifier: try string(), woken)
    }
}

extension StoredDevice {
    /// A copy of a record that owns its strings.
    init(_ view: DeviceView, _ text: (RecordView.Bytes) -> [UInt8]) {
        self.init(
            clientIdentifier: text(view.clientIdentifier), userName: view.userName.map(text),
            token: text(view.token), bundle: text(view.bundle), kind: view.kind,
            environment: view.environment, registeredMs: view.registeredMs,
            isSetAside: view.isSetAside)
    }
}
