import BrokerAPI
import SystemFiles

/// A push service with its settings, which were checked before.
package enum PushService: Sendable {
    case apple(APNsSettings)
    case google(FCMSettings)

    /// The devices that it wakes.
    package var kind: Device.Kind {
        switch self {
        case .apple: .apns
        case .google: .fcm
        }
    }

    /// How operators know it.
    package var name: String { brand.name }

    /// The part of the configuration that is about it.
    package var section: String { brand.section }

    private var brand: ServiceBrand {
        switch self {
        case .apple: .apple
        case .google: .google
        }
    }

    /// The files that the settings name, as they are now.
    package var stamps: [FileStamp?] {
        let files =
            switch self {
            case .apple(let settings): settings.files
            case .google(let settings): settings.files
            }
        return files.map { FileStamp(of: $0) }
    }

    /// Reads all files. The error names setting, file and cure.
    package func load() throws(UnusablePushFile) -> PushCredentials {
        let stamps = stamps
        do throws(ProviderKey.Unusable) {
            switch self {
            case .apple(let settings):
                return PushCredentials(content: .apple(try settings.proofs()), stamps: stamps)
            case .google(let settings):
                return PushCredentials(content: .google(try settings.load()), stamps: stamps)
            }
        } catch {
            throw UnusablePushFile(
                description: "\(section): \(error.description)", isTransient: error.isTransient)
        }
    }

    /// The provider, on the thread that owns it.
    func provider(_ credentials: PushCredentials) -> (any PushProvider)? {
        switch (self, credentials.content) {
        case (.apple(let settings), .apple(let proofs)): AppleProvider(settings, proofs)
        case (.google(let settings), .google(let files)): GoogleProvider(settings, files)
        case (.apple, .google), (.google, .apple): nil
        }
    }
}

/// The contents of the files that the settings of a push service name.
package struct PushCredentials: Sendable {
    enum Content: Sendable {
        /// In the order of ``APNsSettings/identities``.
        case apple([APNsProof])
        case google(FCMFiles)
    }

    let content: Content
    /// The files' stamps from before they were read.
    package let stamps: [FileStamp?]
}

/// Files of the settings cannot be used.
package struct UnusablePushFile: FileRefusal, Equatable {
    package let description: String
    package var isTransient = false
}
