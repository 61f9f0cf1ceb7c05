import HermesClientCore

extension HermesClient {
    /// The client's user name and password.
    public struct Credentials: Sendable {
        /// A user name and a password, each of 65,535 bytes at most.
        public struct Pair: Hashable, Sendable {
            /// UTF-8.
            public var userName: String
            /// Any bytes; a token is a password too.
            public var password: [UInt8]

            /// A password of text, in UTF-8.
            public init(userName: String, password: String) {
                self.init(userName: userName, password: Array(password.utf8))
            }

            /// A password of any bytes.
            public init(userName: String, password: [UInt8]) {
                self.userName = userName
                self.password = password
            }
        }

        /// Gives credentials that are valid now; `nil` if there are none any more, which stops the
        /// client. An error counts as a failed try, after which it is asked again. It has 30 s.
        public typealias Provider = @Sendable () async throws -> Pair?

        let first: Pair?
        let provider: Provider?

        /// The broker lets clients in without.
        public static let none = Credentials(first: nil, provider: nil)

        /// The same for good; when the broker refuses them the client stops.
        public static func fixed(userName: String, password: String) -> Credentials {
            Credentials(first: Pair(userName: userName, password: password), provider: nil)
        }

        /// Asked for before the first connection, and again once whenever the broker refuses those
        /// of before. The task that asks is cancelled by ``HermesClient/stop()``.
        public static func refreshed(_ provider: @escaping Provider) -> Credentials {
            Credentials(first: nil, provider: provider)
        }
    }
}

extension HermesClient.Credentials.Pair {
    func checked() throws -> Self {
        guard userName.utf8.count <= Int(UInt16.max), password.count <= Int(UInt16.max) else {
            throw HermesClientError.configuration(
                "the user name has \(userName.utf8.count) bytes and the password "
                    + "\(password.count); each may have 65,535")
        }
        return self
    }

    var clientCredentials: ClientCredentials {
        ClientCredentials(userName: Array(userName.utf8), password: password)
    }
}
