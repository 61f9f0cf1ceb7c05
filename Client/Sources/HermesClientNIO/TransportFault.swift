import HermesClientCore

/// A stage of the pipeline ends the connection, and why.
struct TransportFault: Error {
    let reason: DropReason
}

/// A stage tells the next one that bytes may be written: the broker is connected, and trusted if
/// there is TLS.
struct TransportReady: Sendable {}
