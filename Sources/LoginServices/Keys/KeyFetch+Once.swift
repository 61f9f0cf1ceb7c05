import Logins

extension KeyURL {
    /// Fetches the keys once, for a command.
    ///
    /// - Returns: The keys, or the reason why there are none, a clause.
    package func fetchOnce() async -> (keys: KeySet?, failure: String) {
        let authorities: KeyAuthorities?
        do {
            authorities = try self.authorities()
        } catch {
            return (nil, error.description)
        }
        let fetch = KeyFetch(self, authorities: authorities)
        defer { fetch.close() }
        switch await fetch.fetch() {
        case .failure(let failure): return (nil, failure.reason)
        case .success(let document):
            do throws(KeySet.Malformed) {
                return (try KeySet(document: document, allowsSecrets: false), "")
            } catch {
                return (nil, error.reason)
            }
        }
    }
}
